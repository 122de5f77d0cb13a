"""Collections: the files of one hour, of all datasets, that the batch lane has received and not yet divided.

An invocation that owns files of the batch lane adds one part to the newest collection of their hour. A closed
collection takes no further part; its division lists the manifests that it became.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lake.documents import decode, decode_partial, encode
from lake.errors import OwnershipError
from lake.ledger.manifest_row import (
    INDEX_ATTRIBUTES,
    NO_PARTITION,
    CommitReference,
    ManifestRow,
    State,
    manifest_row_key,
    row_attributes,
)
from lake.ledger.table import Condition, Key, Rows, put_action, update_action
from lake.manifest import Lane
from lake.time import iso_utc

OPEN_COLLECTIONS = "collection"
"""Partition key of the index for undivided collections; ``open_order`` begins with the hour."""
MAX_FILES = 250_000
"""A collection with this number of files is full: the next caller opens another one. Dividing it takes 150 MiB."""
MAX_PARTS = 10_000
"""Maximum number of parts: 32 documents are read at a time, and all of them in about ten seconds."""


@dataclass(frozen=True, slots=True, order=True)
class CollectionId:
    hour: str
    name: str
    """A number of five digits, or the id of a part that was set apart from its collection."""

    def __str__(self) -> str:
        return f"{self.hour}/{self.name}"

    @classmethod
    def parse(cls, text: str) -> "CollectionId":
        hour, _, name = text.partition("/")
        return cls(hour, name)

    @classmethod
    def numbered(cls, hour: str, number: int) -> "CollectionId":
        return cls(hour, f"{number:05d}")

    @property
    def is_apart(self) -> bool:
        """Whether its only part was set apart, because the part's document was damaged."""
        return not self.name.isdigit()

    def next(self) -> "CollectionId":
        return self.numbered(self.hour, int(self.name) + 1)


@dataclass(frozen=True, slots=True)
class Part:
    """The files of one hour that one invocation owns. Its document lists them."""

    id: str
    hour: str
    created_at: str
    files: int
    bytes: int
    sha256: str
    datasets: tuple[str, ...]
    """Sorted names, which are known even if the document is damaged."""


@dataclass(frozen=True, slots=True)
class CollectionRow:
    id: CollectionId
    parts: int = 0
    files: int = 0
    bytes: int = 0
    closed_at: str | None = None
    """ISO 8601, UTC; None while it takes parts."""
    final: bool = False
    """Whether it was closed after its hour ended: later parts touch the hours of their datasets first."""
    division: CommitReference | None = None
    done: bool = False
    """Whether every manifest of the division is QUEUED."""

    @property
    def is_full(self) -> bool:
        """Whether a further part must go to the next collection."""
        return self.files >= MAX_FILES or self.parts >= MAX_PARTS


