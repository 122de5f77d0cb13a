"""The same files through both lanes, split, ordered and repeated at random: both lanes write the same lake."""

from __future__ import annotations

import io
import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from lake.layout import is_complete_marker
from lake.ledger.manifest_row import OPEN_STATES
from lake.settings import UrgentSettings
from tests.chaos import runtime_patches
from tests.chaos.inputs import Input, random_body
from tests.chaos.processes import clients
from tests.chaos.random_settings import DATASETS, random_settings
from tests.chaos.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from local.cloud import LocalCloud
    from tests.chaos.inputs import Body

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
MAX_ROUNDS = 30
EVERY_KEY = UrgentSettings(("*",))
LakeContents = tuple[Counter[tuple[str, str]], Counter[tuple[str, str]]]


@pytest.fixture(scope="module")
def _patched(cloud: LocalCloud) -> Iterator[None]:
    with runtime_patches.installed():
        yield


def convert_in_lane(files: list[tuple[str, Body]], seed: int, *, stream: bool) -> World:
    """Convert all files in one lane; the seed decides how they are split, ordered and repeated."""
    random = Random(seed)
    settings = random_settings(random)
    if stream:
        settings = replace(settings, urgent=EVERY_KEY)
    world = World.create(clients(), random, settings, versions=True)
    world.now = NOON
    events = []
    for key, content in files:
        version, _, event = world.put(key, content)
        world.inputs.append(Input(key, version, len(content.data), content.rows, content.rejects, content.readable))
        events += [event] * random.choice([1, 1, 2])
    random.shuffle(events)
    for number, event in enumerate(events):
        world.queue[f"e{number}"] = {**event, "messageId": f"e{number}"}
    for _ in range(MAX_ROUNDS):
        if world.queue:
            names = list(world.queue)
            world.route(names[: random.randint(1, len(names))])
        if random.random() < 0.3:
            world.seen_pointers.clear()
        world.stream(random.randint(1, 4))
        if not stream or random.random() < 0.3:
            world.execution(duplicate_runs=random.random() < 0.5)
        if not world.queue and not has_open_manifests(world):
            return world
    raise AssertionError(f"SEED={seed}: manifests are still open after {MAX_ROUNDS} rounds: {world.log}")


def has_open_manifests(world: World) -> bool:
    return any(item.get("state") in OPEN_STATES for item in world.items() if item["pk"].startswith("manifest#"))


def lake_contents(world: World) -> LakeContents:
    """Rows and quarantine records as (partition, JSON text), without names of the deployment."""
    s3, resources = world.clients.s3, world.resources
    rows: Counter[tuple[str, str]] = Counter()
    records: Counter[tuple[str, str]] = Counter()
    for bucket in (resources.lake_bucket, resources.quarantine_bucket):
        for item in s3.list_objects_v2(Bucket=bucket).get("Contents", []):
            partition = item["Key"].rpartition("/")[0]
            data = s3.get_object(Bucket=bucket, Key=item["Key"])["Body"].read()
            if is_complete_marker(item["Key"]):
                continue
            if bucket == resources.lake_bucket:
                for row in pq.read_table(io.BytesIO(data)).to_pylist():
                    present = {name: value for name, value in row.items() if value is not None}
                    rows[partition, json.dumps(present, sort_keys=True)] += 1
            else:
                records.update((partition, _record(json.loads(line))) for line in data.splitlines())
    return rows, records


def _record(record: dict[str, Any]) -> str:
    source = record["source"].partition("-input/")[2]
    return json.dumps({**record, "source": source, "version": ""}, sort_keys=True)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.usefixtures("_patched")
def test_both_lanes_write_the_same_lake(seed: int) -> None:
    # Given files of all kinds
    random = Random(seed)
    files = [
        (
            f"{random.choice(DATASETS)}/{number}.ndjson",
            random_body(random, f"f{number}", truncated=random.random() < 0.1),
        )
        for number in range(random.randint(4, 9))
    ]

    # When the stream lane converts them twice with different splits, and the batch lane once
    worlds = [convert_in_lane(files, seed * 10 + number, stream=number < 2) for number in range(3)]

    # Then every lake has the expected contents, and all are equal
    for number, world in enumerate(worlds):
        assert world.checker.violations(world.inputs) == [], f"SEED={seed}, conversion {number}"
    first, *others = map(lake_contents, worlds)
    assert sum(first[0].values()) == sum(len(content.rows) for _, content in files)
    assert all(other == first for other in others)
