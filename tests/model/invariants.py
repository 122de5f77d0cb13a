"""Invariants after every write and at the end. Reads the raw stores and shares no code with the product."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from lake.layout import is_complete_marker
from lake.time import iso_utc
from tests.model.collection_invariants import CollectionInvariants, Documents
from tests.model.fake_s3 import crc32_of
from tests.model.scheduler import Violation
from tests.model.world import GRACE, LONG_AGO, START, World, name_of

LIVE = frozenset({"QUEUED", "RUNNING", "PUBLISHING", "DONE", "FAILED"})
CLOCK_STEPS = timedelta(seconds=1)
"""More than the time that passes between reading the clock and sending the next request."""
Item = dict[str, Any]


class InvariantChecker:
    """Checks the world after every write; remembers the rows of the previous check.

    Every method raises ``Violation`` for a broken invariant.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._rows: dict[str, Item] = {}
        self._completed: set[str] = set()
        self._documents = Documents(world)
        self._collections = CollectionInvariants(world, self._documents)
        self._requests: dict[tuple[str, str], int] = {}
        """The generation that a request has queued of a manifest."""
        self._replaced: dict[tuple[str, str], datetime] = {}
        """Objects of replaced generations, by bucket and key, and when another generation was published."""

    def check(self) -> None:
        """The invariants that hold after every write."""
        world, rows = self._world, self._world.rows()
        for identity, row in rows.items():
            self._check_row(identity, row)
        self._check_one_live_manifest_per_file(rows)
        self._collections.check(rows)
        if world.announces_hours:
            self._collections.check_announced(rows)
        for identity, upload in world.s3.uploads.items():
            if upload.state == "completed" and identity not in self._completed:
                self._completed.add(identity)
                self._check_visible(identity, upload.key, rows)
        self._check_grace()
        # The items themselves change with the next write.
        self._rows = {identity: dict(row) for identity, row in rows.items()}

    def _check_row(self, identity: str, row: Item) -> None:
        if "document" in row:
            self._check_columns(identity, self._documents.get(row["document"]["key"]))
        self._check_request(identity, row)
        if "published" in row:
            self._check_published(identity, self._documents.get(row["published"]["document"]["key"]))
            check_totals(self._world, identity, row, self._documents.get(row["published"]["document"]["key"]))
        if row["state"] == "DONE" and row["published"]["generation"] != row["generation"] and not row.get("reason"):
            raise Violation(f"{identity} is DONE in generation {row['generation']}, but another one is published")
        if row["state"] == "FAILED" and not self._may_fail(identity, row):
            raise Violation(f"{identity} is FAILED without a cause: {row['reason']}")
        before = self._rows.get(identity)
        if before is None:
            return
        if (row.get("generation", 0), row.get("attempt", 0)) < (before.get("generation", 0), before.get("attempt", 0)):
            raise Violation(f"{identity}: generation or attempt decreased")
        if before.get("published", row.get("published")) != row.get("published"):
            keys = [item["published"]["document"]["key"] for item in (before, row)]
            self._check_replaced(identity, *map(self._documents.get, keys))
        self._check_lease(identity, before, row)

    def _check_columns(self, identity: str, document: Item) -> None:
        """Every column of a committed attempt was reserved before."""
        item = self._world.dynamodb.items.get((f"dataset#{document['partition'].partition('#')[0]}", "columns"), {})
        missing = set(document["new_columns"]) - set(item.get("columns", ()))
        if missing:
            raise Violation(f"{identity} has committed {len(missing)} columns that its dataset does not have")

    def _check_request(self, identity: str, row: Item) -> None:
        """A request queues a manifest once, however often it is repeated."""
        if row.get("request") is None:
            return
        queued = self._requests.setdefault((identity, row["request"]), row["generation"])
        if row["generation"] != queued:
            raise Violation(
                f"{row['request']} has queued {identity} twice: generations {queued} and {row['generation']}"
            )

    def _check_replaced(self, identity: str, before: Item, after: Item) -> None:
        """A file whose rows are published stays published."""
        lost = _read_files(before) - _read_files(after)
        if lost:
            raise Violation(f"{identity} has replaced the rows of {sorted(lost)} by none")
        named = [(item["bucket"], item["key"]) for item in (*after["objects"], *after["quarantine"])]
        for item in (*before["objects"], *before["quarantine"]):
            if (item["bucket"], item["key"]) not in named:
                self._replaced[item["bucket"], item["key"]] = self._world.issued_at

    def _check_grace(self) -> None:
        """A query that has listed the objects of a replaced generation can still read them in the grace period."""
        for (bucket, key), replaced_at in list(self._replaced.items()):
            if key in self._world.s3.buckets[bucket]:
                continue
            del self._replaced[bucket, key]
            if self._world.now - replaced_at < GRACE - CLOCK_STEPS:
                raise Violation(f"{key} was deleted within the grace period")

    def _check_lease(self, identity: str, before: Item, row: Item) -> None:
        """An expired lease is claimed again, never renewed."""
        same_owner = all(before.get(name) == row.get(name) for name in ("attempt", "owner"))
        running = before["state"] == row["state"] == "RUNNING"
        expired = before.get("lease_until", 0) <= int(self._world.issued_at.timestamp() * 1000) - 3
        if running and same_owner and expired and row["lease_until"] > before["lease_until"]:
            raise Violation(f"{identity}: an expired lease was renewed")

    def _may_fail(self, identity: str, row: Item) -> bool:
        """An event has made this generation's publish impossible, or its files are poisonous.

        Poison affects no other file: it fails alone, unless the manifest was published before and so cannot be
        divided.
        """
        if (identity, row["generation"]) in self._world.causes:
            return True
        keys = {name.partition(" ")[0] for name in self._documents.files_of(identity)}
        poisonous = keys & self._world.poisonous
        return bool(poisonous) and (poisonous == keys or "published" in row)

    def _check_published(self, identity: str, document: Item) -> None:
        for item in (*document["objects"], *document["quarantine"]):
            visible = self._world.s3.buckets[item["bucket"]].get(item["key"])
            if visible is None or crc32_of(visible.body) != item["checksum"]:
                raise Violation(f"{identity}: {item['key']} of its published generation does not exist")

    def _check_visible(self, upload: str, key: str, rows: dict[str, Item]) -> None:
        """An object becomes visible only through a commit document that the ledger names."""
        row = rows.get(key.rsplit("/", 1)[-1].partition("-g")[0], {})
        named = []
        if row.get("state") == "PUBLISHING":
            document = self._documents.get(row["document"]["key"])
            named = [item["upload_id"] for item in (*document["objects"], *document["quarantine"])]
        if upload not in named:
            raise Violation(f"{key} became visible while its manifest is {row.get('state')} and does not name it")

    def _check_one_live_manifest_per_file(self, rows: dict[str, Item]) -> None:
        files: Counter[str] = Counter()
        for identity, row in rows.items():
            if row["state"] in LIVE:
                files.update(self._documents.files_of(identity))
        for _, names in self._collections.holders(rows):
            files.update(names)
        twice = [file for file, number in files.items() if number > 1]
        if twice:
            raise Violation(f"{twice[0]} has two holders")

    def check_end(self) -> None:
        """The invariants that hold after the last fault, when sweep and workers have finished their work."""
        world, rows = self._world, self._world.rows()
        self.check()
        check_costs(world)
        stuck = {identity: row["state"] for identity, row in rows.items() if row["state"] in LIVE - {"DONE", "FAILED"}}
        if stuck:
            raise Violation(f"not terminal at the end: {stuck}")
        if world.s3.open_uploads():
            raise Violation(f"uploads left over: {[world.s3.uploads[item].key for item in world.s3.open_uploads()]}")
        if intents := [key for key in world.s3.buckets["control"] if key.startswith("intents/")]:
            raise Violation(f"intents left over: {intents}")
        self._collections.check_end()
        self._check_owned(rows)
        self._check_hour_is_complete(rows)
        named = {}
        for identity, row in rows.items():
            if "published" in row:
                named[identity] = self._documents.get(row["published"]["document"]["key"])
            elif row["state"] == "DONE":
                raise Violation(f"{identity} is DONE and has published nothing")
        for identity, document in named.items():
            unread = [source["uri"] for source in document["sources"] if "failed" in source]
            if (
                unread
                and rows[identity]["state"] == "DONE"
                and not rows[identity].get("open", "").endswith("UNREADABLE")
            ):
                raise Violation(f"{unread[0]} is in no row, and {identity} is not listed as a failure")
        check_contents(world, named, {identity: self._documents.files_of(identity) for identity in named})

    def _check_hour_is_complete(self, rows: dict[str, Item]) -> None:
        """A reprocess of deleted files does not remove the hour's marker permanently."""
        if not self._world.inputs_expired or self._world.causes:
            return
        rows = {identity: row for identity, row in rows.items() if "collection" not in row}
        if any(row["state"] != "DONE" for row in rows.values()):
            raise Violation(f"files are gone for ever, and manifests are {[row['state'] for row in rows.values()]}")
        if not any(map(is_complete_marker, self._world.s3.buckets["lake"])):
            raise Violation("files are gone, and the hour is not complete again")

    def _check_owned(self, rows: dict[str, Item]) -> None:
        """Each file is in one live manifest.

        An ignored file is in none. A file with a lost event may be in none if its bytes were gone before a listing, or
        if it is older than the listing of the sweep: then only an arrival row promises an owner.
        """
        world = self._world
        live = [identity for identity, row in rows.items() if row["state"] in LIVE]
        owned = Counter(name for identity in live for name in self._documents.files_of(identity))
        expected = {name_of(file): file for file in world.arrived if file.key.endswith(world.suffixes)}
        surplus = [name for name, number in owned.items() if number > 1 or name not in expected]
        if surplus:
            raise Violation(
                f"{surplus[0]} is in {owned[surplus[0]]} live manifests, its arrival is {expected.get(surplus[0])}"
            )
        for name, file in expected.items():
            listed = world.s3.has(file) and file.arrived_at > iso_utc(START - LONG_AGO / 2)
            if name not in owned and (listed or world.arrival(file) is not None):
                raise Violation(f"{name} arrived, and is in no live manifest")


