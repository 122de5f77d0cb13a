"""Where the sweep's listings have got to: a hint between two sweeps, safe to lose."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from lake.errors import InvalidInputError
from lake.layout import sweep_key
from router.documents import read_document, write_document
from router.sweep.missed import Search

if TYPE_CHECKING:
    from router.services import Services


@dataclass(frozen=True, slots=True)
class SweepProgress:
    """Every listing goes on where the last sweep ran out of time."""

    search: Search = field(default_factory=Search)
    lake_after: str = ""
    """Key of the last object looked at; empty: from the beginning."""
    quarantine_after: str = ""


def read_progress(services: Services) -> SweepProgress:
    """What the last sweep left; from the beginning when nothing readable is there."""
    try:
        body = read_document(services, sweep_key())
        return SweepProgress(Search(**body.pop("search")), **body)
    except (InvalidInputError, ValueError, TypeError, KeyError, AttributeError):
        return SweepProgress()


def write_progress(services: Services, progress: SweepProgress) -> None:
    """For the next sweep."""
    write_document(services, sweep_key(), asdict(progress))
