"""Every error the product raises on purpose: terminal (do not retry) or transient (retry), and that alone decides.

The state machines' Retry and Catch lists name these classes, so a class name is part of the contract.
"""

from __future__ import annotations


class HybridRouterError(Exception):
    """Root of all deliberate errors. A message says what happened, to which thing, and what to do next."""


class TerminalError(HybridRouterError):
    """Trying again gives the same answer."""


class TransientError(HybridRouterError):
    """Trying again later can succeed."""


class InvalidSettingsError(TerminalError):
    """A settings file holds a wrong value; ``key`` and ``value`` name it."""

    def __init__(self, key: str, value: object, expected: str) -> None:
        super().__init__(f"settings: {key} = {value!r} is wrong: {expected}")
        self.key = key
        self.value = value


class InvalidInputError(TerminalError):
    """A person or a machine gave an execution or a command an input it cannot work with."""


class InvalidDocumentError(TerminalError):
    """A document on S3 (manifest, commit document, plan) is not what the ledger says it is."""


class OwnershipError(TransientError):
    """An invocation could not finish taking ownership; it acknowledged nothing and the events come again."""


class HeldError(TransientError):
    """Another run holds a live lease on the manifest."""


class LeaseLostError(TransientError):
    """The holder's lease expired or was taken over: it must stop and publish nothing."""


class AuditError(TransientError):
    """What was written does not add up to what was read: the attempt is discarded."""


class UploadsVanishedError(TerminalError):
    """Uploads named by a commit document no longer exist, nor do the objects they were to become."""
