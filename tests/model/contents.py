"""Invariants of what readers find in the end: each published file once, as a row or in the quarantine by reference."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from lake.layout import is_complete_marker
from tests.model.scheduler import Violation
from tests.model.world import name_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tests.model.world import World

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
    """Whether a file of this name could not be read at some time of the history."""
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
    """What a commit document counts is what its objects hold."""
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
