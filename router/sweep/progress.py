"""Positions of the sweep's listings, kept after each page: a sweep that is killed loses one page of its work.

Each listing has a document of its own, so that saving one position never overwrites another. Losing one only repeats
work, unless the sweep was off for longer than ``LISTING_DAYS``.
"""

from __future__ import annotations

from typing import Any

from lake.errors import InvalidInputError
from lake.layout import sweep_key
from router.services import Services, read_document, write_document


def read_progress(services: Services, listing: str) -> dict[str, Any]:
    """The position that the last sweep has kept; empty: the beginning."""
    try:
        body = read_document(services, sweep_key(listing))
    except (InvalidInputError, ValueError):
        return {}
    return body if isinstance(body, dict) else {}


def write_progress(services: Services, listing: str, position: dict[str, Any]) -> None:
    """Keep a position for the next sweep."""
    write_document(services, sweep_key(listing), position)
