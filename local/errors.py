"""What can go wrong with the local cloud itself, as opposed to with what runs on it."""

from __future__ import annotations

from lake.errors import TerminalError


class LocalCloudError(TerminalError):
    """The local cloud could not start or deploy; the message says what to look at next."""


class ConcurrentRunsExceededError(TerminalError):
    """A Glue job has as many live runs as its MaxConcurrentRuns allows."""