def _read_files(document: Item) -> set[tuple[str, str]]:
    return {(source["uri"], source["version"]) for source in document["sources"] if "failed" not in source}


def check_totals(world: World, identity: str, row: Item, document: Item) -> None:
    """Raise ``Violation`` unless the totals match ``document``, and the digests match a listing."""
    totals = row["published"]["totals"]
    rejects: Counter[str] = Counter()
    for source in document["sources"]:
        rejects.update(source["rejects"])
    expected: Item = {
        "rows": sum(item["rows"] for item in document["objects"]),
        "rejects": dict(+rejects),
        "failed_files": sum("failed" in source for source in document["sources"]),
        "task_milliseconds": document["task_milliseconds"],
    }
    for name, objects in (("lake", document["objects"]), ("quarantine", document["quarantine"])):
        # The objects kept from an earlier generation are under another prefix.
        written = [item for item in objects if f"-g{document['generation']}-" in item["key"]]
        expected[name] = _digest(world, written) if written else {"count": 0, "bytes": 0, "digest": ""}
    if totals != expected:
        raise Violation(f"{identity} has the totals {totals}, and its published generation {expected}")


def _digest(world: World, objects: list[Item]) -> Item:
    lines, size = [], 0
    for item in sorted(objects, key=lambda item: str(item["key"])):
        visible = world.s3.buckets[item["bucket"]][item["key"]]
        lines.append(f"{item['key']}\0{len(visible.body)}\0{visible.etag}\n")
        size += len(visible.body)
    digest = hashlib.sha256("".join(lines).encode()).hexdigest()
    return {"count": len(objects), "bytes": size, "digest": digest}


