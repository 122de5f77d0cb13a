"""Listing against ledger: objects without an arrival, and arrivals without a live owner, get an owner."""

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

ONE_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class InputSearch:
    """Position of the listing of the input bucket."""

    begun_at: str = ""
    """Start of the current or last round, ISO 8601, UTC; empty: there was none."""
    dataset: str | None = None
    """The dataset that is being listed; None: the round is complete."""
    token: str | None = None
    """Position within that dataset; None: its beginning."""


def adopt_missed(services: Services, search: InputSearch, stop_at: datetime) -> tuple[InputSearch, dict[str, int]]:
    """List recent hours of one dataset after another; counts object versions that got an owner as ``adopted``."""
    adopted = 0
    search = _begin_round(services, search)
    while search.dataset is not None and services.clock() < stop_at:
        request = _request(services, search.dataset, datetime.fromisoformat(search.begun_at))
        before = ListingProgress.of(search.token).recorded
        result = find_unrecorded(services, request, search.token)
        if result["recorded"] > before:
            adopted += result["recorded"] - before
            logger.warning("missed arrivals adopted", dataset=search.dataset, files=result["recorded"] - before)
        following = search.dataset if result["token"] else _next_dataset(services, search.dataset)
        search = InputSearch(search.begun_at, following, result["token"])
    return search, {"adopted": adopted}


def _begin_round(services: Services, search: InputSearch) -> InputSearch:
    """A new round when the last is complete and began ``sweep.listing_hours`` ago; otherwise ``search``."""
    now = services.clock()
    interval = timedelta(hours=services.settings.sweep.listing_hours)
    if search.dataset is not None or (search.begun_at and now - datetime.fromisoformat(search.begun_at) < interval):
        return search
    return InputSearch(iso_utc(now), _next_dataset(services, ""))


def _next_dataset(services: Services, dataset: str) -> str | None:
    """The known dataset that follows by name; None: ``dataset`` was the last."""
    names = named_datasets(services.settings.datasets)
    names |= {row.name for row in services.ledger.datasets.all()}
    return min((name for name in names if name > dataset), default=None)


def _request(services: Services, dataset: str, begun: datetime) -> ListingRequest:
    """Whole hours that ended ``sweep.missed_minutes`` ago: the event of a later object may still be on its way."""
    sweep = services.settings.sweep
    last = begun - timedelta(minutes=sweep.missed_minutes) - ONE_HOUR
    first = last - timedelta(days=sweep.listing_days)
    from_hour, to_hour = (Partition.of(dataset, instant).stamp for instant in (first, last))
    reason = f"found by the sweep, {from_hour} to {to_hour}"
    # A version whose event was lost is an arrival of its own, even when another version has replaced it since.
    return ListingRequest(dataset, from_hour, to_hour, reason, every_version=True)
