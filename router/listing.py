"""Listing against ledger: objects whose event never came become arrivals of the batch lane."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from lake.errors import InvalidInputError
from lake.manifest import Lane
from lake.partition import Partition
from lake.settings.model import FOLDER
from router.ownership import ArrivalOutcome, RoutedArrival, take_ownership
from router.route.decide_lane import dataset_rule
from router.route.parse import object_version
from router.services import PARALLEL_REQUESTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mypy_boto3_s3.type_defs import ListObjectVersionsOutputTypeDef

    from lake.manifest import ObjectVersion
    from router.backfill.request import BackfillRequest
    from router.services import Services

TIME_PER_CALL = timedelta(seconds=45)
"""No new page is listed after it."""


@dataclass(frozen=True, slots=True)
class ListingProgress:
    """Where the listing has got to, and what it has seen so far."""

    prefix: int = 0
    """Number of the dataset's prefix that is being listed."""
    key_marker: str = ""
    version_marker: str = ""
    found: int = 0
    """Objects of the dataset that were last modified in the range."""
    known: int = 0
    """Those that the ledger had already."""
    recorded: int = 0
    """Those that are arrivals now; in a dry run: those that would be."""
    unsettled: int = 0
    """Those whose owner may still be alive: a later backfill takes them."""
    bytes: int = 0
    """Of the recorded ones."""

    def token(self) -> str:
        """Opaque text for the state machine."""
        return urlsafe_b64encode(json.dumps(asdict(self)).encode()).decode()

    @classmethod
    def of(cls, token: str | None) -> ListingProgress:
        """Read a token back; None begins from the start."""
        if token is None:
            return cls()
        try:
            return cls(**json.loads(urlsafe_b64decode(token)))
        except (ValueError, TypeError) as error:
            raise InvalidInputError("token is not one that find has returned: leave it out to begin again") from error

    def totals(self) -> dict[str, int]:
        """Running totals of the whole search."""
        names = ("found", "known", "recorded", "unsettled", "bytes")
        return {name: getattr(self, name) for name in names}


def find(services: Services, request: BackfillRequest, token: str | None) -> dict[str, Any]:
    """List for a bounded time and record what the ledger does not know; ``token`` is null when all is listed."""
    progress = ListingProgress.of(token)
    prefixes = prefixes_of(request.dataset, services)
    stop_at = services.clock() + TIME_PER_CALL
    while progress.prefix < len(prefixes) and services.clock() < stop_at:
        progress = _page(services, request, prefixes[progress.prefix], progress)
    more = progress.prefix < len(prefixes)
    return {"token": progress.token() if more else None, **progress.totals()}


def prefixes_of(dataset: str, services: Services) -> list[str]:
    """Prefixes of the input bucket below which the dataset's keys are; none lies within another."""
    rules = services.settings.datasets
    named = [rule.prefix for rule in rules if rule.name == dataset]
    folders = [f"{rule.prefix}{dataset}/" for rule in rules if rule.name == FOLDER]
    prefixes: list[str] = []
    for prefix in sorted({*named, *folders}):
        if not prefixes or not prefix.startswith(prefixes[-1]):
            prefixes.append(prefix)
    return prefixes


def _page(services: Services, request: BackfillRequest, prefix: str, progress: ListingProgress) -> ListingProgress:
    markers: dict[str, Any] = {"KeyMarker": progress.key_marker} if progress.key_marker else {}
    if progress.version_marker:
        markers["VersionIdMarker"] = progress.version_marker
    page = services.s3.list_object_versions(Bucket=services.resources.input_bucket, Prefix=prefix, **markers)
    progress = _take(services, request, _wanted(services, request, page), progress)
    if page["IsTruncated"]:
        return replace(progress, key_marker=page["NextKeyMarker"], version_marker=page.get("NextVersionIdMarker") or "")
    return replace(progress, prefix=progress.prefix + 1, key_marker="", version_marker="")


def _wanted(services: Services, request: BackfillRequest, page: ListObjectVersionsOutputTypeDef) -> list[ObjectVersion]:
    """Objects of the dataset in the range: current ones, or every version where the request says so."""
    settings, bucket = services.settings, services.resources.input_bucket
    wanted = []
    for item in page.get("Versions", []):
        key = item["Key"]
        if not (item["IsLatest"] or request.every_version) or not key.endswith(settings.input.suffixes):
            continue
        if dataset_rule(key, settings.datasets)[1] != request.dataset:
            continue
        if request.selection.holds(Partition.of(request.dataset, item["LastModified"])):
            file = object_version(bucket, key, item["ETag"], item["Size"], item["LastModified"], item.get("VersionId"))
            wanted.append(file)
    return wanted


def _take(
    services: Services, request: BackfillRequest, files: Sequence[ObjectVersion], progress: ListingProgress
) -> ListingProgress:
    if request.dry_run:
        with ThreadPoolExecutor(PARALLEL_REQUESTS) as pool:
            rows = list(pool.map(services.ledger.arrivals.get, files))
        new = [file for file, row in zip(files, rows, strict=True) if row is None]
        return _add(progress, len(files), len(new), 0, sum(file.size for file in new))
    routed = [
        RoutedArrival(
            file,
            Partition.of(request.dataset, datetime.fromisoformat(file.arrived_at)),
            Lane.BATCH,
            request.reason,
        )
        for file in files
    ]
    ownership = take_ownership(services, routed, {})
    return _add(
        progress,
        len(files),
        ownership.count(ArrivalOutcome.OWNED),
        ownership.count(ArrivalOutcome.UNSETTLED),
        sum(manifest.bytes for manifest in ownership.manifests),
    )


def _add(progress: ListingProgress, found: int, recorded: int, unsettled: int, size: int) -> ListingProgress:
    return replace(
        progress,
        found=progress.found + found,
        known=progress.known + found - recorded - unsettled,
        recorded=progress.recorded + recorded,
        unsettled=progress.unsettled + unsettled,
        bytes=progress.bytes + size,
    )