def check_costs(world: World) -> None:
    """Raise ``Violation`` unless the cost rows add up."""
    items = world.dynamodb.items.items()
    days: dict[str, int] = {}
    for (pk, job_run), item in items:
        if not pk.startswith("cost#"):
            continue
        parts = sum(share["micro_dollars"] for share in item["shares"])
        if parts != item["micro_dollars"]:
            raise Violation(f"job run {job_run} costs {item['micro_dollars']}, and its parts {parts}")
        day = pk.rpartition("#")[2]
        days[day] = days.get(day, 0) + item["micro_dollars"]
    sums = {day: item["micro_dollars"] for (pk, day), item in items if pk == "cost-sum"}
    if sums != days:
        raise Violation(f"the job runs of each day cost {days}, and the sums of the days are {sums}")


INPUT_PREFIX = "s3://input/"


def check_contents(world: World, documents: Mapping[str, dict[str, Any]], files: Mapping[str, Sequence[str]]) -> None:
    """Lake and quarantine hold what the published manifests promise, and nothing else. Raises ``Violation``.

    ``documents``: the commit document of each published manifest, by its id. ``files``: its files, each as ``name_of``
    gives it.
    """
    _check_objects(world, documents)
    for document in documents.values():
        _check_counts(world, document)
    published = Counter(name for names in files.values() for name in names)
    rows = Counter(record["row"] for record in _records(world, "lake"))
    quarantine = list(_records(world, "quarantine"))
    references = Counter(
        f"{record['source'].removeprefix(INPUT_PREFIX)} {record['version']}"
        for record in quarantine
        if record.get("kind") == "file"
    )
    if rows + references != published:
        raise Violation(f"rows {dict(rows)} and files in quarantine {dict(references)} are not {dict(published)}")
    # If two manifests have published a file, one can be SUPERSEDED, which holds nothing.
    doubled = [name for name, number in rows.items() if number > 1]
    if doubled:
        raise Violation(f"the rows of {doubled[0]} are published {rows[doubled[0]]} times")
    readable = [name for name in references if not may_be_unreadable(world, name)]
    if readable:
        raise Violation(f"{readable[0]} is in the quarantine by reference, and could be read all the time")
    rejects = Counter(record["reject"] for record in quarantine if "reject" in record)
    expected = Counter(name for name in rows if name.partition(" ")[0].endswith("a.ndjson"))
    if rejects != expected:
        raise Violation(f"lines in the quarantine: {dict(rejects)}, expected {dict(expected)}")


