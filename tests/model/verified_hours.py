"""The product's ``verify`` over the model's stores: what it calls proven is published, and what is published is proven.

Only the comparison of one manifest's bytes is replaced, because the model has no Parquet.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import nullcontext
from datetime import datetime
from sqlite3 import connect
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from lake.layout import is_complete_marker, partition_prefix
from lake.partition import Partition
from tests.model.contents import INPUT_PREFIX
from tests.model.scheduler import Violation
from tests.model.world import PARTITION, name_of
from verify.hours import Effort, HoursCheck
from verify.manifest_check import _Comparison
from verify.report import Difference, HourOutcome
from verify.stack import Hours, Stack

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lake.manifest import ObjectVersion
    from tests.model.world import World
    from verify.report import HourReport


def check_hours(world: World, *, ended: bool) -> None:
    """Verify every hour in which a file has arrived. Raises ``Violation`` for a wrong outcome.

    Parameters
    ----------
    ended
        No work is left: an hour without a reason to the contrary must be proven. The input then expires, and what has
        published nothing must not be proven for that.
    """
    for hour in sorted({_hour_of(world, file) for file in world.arrived}):
        if _rows_may_have_expired(world, hour):
            continue
        report, reason = _verify(world, hour), _why_not_proven(world, hour)
        if report.outcome == HourOutcome.PROVEN and reason:
            raise Violation(f"verify calls {hour} proven, but {reason}")
        if ended and not reason and report.outcome != HourOutcome.PROVEN:
            raise Violation(f"verify does not prove {hour}: {[*map(str, report.differences), *report.unproven]}")
    if ended and any(row["state"] == "FAILED" for row in world.rows().values()):
        world.s3.buckets["input"].clear()
        world.s3.versions.get("input", {}).clear()
        check_hours(world, ended=False)


def _verify(world: World, hour: str) -> HourReport:
    services: Any = world.router(None)
    stack = Stack.of(services.s3, services.ledger, services.resources, world.settings, PARTITION.dataset, world.clock)
    with (
        patch.object(_Comparison, "run", _compare),
        # Folders and files would cost a fifth of a history.
        patch("tempfile.TemporaryDirectory", lambda **_: nullcontext("unused")),
        patch("sqlite3.connect", lambda _, **options: connect(":memory:", **options)),
    ):
        (report,) = HoursCheck(stack, Hours(PARTITION.dataset, hour, hour), Effort(), lambda _: None).run()
    return report


def _compare(comparison: _Comparison, *_: object, **__: object) -> None:
    """In place of the comparison of rows: every file of the manifest is in its objects, as the model writes them."""
    held: Counter[str] = Counter()
    for item in (*comparison.document.objects, *comparison.document.quarantine):
        held.update(_names_in(comparison.stack.s3.get_object(Bucket=item.bucket, Key=item.key)["Body"].read()))
    if held != Counter(map(name_of, comparison.manifest.files)):
        comparison.report.differs(Difference(comparison.manifest.id, f"its objects hold {dict(held)}"))


def _names_in(body: bytes) -> Iterator[str]:
    """The files whose row, or whose reference in the quarantine, an object has."""
    for record in map(json.loads, body.splitlines()):
        if "row" in record:
            yield record["row"]
        elif record.get("kind") == "file":
            yield f"{record['source'].removeprefix(INPUT_PREFIX)} {record['version']}"


def _why_not_proven(world: World, hour: str) -> str | None:
    """The reason for which an hour is not to be called proven, from the raw stores; shares no code with ``verify``."""
    published: Counter[tuple[str, str]] = Counter()
    names: Counter[str] = Counter()
    for identity, row in world.rows().items():
        if row.get("partition") != f"{PARTITION.dataset}#{hour}":
            continue
        if "published_key" in row:
            document = world.document(row["published_key"]) or {}
            if "objects" not in document:
                return f"{identity} has published a document that was changed"
            published.update((item["bucket"], item["key"]) for item in (*document["objects"], *document["quarantine"]))
        elif row["state"] not in ("SUPERSEDED", "ABANDONED"):
            return f"{identity} is {row['state']} and has published nothing"
    for bucket, key in published:
        names.update(_names_in(world.s3.buckets[bucket][key].body))
    prefix = partition_prefix(Partition(PARTITION.dataset, hour[:10], int(hour[11:])))
    for bucket in ("lake", "quarantine"):
        for key in world.s3.buckets[bucket]:
            if key.startswith(prefix) and not is_complete_marker(key) and (bucket, key) not in published:
                return f"readers see {key}, which is in no published generation"
    for file in world.arrived:
        selected = file.key.endswith(world.suffixes) and world.s3.has(file) and _hour_of(world, file) == hour
        if selected and names[name_of(file)] != 1:
            return f"{name_of(file)} is {names[name_of(file)]} times in what is published"
    return None


def _hour_of(world: World, file: ObjectVersion) -> str:
    """The hour that the ledger has recorded for a file, or that in which it arrived."""
    recorded = (world.arrival(file) or {}).get("partition")
    return str(recorded).partition("#")[2] if recorded else file.arrived_at[:13]


def _rows_may_have_expired(world: World, hour: str) -> bool:
    """Whether the command refuses the hour: the ledger may have forgotten its arrivals."""
    days = world.settings.ledger.keep_days
    return bool(days) and (world.now - datetime.fromisoformat(f"{hour}:00+00:00")).days >= days - 1
