"""Exit codes of ``hybrid-router``, the same for every command."""

from __future__ import annotations

from enum import IntEnum

from botocore.exceptions import BotoCoreError, ClientError

from cli.aws_errors import NotReachableError
from lake.errors import HybridRouterError, InvalidInputError, InvalidSettingsError, UnknownDatasetError


class NotFoundError(HybridRouterError):
    """What a command was asked for does not exist; the message says where to look."""


class ExitCode(IntEnum):
    """What a command found."""

    FINE = 0
    NOT_SO = 1
    """What was asked for is not so: unknown, failed, too late, differs."""
    WRONG_USE = 2
    """An option, an argument or a settings file is wrong."""
    NOT_REACHABLE = 3
    """The stack, the network, the credentials or a permission is missing."""
    INTERNAL_ERROR = 70
    """A defect of the product (EX_SOFTWARE of sysexits.h)."""
    INTERRUPTED = 130
    """Ctrl-C."""


def exit_code_of(error: Exception) -> ExitCode:
    """The exit code of a command that ends with this error."""
    if isinstance(error, UnknownDatasetError):
        return ExitCode.NOT_SO
    if isinstance(error, (InvalidInputError, InvalidSettingsError)):
        return ExitCode.WRONG_USE
    if isinstance(error, (NotReachableError, BotoCoreError, ClientError)):
        return ExitCode.NOT_REACHABLE
    return ExitCode.NOT_SO if isinstance(error, HybridRouterError) else ExitCode.INTERNAL_ERROR
