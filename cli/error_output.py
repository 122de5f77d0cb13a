"""How a command reports its errors to a person."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import BotoCoreError, ClientError

from cli.aws_errors import advise
from cli.exit_codes import ExitCode, exit_code_of
from lake.texts import printable


@contextmanager
def errors_on_stderr(debug: bool) -> Iterator[None]:
    """Write each error of the block to stderr as one sentence and exit with its code (``cli.exit_codes``).

    With ``debug`` errors leave the block with their stack trace.
    """
    try:
        yield
    except Exception as error:
        if debug:
            raise
        code, text = exit_code_of(error), _visible(error)
        if code is ExitCode.INTERNAL_ERROR:
            text = f"internal error ({type(error).__name__}: {text}); --debug shows the stack trace"
        sys.stderr.write(f"hybrid-router: {text}\n")
        raise SystemExit(code) from None
    except KeyboardInterrupt:
        raise SystemExit(ExitCode.INTERRUPTED) from None


def _visible(error: Exception) -> str:
    """The error's text. What the local cloud reports has many lines; no other line looks like one of ours."""
    text = advise(error) if isinstance(error, (BotoCoreError, ClientError)) else str(error)
    return "\n  ".join(map(printable, text.split("\n")))
