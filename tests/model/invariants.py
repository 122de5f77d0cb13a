"""Invariants after every write and at the end. Reads the raw stores and shares no code with the product."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from tests.model.scheduler import Violation

if TYPE_CHECKING:
    from tests.model.world import World

LIVE = frozenset({"QUEUED", "RUNNING", "PUBLISHING", "DONE", "FAILED"})
Item = dict[str, Any]


class InvariantChecker:
    """Checks the world after every write; remembers the rows of the previous check.

    Every method raises ``Violation`` for a broken invariant.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._rows: dict[str, Item] = {}
        self._completed: set[str] = set()
        self._documents: dict[str, Item] = {}
        self._manifests: dict[str, list[str]] = {}

    def check(self) -> None:
        """The invariants that hold after every write."""
        world, rows = self._world, self._world.rows()
        for identity, row in rows.items():
            self._check_row(identity, row)
        self._check_one_live_manifest_per_file(rows)
        for identity, upload in world.s3.uploads.items():
            if upload.state == "completed" and identity not in self._completed:
                self._completed.add(identity)
                self._check_visible(identity, upload.key, rows)
        self._rows = rows

    def _check_row(self, identity: str, row: Item) -> None:
        if "document_key" in row:
            self._document(row["document_key"])
        if "published_key" in row:
            self._check_published(identity, self._document(row["published_key"]))
        if row["state"] == "DONE" and row["published_generation"] != row["generation"]:
            raise Violation(f"{identity} is DONE in generation {row['generation']}, but another one is published")
        if row["state"] == "FAILED" and not self._may_fail():
            raise Violation(f"{identity} is FAILED without a cause: {row['reason']}")
        before = self._rows.get(identity)
        if before is None:
            return
        if (row.get("generation", 0), row.get("attempt", 0)) < (before.get("generation", 0), before.get("attempt", 0)):
            raise Violation(f"{identity}: generation or attempt decreased")
        self._check_lease(identity, before, row)

    def _check_lease(self, identity: str, before: Item, row: Item) -> None:
        """An expired lease is claimed again, never renewed."""
        same_owner = all(before.get(name) == row.get(name) for name in ("attempt", "owner"))
        running = before["state"] == row["state"] == "RUNNING"
        expired = before.get("lease_until", 0) <= int(self._world.issued_at.timestamp() * 1000) - 3
        if running and same_owner and expired and row["lease_until"] > before["lease_until"]:
            raise Violation(f"{identity}: an expired lease was renewed")

    def _may_fail(self) -> bool:
        world = self._world
        return not {"lose_upload", "change_document"}.isdisjoint(world.events) or bool(world.poisonous)

    def _check_published(self, identity: str, document: Item) -> None:
        for item in (*document["objects"], *document["quarantine"]):
            visible = self._world.s3.buckets[item["bucket"]].get(item["key"])
            if visible is None or visible.etag != item["etag"]:
                raise Violation(f"{identity}: {item['key']} of its published generation does not exist")

    def _check_visible(self, upload: str, key: str, rows: dict[str, Item]) -> None:
        """An object becomes visible only through a commit document that the ledger names."""
        row = rows.get(key.rsplit("/", 1)[-1].partition("-g")[0], {})
        named = []
        if row.get("state") == "PUBLISHING":
            document = self._document(row["document_key"])
            named = [item["upload_id"] for item in (*document["objects"], *document["quarantine"])]
        if upload not in named:
            raise Violation(f"{key} became visible while its manifest is {row.get('state')} and does not name it")

    def _check_one_live_manifest_per_file(self, rows: dict[str, Item]) -> None:
        files: Counter[str] = Counter()
        for identity, row in rows.items():
            if row["state"] in LIVE:
                files.update(self._files(identity))
        twice = [file for file, number in files.items() if number > 1]
        if twice:
            raise Violation(f"{twice[0]} is in two live manifests")

    def _files(self, identity: str) -> list[str]:
        if identity not in self._manifests:
            body = self._world.document(f"manifests/{identity[:8]}/{identity}.json")
            if body is None:
                raise Violation(f"the manifest {identity} has a row and no document")
            self._manifests[identity] = [file[1] for file in body["files"]]
        return self._manifests[identity]

    def _document(self, key: str) -> Item:
        if key not in self._documents:
            body = self._world.document(key)
            if body is None:
                raise Violation(f"the commit document {key} does not exist")
            self._documents[key] = body
        return self._documents[key]

    def check_end(self) -> None:
        """The invariants that hold when no faults occur any more and sweep and workers have finished their work."""
        world, rows = self._world, self._world.rows()
        self.check()
        stuck = {identity: row["state"] for identity, row in rows.items() if row["state"] in LIVE - {"DONE", "FAILED"}}
        if stuck:
            raise Violation(f"not terminal at the end: {stuck}")
        if world.s3.open_uploads():
            raise Violation(f"uploads left over: {[world.s3.uploads[item].key for item in world.s3.open_uploads()]}")
        owned = Counter(
            file for identity, row in rows.items() if row["state"] in LIVE for file in self._files(identity)
        )
        if owned != Counter(file.key for file in world.arrived):
            raise Violation(f"files of live manifests: {dict(owned)}")
        self._check_lake(rows)

    def _check_lake(self, rows: dict[str, Item]) -> None:
        world = self._world
        named = set()
        expected: Counter[str] = Counter()
        for identity, row in rows.items():
            if "published_key" in row:
                document = self._document(row["published_key"])
                named |= {(item["bucket"], item["key"]) for item in (*document["objects"], *document["quarantine"])}
                expected.update(file for file in self._files(identity) if file not in world.unreadable)
            elif row["state"] == "DONE":
                raise Violation(f"{identity} is DONE and has published nothing")
        visible = {(bucket, key) for bucket in ("lake", "quarantine") for key in world.s3.buckets[bucket]}
        if visible != named:
            raise Violation(f"visible but not published, or published but not visible: {sorted(visible ^ named)}")
        found = Counter(
            json.loads(line)["row"] for item in world.s3.buckets["lake"].values() for line in item.body.splitlines()
        )
        if found != expected:
            raise Violation(f"rows in the lake: {dict(found)}, expected {dict(expected)}")
