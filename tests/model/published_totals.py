"""The totals in the row of a published generation are those of its commit document and of the visible objects."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import TYPE_CHECKING, Any

from tests.model.scheduler import Violation

if TYPE_CHECKING:
    from tests.model.world import World

Item = dict[str, Any]


def check_totals(world: World, identity: str, row: Item, document: Item) -> None:
    """Raise ``Violation`` unless the totals are those of ``document``, and the digests those of a listing."""
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
        # Those that it keeps of an earlier generation are under another prefix.
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
