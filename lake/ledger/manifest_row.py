"""The ledger row of a manifest: its state, all values that conditions compare, and counts over manifests."""

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from lake.documents import decode, encode
from lake.errors import TerminalError
from lake.ledger.table import Key
from lake.manifest import Lane, Manifest, Partition
from lake.time import epoch_milliseconds, iso_utc


@dataclass(frozen=True, slots=True)
class PublishedObjects:
    """Summary of the objects in one bucket: a listing shows by it whether one is missing or was replaced."""

    count: int
    bytes: int
    digest: str
    """SHA-256 (hexadecimal) of key, size and ETag of each object, in the order of the keys; empty without objects."""


@dataclass(frozen=True, slots=True)
class PublishedTotals:
    """Counts of one generation; the result document has them for each file."""

    rows: int
    rejects: dict[str, int]
    """Quarantined lines by reason; ``ndjson_arrow`` lists the reasons."""
    failed_files: int
    """Number of files that could not be read as a whole."""
    lake: PublishedObjects
    quarantine: PublishedObjects
    task_milliseconds: int
    """Time of the attempt's tasks, summed over cores."""


class ObjectsDigest:
    """Computes ``PublishedObjects`` from objects that are added in key order."""

    __slots__ = ("_bytes", "_count", "_hash")

    def __init__(self) -> None:
        self._count = self._bytes = 0
        self._hash = hashlib.sha256()

    def add(self, key: str, size: int, etag: str) -> None:
        """Add one object, with its size in bytes and its ETag without quotes."""
        self._count += 1
        self._bytes += size
        self._hash.update(f"{key}\0{size}\0{etag}\n".encode())

    def result(self) -> PublishedObjects:
        return PublishedObjects(self._count, self._bytes, self._hash.hexdigest() if self._count else "")


def digest_objects(objects: Iterable[tuple[str, int, str]]) -> PublishedObjects:
    """The summary of objects, each as (key, bytes, ETag), in any order."""
    digest = ObjectsDigest()
    for item in sorted(objects):
        digest.add(*item)
    return digest.result()


NO_OBJECTS = digest_objects(())


class State(StrEnum):
    QUEUED = "QUEUED"
    """It waits for a run."""
    RUNNING = "RUNNING"
    """An attempt holds its lease."""
    PUBLISHING = "PUBLISHING"
    """It is committed: any process can publish it from its commit document."""
    DONE = "DONE"
    FAILED = "FAILED"
    """This generation ended without a result; ``reason`` says why."""
    SUPERSEDED = "SUPERSEDED"
    """Its files are in the manifests of ``superseded_by``."""
    COLLECTED = "COLLECTED"
    """It is a part of ``collection``, not a manifest: its files are in the manifests of the collection's division."""
    ABANDONED = "ABANDONED"
    """It never existed: its creator was presumed dead before it wrote the row. Its arrivals are adopted."""


NO_PARTITION = Partition.parse("#0000-00-00T0")
"""Partition of an ABANDONED row, and of a part, whose files belong to several datasets."""

MAX_EARLIER_OWNERS = 10

OPEN_STATES = (State.QUEUED, State.RUNNING, State.PUBLISHING)
"""States that are not terminal, which runs, plans and sweeps still have to work on."""


@dataclass(frozen=True, slots=True)
class CommitReference:
    """A document that is committed: its key in the control bucket, and the SHA-256 (hexadecimal) of its bytes."""

    key: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Published:
    """The generation that readers see. It survives ``force`` and FAILED; only the next DONE changes it."""

    generation: int
    document: CommitReference
    totals: PublishedTotals


@dataclass(frozen=True, slots=True)
class Tabled:
    """The generation that the dataset's Iceberg table shows, with the batch and snapshot that brought it in."""

    generation: int
    document: CommitReference
    batch: int
    snapshot: int
    """Information for people and readers; the snapshot may have expired."""
    since: str
    """ISO 8601, UTC: time at which this generation was first marked, after readers could see it."""


