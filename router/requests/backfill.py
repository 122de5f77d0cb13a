"""Lambda function ``backfill``: the first states of the ``backfill`` state machine, which a person starts.

The command line uses it to validate a request before it starts the state machine. It compares a listing with the
ledger: objects that the ledger does not know become arrivals of the batch lane.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from lake.dataset_rules import dataset_prefixes, matching_rule, named_datasets, takes_no_folder
from lake.errors import InvalidInputError, OwnershipError
from lake.layout import is_archived
from lake.manifest import Identity, Lane, ObjectVersion, Partition, has_compressed_name
from lake.texts import format_count
from lake.time import iso_utc
from router.entry import lambda_handler
from router.ownership.owner import RoutedArrival
from router.ownership.resolve import OWNER_GRACE
from router.ownership.take import ArrivalOutcome, take_ownership
from router.requests.selection import (
    Selection,
    decode_token,
    encode_token,
    folders_of,
    parse_fields,
    parse_flag,
    parse_selection,
)
from router.services import Services, read_many
from router.telemetry import logger

FIELDS = ("dataset", "from", "to", "dryRun", "force")
EXAMPLE = '{"dataset": "orders", "from": "2026-11-01", "to": "2026-11-02", "dryRun": true}'

TIME_PER_CALL = timedelta(minutes=3)
"""Time after which no further page is requested. It is shorter than the function's timeout, and long enough for the
state machine, with at most 25,000 events, to list until its own timeout."""
WAIT_FOR_OWNERS = OWNER_GRACE + timedelta(seconds=10)
"""Wait after which any owner that was found without a row is presumed dead, and its arrivals are adopted."""
TOTALS = ("found", "recorded", "unsettled", "bytes", "compressed", "archived")
"""Names of the running totals in an answer."""


@dataclass(frozen=True, slots=True)
class ListingRequest:
    """A request for object versions of one dataset, last modified within a range of UTC hours."""

    dataset: str
    first: str
    """``YYYY-MM-DDTHH``, inclusive."""
    last: str
    """``YYYY-MM-DDTHH``, inclusive."""
    reason: str
    """Why an arrival that the listing finds is in the batch lane, as a sentence for people."""
    dry_run: bool = False
    leave_unsettled: bool = False
    """Do not wait for arrivals that have no owner yet: the sweep takes over their intent."""


@dataclass(frozen=True, slots=True)
class ListingProgress:
    """Position of the listing, and its running totals."""

    prefix: int = 0
    """Number of the dataset's prefix that is being listed."""
    key_marker: str = ""
    version_marker: str = ""
    found: int = 0
    """Objects of the dataset within the range."""
    recorded: int = 0
    """Number of new arrivals; in a dry run the number that would be recorded."""
    unsettled: int = 0
    """Number of arrivals that were left to the sweep, because they had no known owner."""
    bytes: int = 0
    """Size of the recorded arrivals."""
    compressed: int = 0
    """The part of ``bytes``, in a dry run, in files with a compressed name."""
    archived: int = 0
    """Number of arrivals that a dry run would record, and that must be restored before they can be read."""
    waits: bool = False
    """The current page was visited, and some of its arrivals had no owner: it is visited once more."""
    prefixes: tuple[str, ...] = ()
    """The dataset's prefixes, as found by the first call."""

    @property
    def is_complete(self) -> bool:
        """Whether all prefixes have been listed."""
        return self.prefix == len(self.prefixes)


NOT_BEGUN = ListingProgress()


def find_unrecorded(
    services: Services, request: ListingRequest, progress: ListingProgress, time: timedelta
) -> ListingProgress:
    """List for ``time``, but at least one page, and record files that the ledger does not know; returns the progress.

    A repetition records nothing twice. A page with arrivals whose owner may still be alive must be visited again
    after ``WAIT_FOR_OWNERS``, unless the request leaves them to the sweep. Raises ``OwnershipError`` if files from
    before the wait still have no owner; ``InvalidInputError`` if ``max_datasets`` has no room for the dataset, and the
    request does not leave files without an owner; botocore's errors.
    """
    if not progress.prefixes:
        progress = replace(progress, prefixes=_prefixes(services, request.dataset))
    stop_at = services.clock() + time
    while not progress.is_complete:
        progress = _list_page(services, request, progress.prefixes[progress.prefix], progress)
        if progress.waits or services.clock() >= stop_at:
            break
    return progress


