"""Listing against ledger: objects whose event never came, and arrivals whose owner died, become arrivals now."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from lake.partition import Partition
from lake.time import iso_utc
from router.dataset_rules import named_datasets
from router.listing import ListingProgress, ListingRequest, find_unrecorded
from router.telemetry import logger

if TYPE_CHECKING:
    from router.services import Services

HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Search:
    """Where the listing of the input bucket has got to."""

    begun_at: str = ""
    """ISO 8601, UTC; empty: never."""
    dataset: str | None = None
    """The one that is being listed; None: all are."""
    token: str | None = None
    """Where in that dataset."""


def adopt_missed(services: Services, search: Search, stop_at: datetime) -> tuple[Search, dict[str, int]]:
    """List recent hours of one dataset after the other; ``adopted`` object versions have an owner now."""
    adopted = 0
    search = _begin(services, search)
    while search.dataset is not None and services.clock() < stop_at:
        request = _request(services, search.dataset, datetime.fromisoformat(search.begun_at))
        before = ListingProgress.of(search.token).recorded
        result = find_unrecorded(services, request, search.token)
        if result["recorded"] > before:
            adopted += result["recorded"] - before
            logger.warning("missed arrivals adopted", dataset=search.dataset, files=result["recorded"] - before)
        following = search.dataset if result["token"] else _next(services, search.dataset)
        search = Search(search.begun_at, following, result["token"])
    return search, {"adopted": adopted}


def _begin(services: Services, search: Search) -> Search:
    """Another round, when the last one is over and began long enough ago."""
    now = services.clock()
    pause = timedelta(hours=services.settings.sweep.listing_hours)
    if search.dataset is not None or (search.begun_at and now - datetime.fromisoformat(search.begun_at) < pause):
        return search
    return Search(iso_utc(now), _next(services, ""))


def _next(services: Services, dataset: str) -> str | None:
    """The dataset that follows by name."""
    names = named_datasets(services.settings.datasets)
    names |= {row.name for row in services.ledger.datasets.all()}
    return min((name for name in names if name > dataset), default=None)


def _request(services: Services, dataset: str, begun: datetime) -> ListingRequest:
    """Whole hours that ended ``sweep.missed_minutes`` ago: the event of a later object may still be on its way."""
    sweep = services.settings.sweep
    last = begun - timedelta(minutes=sweep.missed_minutes) - HOUR
    first = last - timedelta(days=sweep.listing_days)
    from_hour, to_hour = (Partition.of(dataset, instant).stamp for instant in (first, last))
    reason = f"found by the sweep, {from_hour} to {to_hour}"
    # A version whose event was lost is an arrival of its own, even when another version has replaced it since.
    return ListingRequest(dataset, from_hour, to_hour, reason, every_version=True)
