"""Writes of ownership: arrivals are cut into drafts, arrival rows name the drafts, and drafts become owners.

An owner is a manifest of the stream lane, with its pointer, or a part of the hour's collection.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from botocore.exceptions import BotoCoreError, ClientError

from lake.cut import cut
from lake.documents import encode_document, put_document
from lake.errors import HybridRouterError, OwnershipError, TransientError
from lake.faults import NO_ANSWER, NoAnswer
from lake.layout import pointer_key
from lake.ledger import ArrivalRow, CollectionId, Ledger, Part, State
from lake.manifest import Lane, Manifest, ObjectVersion, Partition
from lake.manifest_documents import new_part, write_manifest, write_part
from lake.settings import Settings
from lake.settings.records import FAILED_RECORDS
from lake.settings.routing import is_temporary
from lake.time import iso_utc
from router.services import Services, in_parallel
from router.telemetry import logger

UNANSWERED = (BotoCoreError, ClientError, HybridRouterError)
"""Errors after which a request may or may not have been applied."""


def create_owner(services: Services, draft: Draft, now: datetime) -> Manifest | Part | NoAnswer:
    """Create and return the QUEUED manifest, or the part, which is added to a collection.

    Returns ``NO_ANSWER`` if a write has no answer, or if another process has abandoned the owner.
    """
    try:
        if draft.lane == Lane.STREAM:
            return _enqueue_manifest(services, draft, now)
        return _collect_part(services, draft, now)
    except UNANSWERED as error:
        logger.warning("owner not created", owner=draft.id, lane=draft.lane, error=str(error))
        return NO_ANSWER


def _enqueue_manifest(services: Services, draft: Draft, now: datetime) -> Manifest:
    manifest = draft.manifest(iso_utc(now))
    ledger, bucket = services.ledger, services.resources.control_bucket
    row = write_manifest(services.s3, bucket, manifest)
    ledger.partitions.list_manifest(manifest.partition, manifest.id, now)
    if ledger.manifests.enqueue(row) == State.ABANDONED:
        raise OwnershipError(f"manifest {manifest.id} was presumed dead and abandoned: its events are redelivered")
    write_pointer(services, manifest.id, urgent=manifest.urgent)
    logger.info(
        "manifest enqueued",
        manifest_id=manifest.id,
        partition=str(manifest.partition),
        files=len(manifest.files),
        bytes=manifest.bytes,
    )
    return manifest


def write_pointer(services: Services, manifest: str, *, urgent: bool) -> None:
    """Put one more pointer to a manifest into the inbox of its shard, under a key that was never used before.

    Urgent pointers have a prefix of their own, so that the streaming job finds them without listing the others. Raises
    ``BotoCoreError`` or ``ClientError``: the pointer may or may not have been written.
    """
    shard = services.settings.shards.of(manifest)
    key = pointer_key(manifest, secrets.token_hex(8), urgent=urgent, shard=shard)
    # A newline at the end, because Spark's text source reads lines.
    put_document(services.s3, services.resources.control_bucket, key, encode_document({"manifest": manifest}) + b"\n")


MAX_TRIES = 20
"""Number of collections that may be closed concurrently before the part is left to its intent."""


def _collect_part(services: Services, draft: Draft, now: datetime) -> Part:
    files: dict[str, list[ObjectVersion]] = {}
    for arrival in draft.arrivals:
        files.setdefault(arrival.partition.dataset, []).append(arrival.file)
    part, body = new_part(draft.id, draft.partition.stamp, iso_utc(now), files)
    write_part(services.s3, services.resources.control_bucket, part, body)
    collection = _add(services, part, now)
    logger.info("part collected", part=part.id, collection=str(collection), files=part.files, bytes=part.bytes)
    return part


def _add(services: Services, part: Part, now: datetime) -> CollectionId:
    """Add a part to the newest collection of its hour, or to a new one.

    If a collection of the hour was closed for good, hours of its datasets may be announced as complete. These hours are
    touched before the part exists, so that no check misses it.
    """
    ledger = services.ledger
    for _ in range(MAX_TRIES):
        rows = ledger.collections.of_hour(part.hour)
        collection = rows[-1].id if rows else CollectionId.numbered(part.hour, 1)
        if rows and rows[-1].closed_at is None and rows[-1].is_full:
            ledger.collections.close(collection, now, final=any(row.final for row in rows))
        if rows and (rows[-1].closed_at is not None or rows[-1].is_full):
            collection = collection.next()
        if any(row.final for row in rows):
            for dataset in part.datasets:
                ledger.partitions.touch(Partition.parse(f"{dataset}#{part.hour}"), now)
        if ledger.collections.add(collection, part):
            return collection
    raise TransientError(f"{MAX_TRIES} collections of {part.hour} were closed concurrently: the sweep adds the part")


@dataclass(frozen=True, slots=True)
class RoutedArrival:
    """An arrival with its partition and lane."""

    file: ObjectVersion
    partition: Partition
    lane: Lane
    reason: str
    """Why it has this lane, as a sentence for people."""
    adopted_row: ArrivalRow | None = None
    """The current arrival row, if no owner will convert the file; None for a new arrival without a row."""
    urgent: bool = False


@dataclass(frozen=True, slots=True)
class Draft:
    """A future manifest or part: it exists once the ledger has its row."""

    id: str
    lane: Lane
    arrivals: tuple[RoutedArrival, ...]
    """Arrivals of one hour; in the stream lane also of one dataset."""
    urgent: bool

    @property
    def partition(self) -> Partition:
        return self.arrivals[0].partition

    @property
    def files(self) -> list[ObjectVersion]:
        return [arrival.file for arrival in self.arrivals]

    def manifest(self, created_at: str) -> Manifest:
        """``created_at`` is ISO 8601, UTC."""
        return Manifest(self.id, self.lane, self.partition, created_at, tuple(sorted(self.files)), self.urgent)


def cut_drafts(routed: Iterable[RoutedArrival], settings: Settings, new_id: Callable[[], str]) -> list[Draft]:
    """Drafts that hold every arrival exactly once.

    In the stream lane a draft is a manifest, cut by ``stream.manifest_bytes`` and ``stream.manifest_files``; a larger
    file gets a manifest of its own. In the batch lane each hour gets one draft, with files of all its datasets.
    """
    manifests: defaultdict[tuple[Partition, bool], list[RoutedArrival]] = defaultdict(list)
    parts: defaultdict[str, list[RoutedArrival]] = defaultdict(list)
    for arrival in routed:
        if arrival.lane == Lane.STREAM:
            manifests[arrival.partition, arrival.urgent].append(arrival)
        else:
            parts[arrival.partition.stamp].append(arrival)
    limits = settings.stream.manifest_bytes, settings.stream.manifest_files
    drafts = [
        Draft(new_id(), Lane.STREAM, piece, urgent)
        for (_, urgent), arrivals in manifests.items()
        for piece in cut(arrivals, lambda arrival: (arrival.file.size, 1), limits)
    ]
    return drafts + [Draft(new_id(), Lane.BATCH, tuple(arrivals), urgent=False) for arrivals in parts.values()]


@dataclass(frozen=True, slots=True)
class RowStamp:
    """The times in the arrival rows that one invocation writes."""

    recorded_at: str
    expires_at: int | None
    """Seconds since the epoch after which DynamoDB may delete rows that may expire; None if none may."""
    input_bucket: str

    def expiry(self, file: ObjectVersion) -> int | None:
        """When the row of a file may be deleted. Only a version of the input bucket expires, as it never arrives again.

        Without a version the same bytes can be put again, and a person can repeat a resubmission at any time.
        """
        return self.expires_at if file.version_id is not None and file.bucket == self.input_bucket else None


def record_drafts(ledger: Ledger, drafts: Sequence[Draft], stamp: RowStamp) -> tuple[list[Draft], list[ArrivalRow]]:
    """Write the arrival rows of all drafts. Returns drafts with the arrivals whose rows name them, and rows of others.

    A draft with an unconfirmed row is not returned: that row may still be written late, and must never name a manifest
    that does not list its file.
    """
    writes = [(draft, arrival) for draft in drafts for arrival in draft.arrivals]
    answers = iter(in_parallel(lambda write: _write_row(ledger, *write, stamp), writes))
    recorded, owned_elsewhere = [], []
    for draft in drafts:
        rows = [(arrival, next(answers)) for arrival in draft.arrivals]
        own = tuple(arrival for arrival, row in rows if row is not NO_ANSWER and row.manifest == draft.id)
        unconfirmed = any(row is NO_ANSWER for _, row in rows)
        if own and not unconfirmed:
            recorded.append(replace(draft, arrivals=own))
        owned_elsewhere += [row for _, row in rows if row is not NO_ANSWER and row.manifest != draft.id]
    return recorded, owned_elsewhere


def record_ignored(
    ledger: Ledger, ignored: Mapping[ObjectVersion, str], stamp: RowStamp
) -> tuple[list[ArrivalRow], list[ArrivalRow], list[ArrivalRow]]:
    """Write the arrival rows of ignored files. Returns the new rows, all rows without an owner, including the new
    ones, and the rows that an earlier decision gave to a manifest.
    """
    rows = [
        ArrivalRow(file, None, None, None, reason, stamp.recorded_at, stamp.expiry(file))
        for file, reason in ignored.items()
    ]
    answers = in_parallel(lambda row: _confirmed(ledger, row, ledger.arrivals.put), rows)
    # A put whose answer was lost may have written an equal row.
    new = [row for row, answer in zip(rows, answers, strict=True) if answer == row]
    current = [answer for answer in answers if answer is not NO_ANSWER]
    return new, [row for row in current if row.manifest is None], [row for row in current if row.manifest is not None]


def _write_row(ledger: Ledger, draft: Draft, arrival: RoutedArrival, stamp: RowStamp) -> ArrivalRow | NoAnswer:
    file, adopted, expiry = arrival.file, arrival.adopted_row, stamp.expiry(arrival.file)
    row = ArrivalRow(file, draft.id, arrival.partition, draft.lane, arrival.reason, stamp.recorded_at, expiry)
    if adopted is None:
        return _confirmed(ledger, row, ledger.arrivals.put)
    current = _confirmed(ledger, row, lambda row: ledger.arrivals.adopt(adopted, row))
    # The row still names the earlier owner: the unanswered update may be applied late.
    return NO_ANSWER if current is not NO_ANSWER and current.manifest == adopted.manifest else current


def _confirmed(ledger: Ledger, row: ArrivalRow, write: Callable[[ArrivalRow], ArrivalRow]) -> ArrivalRow | NoAnswer:
    """The current row after a write; read consistently if the write has no answer."""
    try:
        return write(row)
    except UNANSWERED as error:
        logger.warning("no answer to the write of an arrival row", uri=row.file.uri, error=str(error))
    try:
        return ledger.arrivals.get(row.file) or NO_ANSWER
    except UNANSWERED:
        return NO_ANSWER


def is_data(key: str) -> bool:
    """Whether people need to know that the file was ignored. Firehose's undelivered records are listed elsewhere."""
    name = key.rpartition("/")[2]
    return bool(name) and not (name.startswith(("_", ".")) or is_temporary(key) or key.startswith(FAILED_RECORDS))


def count_ignored(
    ledger: Ledger, ignored: Mapping[ObjectVersion, str], adopted: Iterable[Draft], now: datetime
) -> None:
    """Count the files that became IGNORED, and uncount the adopted ones, which now have an owner.

    An error is only logged, because it affects nothing but numbers for people.
    """
    groups: dict[str, list[ObjectVersion]] = {}
    for file, reason in ignored.items():
        groups.setdefault(reason, []).append(file)
    try:
        for reason, files in groups.items():
            ledger.ignored.add(reason, files, now)
        for arrival in (arrival for draft in adopted for arrival in draft.arrivals):
            row = arrival.adopted_row
            if row is not None and row.manifest is None and is_data(arrival.file.key):
                ledger.ignored.subtract(row.reason, arrival.file)
    except UNANSWERED as error:
        logger.warning("ignored files not counted", reasons=list(groups), error=str(error))
