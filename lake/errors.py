"""The product's errors: a ``TerminalError`` is not retried, a ``TransientError`` is.

The state machines' Retry and Catch lists name these classes: a class name is part of the contract.
"""

from collections.abc import Sequence

REFUSED = "refused"
"""Member of a function's answer to a person's wrong request: what is wrong, and what to pass instead."""
REFUSED_BY = "error"
"""The second and last member: the class name of the error, an ``InvalidInputError``."""


MAX_VALUE_CHARACTERS = 1000
"""Maximum length of a value in a message; longer values are cut, because a list can have thousands of items."""


class HybridRouterError(Exception):
    """Root of the product's errors. A message says what happened, to which thing, and what to do next."""


class TerminalError(HybridRouterError):
    """A retry would fail in the same way."""


class TransientError(HybridRouterError):
    """A later retry can succeed."""


class InvalidSettingsError(TerminalError):
    """A settings file has an invalid value: ``key`` (dotted), ``value``, and what was ``expected``.

    ``others`` are the further errors of the same file; the message has one line for each.
    """

    def __init__(self, key: str, value: object, expected: str, others: "Sequence[InvalidSettingsError]" = ()) -> None:
        message = f"settings: {key} = {_shown(value)} is wrong: {expected}"
        super().__init__("\n".join([message, *map(str, others)]))
        self.key = key
        self.value = value
        self.expected = expected
        self.others = tuple(others)


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:
        # Python does not format integers of more than 4,300 digits, which TOML can have in hexadecimal.
        return "a number with thousands of digits"
    return text if len(text) <= MAX_VALUE_CHARACTERS else f"{text[:MAX_VALUE_CHARACTERS]}..."


class InvalidInputError(TerminalError):
    """The input of an execution, a function or a command is not valid."""


class UnknownDatasetError(InvalidInputError):
    """The input names a dataset that does not exist."""


class UnusableDocumentError(HybridRouterError):
    """This version cannot use a document on S3 (manifest, commit document, exclusions, plan)."""


class InvalidDocumentError(UnusableDocumentError, TerminalError):
    """The document is gone, was changed after the ledger recorded it, cannot be decoded, or names a foreign bucket."""


class ForeignBucketError(InvalidDocumentError):
    """The document names a bucket that this deployment does not read; it may be a previous ``input.bucket``."""


class NewerDocumentError(UnusableDocumentError, TransientError):
    """This version cannot read a document, so a newer one wrote it; it is left to that version."""


class TableStoppedError(TerminalError):
    """An Iceberg table is stopped: it stays unchanged until a person decides."""


class OwnershipError(TransientError):
    """An invocation could not take ownership. It acknowledges no event, so the events are redelivered."""


class LeaseLostError(TransientError):
    """The lease expired or another attempt claimed the manifest: the worker must stop and publish nothing."""


class AuditError(TransientError):
    """The counts of written rows do not match the counts of read lines: the attempt is discarded."""


class UploadsVanishedError(TerminalError):
    """Uploads of a commit document no longer exist, and their completed objects do not exist either."""