def _prefixes(services: Services, dataset: str) -> tuple[str, ...]:
    rules, folders = services.settings.datasets, folders_of(services, dataset)
    return tuple(sorted({prefix for folder in folders for prefix in dataset_prefixes(dataset, rules, folder)}))


def _has_rule(services: Services, dataset: str) -> bool:
    """Whether a rule gives keys to the dataset; an earlier rule than its folder's can take them all."""
    rules = services.settings.datasets
    return dataset in named_datasets(rules) or any(
        matching_rule(prefix, rules)[1] == dataset for prefix in _prefixes(services, dataset)
    )


def _list_page(services: Services, request: ListingRequest, prefix: str, progress: ListingProgress) -> ListingProgress:
    markers: dict[str, Any] = {"KeyMarker": progress.key_marker} if progress.key_marker else {}
    if progress.version_marker:
        markers["VersionIdMarker"] = progress.version_marker
    if takes_no_folder(prefix, services.settings.datasets):
        markers["Delimiter"] = "/"
    settings, bucket = services.settings, services.resources.input_bucket
    page = services.s3.list_object_versions(
        Bucket=bucket, Prefix=prefix, OptionalObjectAttributes=["RestoreStatus"], **markers
    )
    selection = Selection(request.dataset, request.first, request.last)
    files: dict[ObjectVersion, bool] = {}
    # A version that was replaced, or that is under a delete marker, is an arrival of its own as well.
    for item in page.get("Versions", []):
        key, modified = item["Key"], item["LastModified"]
        if not selection.selects(Partition.of(request.dataset, modified)) or settings.input.suffix_of(key) is None:
            continue
        # Checked last, because there can be thousands of rules and years of files.
        if matching_rule(key, settings.datasets)[1] == request.dataset:
            file = ObjectVersion.of(bucket, key, item["ETag"], item["Size"], modified, item.get("VersionId"))
            files[file] = is_archived(item)
    progress = _record(services, request, files, progress)
    if progress.waits:
        return progress
    if page["IsTruncated"]:
        return replace(progress, key_marker=page["NextKeyMarker"], version_marker=page.get("NextVersionIdMarker") or "")
    return replace(progress, prefix=progress.prefix + 1, key_marker="", version_marker="")


def _record(
    services: Services, request: ListingRequest, files: Mapping[ObjectVersion, bool], progress: ListingProgress
) -> ListingProgress:
    """``files`` maps the requested files of a page to whether they are archived."""
    if request.dry_run:
        rows = read_many(services.ledger.arrivals.get_many, files)
        unknown = [file for file, row in zip(files, rows, strict=True) if row is None or row.manifest is None]
        return replace(
            progress,
            found=progress.found + len(files),
            recorded=progress.recorded + len(unknown),
            bytes=progress.bytes + sum(file.size for file in unknown),
            compressed=progress.compressed + sum(file.size for file in unknown if has_compressed_name(file.key)),
            archived=progress.archived + sum(files[file] for file in unknown),
        )
    routed = [
        RoutedArrival(
            file,
            Partition.of(request.dataset, datetime.fromisoformat(file.arrived_at)),
            Lane.BATCH,
            request.reason,
        )
        for file in files
    ]
    ownership = take_ownership(services, routed, {}, skip_known=True)
    if ownership.beyond_dataset_limit and not request.leave_unsettled:
        raise InvalidInputError(
            f"the dataset {request.dataset} would exceed max_datasets: raise it and deploy, then start again"
        )
    recorded, unsettled = ownership.count(ArrivalOutcome.OWNED), ownership.count(ArrivalOutcome.UNSETTLED)
    progress = replace(progress, recorded=progress.recorded + recorded, bytes=progress.bytes + ownership.bytes)
    if unsettled and not request.leave_unsettled and not progress.waits:
        return replace(progress, waits=True)
    # Files that came after the first visit belong to a live owner.
    before = iso_utc(services.clock() - WAIT_FOR_OWNERS)
    stuck = [file for file in files if ownership.outcomes[Identity.of(file)] == ArrivalOutcome.UNSETTLED]
    if not request.leave_unsettled and any(file.arrived_at < before for file in stuck):
        raise OwnershipError(
            f"{format_count(unsettled, 'file')} of the dataset {request.dataset} cannot get an owner: read the errors "
            "in the log of this function, then start the backfill again; the sweep takes them as well"
        )
    if unsettled:
        logger.warning("arrivals left to their intent", dataset=request.dataset, files=unsettled)
    found = progress.found + len(files)
    return replace(progress, found=found, unsettled=progress.unsettled + unsettled, waits=False)