@dataclass(frozen=True, slots=True)
class ManifestRow:
    id: str
    state: State
    lane: Lane
    partition: Partition
    created_at: str
    bytes: int
    files: int
    compressed_bytes: int = 0
    """The part of ``bytes`` in files with a compressed name."""
    urgent: bool = False
    manifest_sha256: str = ""
    generation: int = 1
    """Number of full conversions that were queued: 1, and one more for each ``force``."""
    attempt: int = 0
    """Number of attempts begun so far, over all generations. It never decreases."""
    base_attempt: int = 0
    """``attempt`` when this generation was queued, plus one for each attempt that used up no try."""
    owner: str | None = None
    """Id of the job run that holds, or last held, the lease."""
    claim_nonce: str | None = None
    """Random text, new with each claim: the threads of one job run have the same owner id."""
    earlier_owners: tuple[str, ...] = ()
    """Job runs of earlier attempts, oldest first; only the last ``MAX_EARLIER_OWNERS``."""
    lease_until: int = 0
    """End of the lease in milliseconds since the epoch."""
    document: CommitReference | None = None
    """Commit document of this generation; set from PUBLISHING on."""
    published: Published | None = None
    reason: str | None = None
    """Why it failed, was queued again or was superseded."""
    superseded_by: tuple[str, ...] = ()
    exclusions: str | None = None
    """Key of the exclusions document, which lists files that cannot be read to their end, with reasons."""
    changed_at: str = ""
    """ISO 8601, UTC: time of the last transition."""
    forced_at: str | None = None
    """``queued_at`` of a further generation; None for the first one."""
    finished_at: str | None = None
    request: str | None = None
    """Id of the request that queued this generation; None for the first one."""
    tabled: Tabled | None = None
    """None if the dataset has no Iceberg table, or no batch has brought the manifest into it."""
    collection: str | None = None
    """The collection of a part; None for a manifest."""

    @property
    def queued_at(self) -> str:
        """ISO 8601, UTC: time at which this generation was queued."""
        return self.forced_at or self.created_at

    @property
    def tries(self) -> int:
        """Number of this generation's attempts that count; ``max_attempts`` of the lane limits it."""
        return self.attempt - self.base_attempt

    def has_live_lease(self, now: datetime) -> bool:
        """Whether it is RUNNING and its holder may still renew or commit at ``now`` (aware)."""
        return self.state == State.RUNNING and self.lease_until > epoch_milliseconds(now)

    @property
    def is_tabled(self) -> bool:
        return (
            self.published is not None
            and self.tabled is not None
            and self.published.generation == self.tabled.generation
        )

    @property
    def open(self) -> bool:
        return self.state in OPEN_STATES

    @property
    def blocked(self) -> bool:
        """Whether it waits after an attempt without a result, or after a fault during its publish."""
        return self.state in (State.QUEUED, State.PUBLISHING) and self.reason is not None


def manifest_row_key(manifest: str) -> Key:
    return Key(f"manifest#{manifest}", "manifest")


def open_key(lane: Lane, state: str) -> str:
    """Partition key of the index. ``state`` is one of ``OPEN_STATES`` or a ``Failure``; other rows are not indexed."""
    return f"{lane}#{state}"


INDEX_ATTRIBUTES = ("open", "open_order")
"""A row is in the index while it has both attributes."""


def open_attributes(row: ManifestRow, state: str) -> dict[str, str]:
    """The attributes that put the row of a manifest into the index."""
    return {"open": open_key(row.lane, state), "open_order": f"{row.created_at}#{row.id}"}


def queued_row(manifest: Manifest, sha256: str = "") -> ManifestRow:
    """The first row of a manifest; ``sha256`` is its document's, empty for a draft without one."""
    return ManifestRow(
        id=manifest.id,
        state=State.QUEUED,
        lane=manifest.lane,
        partition=manifest.partition,
        created_at=manifest.created_at,
        bytes=manifest.bytes,
        files=len(manifest.files),
        compressed_bytes=manifest.compressed_bytes,
        urgent=manifest.urgent,
        manifest_sha256=sha256,
        changed_at=manifest.created_at,
    )


def row_attributes(row: ManifestRow) -> dict[str, Any]:
    """The attributes of a new row, with those of the index if the row is open."""
    attributes: dict[str, Any] = encode(row)
    return attributes | (open_attributes(row, row.state) if row.open else {})


def abandoned_row(manifest: str, now: datetime) -> ManifestRow:
    return ManifestRow(
        manifest, State.ABANDONED, Lane.BATCH, NO_PARTITION, "", 0, 0, generation=0, changed_at=iso_utc(now)
    )


def row_of(item: dict[str, Any]) -> ManifestRow:
    """The row of a DynamoDB item. Raises ``TerminalError`` if an attribute that is always written is missing."""
    try:
        row = decode(ManifestRow, item)
        if row.state == State.DONE and row.published is None:
            raise KeyError("published")
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise TerminalError(
            f"the ledger row of manifest {item.get('id')} is damaged ({type(error).__name__}: {error}), so nothing is "
            "done with it: deploy the version that wrote it, or restore the ledger to a point in time before the damage"
        ) from error
    return row


@dataclass(slots=True, kw_only=True)
class ManifestCounts:
    """Totals over manifests; its size depends on the number of reject reasons, not on the number of manifests."""

    done: int = 0
    failed: int = 0
    open: int = 0
    files: int = 0
    bytes: int = 0
    rows: int = 0
    rejects: Counter[str] = field(default_factory=Counter)
    failed_files: int = 0

    def count_state(self, row: ManifestRow) -> None:
        """Count a manifest by its current row; a SUPERSEDED or ABANDONED one is not counted."""
        self.done += row.state == State.DONE
        self.failed += row.state == State.FAILED
        self.open += row.open

    def count_files(self, row: ManifestRow) -> None:
        """Count the files of a manifest, and what it has published, perhaps by an earlier generation."""
        self.files += row.files
        self.bytes += row.bytes
        if row.published is not None:
            totals = row.published.totals
            self.rows += totals.rows
            self.rejects.update(totals.rejects)
            self.failed_files += totals.failed_files

    @property
    def quarantined_share(self) -> float:
        """Quarantined lines of all lines, or unreadable files of all files, whichever share is larger (0 to 1)."""
        lines = self.rows + self.rejects.total()
        by_lines = self.rejects.total() / lines if lines else 0.0
        return max(by_lines, self.failed_files / self.files if self.files else 0.0)
