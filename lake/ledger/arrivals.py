"""Arrival rows: one per object version, written by one conditional put. A row names the manifest that owns the arrival.

Rows are not listed, so IGNORED ones are also counted by reason.

Resubmissions of an hour are numbered, and a new one is recorded only if its number is free. Its writer has read all
earlier ones, so no two resubmissions of an hour hold the same line, even with several writers. Their rows never change.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from lake.documents import decode, encode
from lake.errors import OwnershipError
from lake.ledger.table import Condition, Key, Rows
from lake.manifest import Lane, ObjectVersion, Partition
from lake.time import iso_utc

EXPIRY = "expires_at"
"""The table's time-to-live attribute: DynamoDB deletes an item some time after this time, at no cost."""
EXPIRIES = "arrival-expiry"
"""Partition key of the values that ``ledger.keep_days`` has had."""


@dataclass(frozen=True, slots=True)
class ArrivalRow:
    file: ObjectVersion
    manifest: str | None
    """Id of the manifest that owns the arrival; None if the arrival is IGNORED."""
    partition: Partition | None
    lane: Lane | None
    reason: str
    """Why it has this lane, or why it is ignored: a sentence for people."""
    recorded_at: str
    """ISO 8601, UTC: when the current owner recorded it."""
    expires_at: int | None = None
    """Seconds since the epoch after which DynamoDB may delete the row; None if never."""


def arrival_key(bucket: str, key: str, version: str) -> Key:
    """Primary key of an arrival row. Bucket and key are hashed: an S3 key alone (1,024 bytes) can fill a sort key."""
    digest = hashlib.sha256(f"{bucket}\0{key}".encode()).hexdigest()
    return Key(f"arrival#{digest}", version)


class Arrivals(Rows):
    def put(self, row: ArrivalRow) -> ArrivalRow:
        """Record the arrival if it is new; returns the current row.

        The caller owns the arrival if the current row names its manifest. A consistent read resolves a refused put,
        because the answer of a put can be lost and the put repeated.
        """
        key = arrival_key(row.file.bucket, row.file.key, row.file.version)
        return row if self._table.put(key, encode(row)) else self._current(key)

    def adopt(self, current: ArrivalRow, row: ArrivalRow) -> ArrivalRow:
        """Give an arrival to the manifest of ``row``; returns the current row afterwards.

        ``current`` is IGNORED, or its owner can never publish the file. The update is refused if the arrival has
        another owner by now.
        """
        key = arrival_key(row.file.bucket, row.file.key, row.file.version)
        if current.manifest is None:
            unchanged = [Condition("recorded_at", ">", ""), Condition("manifest", "missing")]
        else:
            unchanged = [Condition("manifest", "=", current.manifest)]
        removed = () if row.expires_at else (EXPIRY,)
        adopted = self._table.update(key, assign=encode(row), remove=removed, conditions=unchanged)
        return row if adopted else self._current(key)

    def get(self, file: ObjectVersion) -> ArrivalRow | None:
        """The row of one object version, by a strongly consistent read; None if it has no row."""
        item = self._table.get(arrival_key(file.bucket, file.key, file.version))
        return None if item is None else decode(ArrivalRow, item)

    def get_many(self, files: Sequence[ObjectVersion]) -> list[ArrivalRow | None]:
        """The rows of up to ``MAX_BATCH_KEYS`` different object versions, in their order, by one consistent read."""
        items = self._table.get_many([arrival_key(file.bucket, file.key, file.version) for file in files])
        return [None if item is None else decode(ArrivalRow, item) for item in items]

    def versions(self, bucket: str, key: str) -> list[ArrivalRow]:
        """The rows of all recorded versions of a key, by a strongly consistent query."""
        return [decode(ArrivalRow, item) for item in self._table.query(arrival_key(bucket, key, "").pk)]

    def record_expiry(self, days: int, now: datetime) -> None:
        """Record that rows written until ``now`` may be deleted after ``days``: their expiry does not follow later
        settings. Idempotent."""
        self._table.update(Key(EXPIRIES, str(days)), assign={"until": iso_utc(now)})

    def expiries(self) -> dict[int, datetime]:
        """Days after which rows may be deleted -> time until which such rows were written; a consistent query."""
        return {int(item["sk"]): datetime.fromisoformat(item["until"]) for item in self._table.query(EXPIRIES)}

    def _current(self, key: Key) -> ArrivalRow:
        """The row that refused a write. Raises ``OwnershipError`` if a person has deleted it."""
        item = self._table.get(key)
        if item is None:
            raise OwnershipError("the ledger's row of an arrival was deleted meanwhile: its event is redelivered")
        return decode(ArrivalRow, item)


IGNORED_FILES = "ignored-files"
COUNTS_KEPT_FOR = timedelta(days=30)
"""Time for which a reason is listed after its last file."""
MAX_GROUPS = 1_000


@dataclass(frozen=True, slots=True)
class IgnoredGroup:
    """Files that were IGNORED for one reason and still are."""

    reason: str
    files: int
    bytes: int
    example: str
    """URI of the last file."""
    since: str
    """Time at which the first file was recorded; ISO 8601, UTC."""


class IgnoredFiles(Rows):
    def add(self, reason: str, files: Sequence[ObjectVersion], now: datetime) -> None:
        last = {"reason": reason, "example": files[-1].uri, EXPIRY: int((now + COUNTS_KEPT_FOR).timestamp())}
        counts = {"files": len(files), "bytes": sum(file.size for file in files)}
        self._table.update(_key(reason), assign=last, add=counts, initial={"since": iso_utc(now)})

    def subtract(self, reason: str, file: ObjectVersion) -> None:
        counts = {"files": -1, "bytes": -file.size}
        self._table.update(_key(reason), add=counts, conditions=[Condition("files", ">", 0)])

    def groups(self) -> tuple[list[IgnoredGroup], bool]:
        """The reasons that have files, most files first, and whether all reasons were read."""
        items = list(islice(self._table.query(IGNORED_FILES), MAX_GROUPS + 1))
        groups = [decode(IgnoredGroup, item) for item in items[:MAX_GROUPS] if item["files"] > 0]
        return sorted(groups, key=lambda group: (-group.files, group.reason)), len(items) <= MAX_GROUPS


def _key(reason: str) -> Key:
    return Key(IGNORED_FILES, hashlib.sha256(reason.encode("utf-8", "surrogateescape")).hexdigest()[:32])


@dataclass(frozen=True, slots=True)
class ResubmissionRow:
    name: str
    partition: Partition
    file: ObjectVersion
    """The repaired lines: the only version of this object that is ever converted."""
    document_sha256: str
    lines: int
    recorded_at: str


class Resubmissions(Rows):
    def of(self, partition: Partition) -> list[ResubmissionRow]:
        """All resubmissions of an hour in their order, by a strongly consistent query."""
        prefix = f"{partition.stamp}#"
        items = self._table.query(_pk(partition.dataset), after=prefix, before=f"{prefix}~")
        return [decode(ResubmissionRow, item) for item in items]

    def record(self, row: ResubmissionRow, number: int) -> bool:
        """Record it as the next one after ``number`` others. False: another one was recorded meanwhile.

        True also for a repetition, and after a lost answer: both find their own row.
        """
        key = Key(_pk(row.partition.dataset), f"{row.partition.stamp}#{number:06d}")
        if self._table.put(key, encode(row)):
            return True
        item = self._table.get(key)
        return item is not None and item["name"] == row.name


def _pk(dataset: str) -> str:
    return f"resubmission#{dataset}"
