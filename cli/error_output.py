"""What a person sees when a command fails."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from lake.errors import HybridRouterError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def guarded(debug: bool) -> Iterator[None]:
    """Turn deliberate errors and AWS's answers into one sentence on stderr and exit code 1."""
    try:
        yield
    except (HybridRouterError, BotoCoreError, ClientError) as error:
        if debug:
            raise
        sys.stderr.write(f"hybrid-router: {error}\n")
        raise SystemExit(1) from None
    except Exception as error:
        if debug:
            raise
        sys.stderr.write(f"hybrid-router: a bug ({type(error).__name__}: {error}); --debug shows where\n")
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
