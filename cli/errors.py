"""Errors as a person sees them: advice, exit code, and one sentence on stderr."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import IntEnum
from typing import TypeGuard

import typer
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    InvalidRegionError,
    NoRegionError,
    ProfileNotFound,
    SSOError,
)
from botocore.parsers import ResponseParserError

from lake.errors import HybridRouterError, InvalidInputError, InvalidSettingsError, UnknownDatasetError
from lake.faults import (
    CREDENTIAL_CODES,
    CREDENTIAL_ERRORS,
    HEAD_REFUSED,
    KEY_CODES,
    LOAD_CODES,
    NETWORK_ERRORS,
    RESOURCE_CODES,
    SERVER_ERROR,
    TOO_MANY_REQUESTS,
    error_code,
    http_status,
    is_denial,
)
from lake.texts import printable

CONNECTION_ERRORS = (ResponseParserError, *NETWORK_ERRORS)
"""Errors of a request without AWS's answer; ``ResponseParserError``: a proxy has answered, for example with a page."""
AWS_ERRORS = (BotoCoreError, ClientError, *CONNECTION_ERRORS)
GONE_CODES = frozenset({"404", "NoSuchKey", "NoSuchVersion"})


class NotReachableError(HybridRouterError):
    """A stack cannot be reached; the message shows why and what to do."""


def advise(error: Exception) -> str:  # noqa: PLR0911
    """Return what happened and what to do, as one sentence without a full stop."""
    if isinstance(error, ClientError):
        return _advise_by_code(error)
    if isinstance(error, ProfileNotFound):
        return f"{error}: name a profile of ~/.aws/config"
    if isinstance(error, InvalidRegionError):
        return f"{error.kwargs['region_name']!r} is not an AWS region: pass --region with one such as eu-central-1"
    if isinstance(error, NoRegionError):
        return "no AWS region is set: pass --region, or set AWS_REGION"
    if isinstance(error, (*CREDENTIAL_ERRORS, SSOError)):
        return f"no AWS credentials ({error}): set AWS_PROFILE, or sign in with 'aws sso login'"
    if isinstance(error, CONNECTION_ERRORS):
        return f"no answer from AWS ({error}): check the network, the proxy and the region"
    return str(error)


BUSY = "AWS is busy ({}): run the command again"
_ADVICE = (
    (
        CREDENTIAL_CODES,
        "AWS does not accept the credentials ({}): check the clock, sign in again, or use another profile",
    ),
    (LOAD_CODES, BUSY),
    (
        RESOURCE_CODES | {"AWS.SimpleQueueService.NonExistentQueue", "StateMachineDoesNotExist"},
        "a resource is missing or in another region ({}): check its name and the region; if it was deleted from the "
        "stack, create or restore it under the same name",
    ),
    (KEY_CODES, "the KMS key cannot be used ({}): enable it, or cancel its deletion"),
    (GONE_CODES, "an object is gone ({}): run the command again; if it is still gone, restore it"),
)


def _advise_by_code(error: ClientError) -> str:
    code, status = error_code(error), http_status(error)
    if (error.operation_name, code) == HEAD_REFUSED:
        return (
            f"S3 refuses the request without a reason ({error}): sign in again; if other objects can be read, this one "
            "has a key that only its writer has (SSE-C)"
        )
    known = next((advice for codes, advice in _ADVICE if code in codes), None)
    if known is None and is_denial(error):
        # The answer to HEAD has no body, so S3 does not name the right.
        right = "s3:GetObject, for a version s3:GetObjectVersion" if error.operation_name == "HeadObject" else "{}"
        known = f"a permission is missing ({right}): grant it, or use another profile"
    elif known is None and (status == TOO_MANY_REQUESTS or status >= SERVER_ERROR):
        known = BUSY
    return str(error) if known is None else known.format(error)


INVALID_ENDPOINT = "Invalid endpoint: "
"""The beginning of the ``ValueError`` that botocore raises for an endpoint without a scheme."""


class NotFoundError(HybridRouterError):
    """The requested object does not exist; the message says where to look."""


class ExitCode(IntEnum):
    OK = 0
    NEGATIVE = 1
    """The answer is no: unknown, failed, too late, different."""
    USAGE_ERROR = 2
    """An option, an argument or a settings file is wrong."""
    NOT_REACHABLE = 3
    """The stack, the network, the credentials or a permission is missing."""
    INTERNAL_ERROR = 70
    """A defect of the product (EX_SOFTWARE of sysexits.h)."""
    INTERRUPTED = 130
    PIPE_CLOSED = 141
    """The reader of the output, such as ``head``, has ended; a shell shows this number for it."""


def exit_code_of(error: Exception) -> ExitCode:
    if isinstance(error, UnknownDatasetError):
        return ExitCode.NEGATIVE
    if isinstance(error, (InvalidInputError, InvalidSettingsError)):
        return ExitCode.USAGE_ERROR
    is_refused = isinstance(error, (NotReachableError, *AWS_ERRORS))
    if is_refused or _is_local_error(error) or str(error).startswith(INVALID_ENDPOINT):
        return ExitCode.NOT_REACHABLE
    return ExitCode.NEGATIVE if isinstance(error, HybridRouterError) else ExitCode.INTERNAL_ERROR


def _is_local_error(error: Exception) -> TypeGuard[OSError]:
    """Whether only a person can fix it: a full disk, a right on a file, a path that is too long or leads nowhere."""
    return isinstance(error, OSError) and error.errno is not None


@contextmanager
def errors_on_stderr(debug: bool) -> Iterator[None]:
    """Write each error of the block to stderr as one sentence and exit with its code (``cli.errors``).

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
        # The code is the answer, even if the message cannot be written.
        with suppress(OSError):
            typer.echo(f"hybrid-router: {text}", err=True)
        raise SystemExit(code) from None
    except SystemExit as ended:
        # Typer would end with 1, which is an answer of a command.
        if isinstance(ended.__context__, BrokenPipeError):
            raise SystemExit(ExitCode.PIPE_CLOSED) from None
        raise
    except KeyboardInterrupt:
        raise SystemExit(ExitCode.INTERRUPTED) from None


def _visible(error: Exception) -> str:
    """The error's text. Errors of the local cloud have many lines; no other text can look like a line of ours."""
    text = str(error)
    if isinstance(error, AWS_ERRORS):
        text = advise(error)
    elif _is_local_error(error):
        place = "" if error.filename is None else f"{error.filename}: "
        text = f"{place}{error.strerror}: remove the cause and run the command again"
    elif text.startswith(INVALID_ENDPOINT):
        text += ": begin AWS_ENDPOINT_URL, or endpoint_url of the profile, with https:// or http://"
    return "\n  ".join(map(printable, text.split("\n")))
