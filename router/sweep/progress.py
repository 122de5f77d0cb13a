"""Positions of the sweep's listings, kept between sweeps; losing them only repeats work."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from lake.errors import InvalidInputError
from lake.layout import sweep_key
from router.documents import read_document, write_document
from router.sweep.missed import InputSearch

if TYPE_CHECKING:
    from router.services import Services


@dataclass(frozen=True, slots=True)
class SweepProgress:
    """Where each listing continues."""

    search: InputSearch = field(default_factory=InputSearch)
    lake_after: str = ""
    """Key of the last object of the lake that was checked; empty: from the beginning."""
    quarantine_after: str = ""
    """The same of the quarantine."""


def read_progress(services: Services) -> SweepProgress:
    """The positions of the last sweep; the beginning when there are none or they cannot be read."""
    try:
        body = read_document(services, sweep_key())
        return SweepProgress(InputSearch(**body.pop("search")), **body)
    except (InvalidInputError, ValueError, TypeError, KeyError, AttributeError):
        return SweepProgress()


def write_progress(services: Services, progress: SweepProgress) -> None:
    """Keep the positions for the next sweep."""
    write_document(services, sweep_key(), asdict(progress))
