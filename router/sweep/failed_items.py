"""What a sweep has failed at, as one error. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from lake.counted import format_count
from lake.errors import HybridRouterError, TerminalError, TransientError
from lake.printable import printable
from router.entry import to_product_error

MAX_NAMED = 5
"""Maximum number of items in the message; the log of the sweep names all of them."""


@dataclass(frozen=True, slots=True)
class FailedItem:
    """An item of a repair, or a whole repair, with its error."""

    item: str
    error: Exception

    def __str__(self) -> str:
        kind = "" if isinstance(self.error, HybridRouterError) else f"{type(self.error).__name__}: "
        return printable(f"{self.item}: {kind}{self.error}")

    @property
    def passes(self) -> bool:
        """Whether a repetition can succeed."""
        error = self.error if isinstance(self.error, HybridRouterError) else to_product_error(self.error)
        return isinstance(error, TransientError)


def error_of_sweep(repairs: Sequence[Sequence[FailedItem]]) -> Exception:
    """The error to raise for what each repair has failed at, at least one item in all.

    It is the error of the item if there is only one. Else it names the first ``MAX_NAMED`` items, the first one of each
    repair before the second one of any: a hundred manifests with the same cause hide no other cause. It is transient if
    all of them are.
    """
    failed = [item for row in zip_longest(*repairs) for item in row if item is not None]
    if len(failed) == 1:
        return failed[0].error
    named, more = failed[:MAX_NAMED], len(failed) - MAX_NAMED
    text = (
        f"{format_count(len(failed), 'repair')} failed, and the next sweep tries them again: "
        f"{'; '.join(str(item) for item in named)}{f'; the log names {more:,} more' if more > 0 else ''}"
    )
    error = TransientError(text) if all(item.passes for item in failed) else TerminalError(text)
    error.__cause__ = failed[0].error
    return error
