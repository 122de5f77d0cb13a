"""What a person asks a backfill for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lake.errors import InvalidInputError
from router.selection import Selection, check_flag, fields_of, parse_selection

if TYPE_CHECKING:
    from router.services import Services

FIELDS = ("dataset", "from", "to", "dryRun")
EXAMPLE = '{"dataset": "orders", "from": "2026-11-01", "to": "2026-11-02", "dryRun": true}'


@dataclass(frozen=True, slots=True)
class BackfillRequest:
    """A dataset and a range of UTC hours, both ends inclusive."""

    dataset: str
    first: str
    last: str
    dry_run: bool
    origin: str = "backfill"
    """Who asks."""
    every_version: bool = False
    """Replaced versions as well; otherwise current ones only."""

    @property
    def selection(self) -> Selection:
        """The partitions that are meant."""
        return Selection(self.dataset, self.first, self.last)

    @property
    def reason(self) -> str:
        """Why an arrival that it finds is in the batch lane."""
        return f"{self.origin} {self.first} to {self.last}"

    def normalised(self) -> dict[str, Any]:
        """As the state machine carries it; parsing it again gives the same request."""
        return {"dataset": self.dataset, "from": self.first, "to": self.last, "dryRun": self.dry_run}


def parse_request(given: object, services: Services) -> BackfillRequest:
    """Read a backfill's input.

    Raises
    ------
    InvalidInputError
        One sentence that says what to type.
    """
    fields = fields_of(given, FIELDS, "backfill", EXAMPLE)
    missing = [name for name in ("dataset", "from", "to") if fields.get(name) is None]
    if missing:
        raise InvalidInputError(f"backfill needs {', '.join(missing)}: type for example {EXAMPLE}")
    selection = parse_selection(fields, services)
    assert selection.dataset is not None
    assert selection.first is not None
    assert selection.last is not None
    return BackfillRequest(selection.dataset, selection.first, selection.last, check_flag(fields, "dryRun"))