def backfill(event: Mapping[str, Any], services: Services) -> dict[str, Any]:
    """Validate a request, or list its objects for a limited time; ``token`` is null when all are listed.

    A valid request is returned in the form of the state machine: with the hours of its days, and its flags. Raises
    ``InvalidInputError``: unknown action, invalid request, or a token of another function.
    """
    action = event.get("action")
    if action == "validate":
        request = _parse(event.get("input"), services)
        services.settings.ledger.check_kept(request["from"], services.ledger.arrivals.expiries(), services.clock())
        return request
    if action == "find":
        request = _parse(event.get("request"), services)
        first, last = request["from"], request["to"]
        reason = f"backfill {first} to {last}"
        # An hour may expire after the backfill began; files of such an hour would never get an owner.
        kept = services.settings.ledger.first_kept(services.ledger.arrivals.expiries(), services.clock())
        first = max(first, kept)
        listing = ListingRequest(request["dataset"], first, last, reason, dry_run=request["dryRun"])
        progress = decode_token(ListingProgress, event.get("token"), "find")
        progress = find_unrecorded(services, listing, progress, TIME_PER_CALL)
        totals = {
            "waitSeconds": int(WAIT_FOR_OWNERS.total_seconds()) if progress.waits else 0,
            "known": progress.found - progress.recorded - progress.unsettled,
            **{name: getattr(progress, name) for name in TOTALS},
        }
        logger.info("backfill", request=event["request"], is_complete=progress.is_complete, **totals)
        return {"token": None if progress.is_complete else encode_token(progress), **totals}
    raise InvalidInputError(f"action = {action!r} is unknown: expected validate or find")


handler = lambda_handler(backfill, answers_refusals=True)
"""``{"action": "validate", "input"}`` -> the request; ``{"action": "find", "request", "token"}`` -> ``{"token",
"waitSeconds", "known", ...}`` with the ``TOTALS``; ``token`` is null when the listing is complete."""


def _parse(given: object, services: Services) -> dict[str, Any]:
    fields = parse_fields(given, FIELDS, "backfill", EXAMPLE)
    missing = [name for name in ("dataset", "from", "to") if fields.get(name) is None]
    if missing:
        raise InvalidInputError(f"backfill needs {', '.join(missing)}: pass for example {EXAMPLE}")
    selection = parse_selection(fields, services)
    assert selection.first is not None
    hours = {"dataset": selection.dataset, "from": selection.first, "to": selection.last}
    force = parse_flag(fields, "force")
    # Each call checks it: a deployment can rename the rule while a long listing runs, which would then find nothing.
    if not force and not _has_rule(services, str(selection.dataset)):
        raise InvalidInputError(
            f"no rule of [[datasets]] gives files to {selection.dataset}: pass the dataset that has them today, or "
            "deploy a rule; 'hybrid-router overnight' converts waiting files, a backfill with --force also converted "
            "ones"
        )
    return {**hours, "dryRun": parse_flag(fields, "dryRun"), "force": force}
