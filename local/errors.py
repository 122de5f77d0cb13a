"""Errors of the local cloud itself, not of the code that runs on it."""

from lake.errors import TerminalError


class LocalCloudError(TerminalError):
    """The local cloud could not start or deploy; the message says what to do next."""


class NotAllowedError(LocalCloudError):
    """A role or a service may not do what it tried; the message is AWS's sentence."""


class ServiceError(TerminalError):
    """A service refuses a request; ``code`` is the name of its error."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