def may_be_unreadable(world: World, name: str) -> bool:
    """Whether a file of this name was unreadable at some time of the history."""
    if name.partition(" ")[0] in world.unreadable or name in world.once_missing:
        return True
    return any(name_of(file) == name and not world.s3.has(file) for file in world.arrived)


def _check_objects(world: World, documents: Mapping[str, dict[str, Any]]) -> None:
    named = {
        (item["bucket"], item["key"])
        for document in documents.values()
        for item in (*document["objects"], *document["quarantine"])
    }
    keys = ((bucket, key) for bucket in ("lake", "quarantine") for key in world.s3.buckets[bucket])
    visible = {(bucket, key) for bucket, key in keys if not is_complete_marker(key)}
    if visible != named:
        raise Violation(f"visible but not published, or published but not visible: {sorted(visible ^ named)}")


def _check_counts(world: World, document: dict[str, Any]) -> None:
    """The counts of a commit document match its objects."""
    keys = [item["key"] for item in (*document["objects"], *document["quarantine"])]
    if len(set(keys)) != len(keys):
        raise Violation(f"the commit document of {document['manifest']} names an object twice")
    records = {
        bucket: [record for key in keys for record in _lines(world, bucket, key)] for bucket in ("lake", "quarantine")
    }
    sources = document["sources"]
    found = (
        len(records["lake"]),
        sum("reject" in record for record in records["quarantine"]),
        sum(record.get("kind") == "file" for record in records["quarantine"]),
    )
    counted = (
        sum(source["rows"] for source in sources),
        sum(sum(source["rejects"].values()) for source in sources),
        sum("failed" in source for source in sources),
    )
    if counted != found:
        raise Violation(f"{document['manifest']} counts {counted} rows, rejects and files, its objects hold {found}")


def _records(world: World, bucket: str) -> Iterator[dict[str, Any]]:
    for key in (key for key in world.s3.buckets[bucket] if not is_complete_marker(key)):
        yield from _lines(world, bucket, key)


def _lines(world: World, bucket: str, key: str) -> Iterator[dict[str, Any]]:
    item = world.s3.buckets[bucket].get(key)
    return iter(()) if item is None else map(json.loads, item.body.splitlines())
