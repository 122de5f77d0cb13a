"""Invariants of ownership: each file in one live manifest, in its lane, with a pointer where the stream needs one.

The checks read the raw stores and share no code with the product. Each raises ``Violation``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.model.collection_invariants import CollectionInvariants
from tests.model.invariants import LIVE
from tests.model.scheduler import Violation

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from tests.model.world import World


def check_owners(world: World) -> dict[str, str]:
    """Each file is in at most one live manifest, every acknowledged file in exactly one, and documents equal rows.

    Returns
    -------
    The id of the live manifest of each file, by the file's key.
    """
    owners: dict[str, str] = {}
    collections = CollectionInvariants(world)
    for holder, names in collections.holders(world.rows()):
        for name in names:
            owners[name.partition(" ")[0]] = holder
    for identity, row in _live(world):
        body = world.document(f"manifests/{identity[:8]}/{identity}.json")
        if body is None:
            raise Violation(f"{identity} is {row['state']} and has no document")
        partition = f"{body['dataset']}#{body['date']}T{body['hour']:02d}"
        written = (body["id"], body["lane"], partition, len(body["files"]), sum(file[4] for file in body["files"]))
        if written != (identity, row["lane"], row["partition"], row["files"], row["bytes"]):
            raise Violation(f"{identity}: its document says {written}, its row {row}")
        for file in body["files"]:
            if file[1] in owners:
                raise Violation(f"{file[1]} is in two live manifests: {owners[file[1]]} and {identity}")
            owners[file[1]] = identity
    for file in world.acknowledged:
        owner = owners.get(file.key)
        if owner not in _last_successors(world, file.key):
            raise Violation(f"{file.key} was acknowledged and is in {owner}, but its arrival leads to another manifest")
    return owners


def check_lanes(world: World, stream: Collection[str]) -> None:
    """Every arrived file is in a live manifest: the files named in ``stream`` in that lane, all others in batch."""
    rows = dict(_live(world))
    lanes = {key: rows.get(identity, {}).get("lane", "batch") for key, identity in check_owners(world).items()}
    expected = {
        file.key: "stream" if file.key.split("/")[1].removesuffix(".ndjson") in stream else "batch"
        for file in world.arrived
    }
    if lanes != expected:
        raise Violation(f"the files are in the lanes {lanes}, expected {expected}")


def check_pointers(world: World) -> None:
    """Every QUEUED manifest of the stream lane has a pointer that no query has read."""
    inbox = [key for key in world.s3.buckets["control"] if key.startswith("inbox/") and key not in world.seen_pointers]
    named = {json.loads(world.s3.buckets["control"][key].body)["manifest"] for key in inbox}
    for identity, row in _live(world):
        if (row["lane"], row["state"]) == ("stream", "QUEUED") and identity not in named:
            raise Violation(f"{identity} waits for the stream without a pointer")


def _live(world: World) -> Iterator[tuple[str, dict[str, Any]]]:
    return ((identity, row) for identity, row in sorted(world.rows().items()) if row["state"] in LIVE)


def _last_successors(world: World, key: str) -> set[str]:
    """The manifests at the ends of the chain of successors that begins at the file's arrival row."""
    rows = world.rows()
    pending = [item["manifest"] for item in world.dynamodb.items.values() if item.get("key") == key]
    found: set[str] = set()
    while pending:
        identity = pending.pop()
        row = rows.get(identity, {})
        divided = CollectionInvariants(world).manifests_of(identity, row) if "collection" in row else []
        if row.get("state") == "SUPERSEDED" or divided:
            pending += divided or row["superseded_by"]
        else:
            found.add(identity)
    return found