class Collections(Rows):
    def get(self, collection: CollectionId) -> CollectionRow | None:
        item = self._table.get(collection_key(collection))
        return None if item is None else _row(item)

    def of_hour(self, hour: str) -> list[CollectionRow]:
        """The numbered collections of an hour, oldest first, by a strongly consistent query.

        Parts that were set apart are not among them: they keep only the hours of their own datasets open.
        """
        rows = map(_row, self._table.query(_pk(hour)))
        return [row for row in rows if not row.id.is_apart]

    def open(self) -> Iterator[CollectionRow]:
        """Collections that are not done, oldest hours first, from the index: a hint."""
        return (_row(item) for item in self._table.query(OPEN_COLLECTIONS, index=True))

    def parts(self, collection: CollectionId) -> list[Part]:
        """The parts of a collection, oldest first, by a strongly consistent query."""
        return [_part(item) for item in self._table.query(_parts_of(collection))]

    def add(self, collection: CollectionId, part: Part) -> bool:
        """Add a part, whose document is already written, in one transaction. False: the collection is closed.

        The part's row has the key of a manifest's row, so that an owner that was presumed dead is refused. Raises
        ``OwnershipError`` if the caller was presumed dead: its part must not be used.
        """
        key, row_key = collection_key(collection), manifest_row_key(part.id)
        sums = {"parts": 1, "files": part.files, "bytes": part.bytes}
        is_open = [Condition("closed_at", "missing")]
        actions = [
            update_action(key, open_collection_attributes(collection), sums, conditions=is_open),
            put_action(row_key, part_row(part, collection)),
            put_action(part_item_key(collection, part.id), part_attributes(part), ()),
        ]
        if self._table.transact(actions):
            return True
        # The answer of an earlier try may have been lost.
        item = self._table.get(row_key)
        if item is not None and item["state"] == State.ABANDONED:
            raise OwnershipError(f"part {part.id} was presumed dead and abandoned: its events are redelivered")
        return item is not None

    def close(self, collection: CollectionId, now: datetime, *, final: bool) -> None:
        """Let no further part be added. Does nothing if it has no part or is closed already."""
        changes = {"closed_at": iso_utc(now), "final": final}
        conditions = [Condition("closed_at", "missing"), Condition("parts", ">", 0)]
        self._table.update(collection_key(collection), assign=changes, conditions=conditions)

    def close_hour(self, hour: str, now: datetime) -> bool:
        """Whether all collections of an ended hour are done and one is closed for good, so that no part can be missed.

        If none was closed for good, it closes an empty one: later parts touch the hours of their datasets first.
        """
        rows = self.of_hour(hour)
        if not all(row.done for row in rows):
            return False
        if any(row.final for row in rows):
            return True
        empty = rows[-1].id.next() if rows else CollectionId.numbered(hour, 1)
        changes = {"closed_at": iso_utc(now), "final": True, "done": True}
        if self._table.put(collection_key(empty), changes):
            return True
        current = self.get(empty)
        return current is not None and current.done and current.final

    def commit(self, collection: CollectionId, division: CommitReference) -> None:
        """Commit the division of a closed collection. If another one is committed already, it stays; read the row."""
        changes = {"division": encode(division)}
        conditions = [Condition("closed_at", ">", ""), Condition("division", "missing")]
        self._table.update(collection_key(collection), assign=changes, conditions=conditions)

    def set_apart(self, hour: str, part: Part, now: datetime) -> None:
        """Give a part with a damaged document a closed collection of its own. Idempotent."""
        collection = CollectionId(hour, part.id)
        self._table.put(part_item_key(collection, part.id), part_attributes(part), ())
        attributes = {
            "parts": 1,
            "files": part.files,
            "bytes": part.bytes,
            "closed_at": iso_utc(now),
            **open_collection_attributes(collection),
        }
        self._table.put(collection_key(collection), attributes)

    def finish(self, collection: CollectionId) -> None:
        """Take a carried-out collection out of the index. If its part was set apart, the part becomes SUPERSEDED."""
        if collection.is_apart:
            key, collected = manifest_row_key(collection.name), [Condition("state", "=", State.COLLECTED)]
            self._table.update(key, assign={"state": State.SUPERSEDED}, conditions=collected)
        self._table.update(collection_key(collection), assign={"done": True}, remove=INDEX_ATTRIBUTES)


def _pk(hour: str) -> str:
    return f"collection#{hour}"


def collection_key(collection: CollectionId) -> Key:
    return Key(_pk(collection.hour), collection.name)


def _parts_of(collection: CollectionId) -> str:
    return f"parts-of-collection#{collection}"


def part_item_key(collection: CollectionId, part: str) -> Key:
    return Key(_parts_of(collection), part)


def open_collection_attributes(collection: CollectionId) -> dict[str, str]:
    """The attributes that put the row of a collection into the index."""
    return {"open": OPEN_COLLECTIONS, "open_order": str(collection)}


def part_row(part: Part, collection: CollectionId) -> dict[str, Any]:
    row = ManifestRow(
        part.id,
        State.COLLECTED,
        Lane.BATCH,
        NO_PARTITION,
        part.created_at,
        part.bytes,
        part.files,
        manifest_sha256=part.sha256,
        changed_at=part.created_at,
        collection=str(collection),
    )
    return row_attributes(row)


def part_attributes(part: Part) -> dict[str, Any]:
    # One text: reading a list of hundreds of values would take longer than all other work on an hour's parts.
    return {**encode(part), "datasets": " ".join(part.datasets)}


def _part(item: dict[str, Any]) -> Part:
    # Interned, because the parts of an hour name the same datasets.
    return decode(Part, {**item, "datasets": map(sys.intern, item["datasets"].split(" "))})


def _row(item: dict[str, Any]) -> CollectionRow:
    return decode_partial(CollectionRow(CollectionId(item["pk"].removeprefix(_pk("")), item["sk"])), item)
