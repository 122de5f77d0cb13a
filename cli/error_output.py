"""How a command reports its errors to a person."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from lake.errors import HybridRouterError
from lake.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def errors_on_stderr(debug: bool) -> Iterator[None]:
    """Write each error of the block to stderr as one sentence and exit.

    Exit codes: 1 for the product's own errors and those of AWS, 2 for any other exception, 130 for Ctrl-C. With
    ``debug`` errors leave the block with their stack trace.
    """
    try:
        yield
    except (HybridRouterError, BotoCoreError, ClientError) as error:
        if debug:
            raise
        sys.stderr.write(f"hybrid-router: {_visible(error)}\n")
        raise SystemExit(1) from None
    except Exception as error:
        if debug:
            raise
        sys.stderr.write(
            f"hybrid-router: internal error ({type(error).__name__}: {_visible(error)}); "
            "--debug shows the stack trace\n"
        )
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def _visible(error: Exception) -> str:
    """The error's text; what the local cloud reports has many lines."""
    return "\n".join(map(printable, str(error).split("\n")))
