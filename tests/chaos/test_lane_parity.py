"""The same files through both lanes, cut, ordered and repeated at random: one expected lake, byte by byte."""

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

from lake.settings import UrgentSettings
from tests.chaos import runtime_patches
from tests.chaos.fault_space import DATASETS, settings
from tests.chaos.inputs import Input, body
from tests.chaos.processes import clients
from tests.chaos.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from local.cloud import LocalCloud
    from tests.chaos.inputs import Body

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
ROUNDS = 30
EVERY_KEY = UrgentSettings(("*",))
Lake = tuple[Counter[tuple[str, str]], Counter[tuple[str, str]]]


@pytest.fixture(scope="module")
def _patched(cloud: LocalCloud) -> Iterator[None]:
    with runtime_patches.installed():
        yield


def through(files: list[tuple[str, Body]], seed: int, *, stream: bool) -> World:
    """All files through one lane, however the seed cuts, orders and repeats them."""
    random = Random(seed)
    chosen = settings(random)
    if stream:
        chosen = replace(chosen, urgent=EVERY_KEY)
    world = World.create(clients(), random, chosen, versions=True)
    world.now = NOON
    events = []
    for key, content in files:
        version, _, event = world.put(key, content)
        world.inputs.append(Input(key, version, len(content.data), content.rows, content.rejects, content.readable))
        events += [event] * random.choice([1, 1, 2])
    random.shuffle(events)
    for number, event in enumerate(events):
        world.queue[f"e{number}"] = {**event, "messageId": f"e{number}"}
    for _ in range(ROUNDS):
        if world.queue:
            names = list(world.queue)
            world.route(names[: random.randint(1, len(names))])
        if random.random() < 0.3:
            world.seen.clear()
        world.stream(random.randint(1, 4))
        if not stream or random.random() < 0.3:
            world.night(twice=random.random() < 0.5)
        if not world.queue and not still_open(world):
            return world
    raise AssertionError(f"SEED={seed}: not at its end after {ROUNDS} rounds: {world.log}")


def still_open(world: World) -> bool:
    return any("open" in item for item in world.items())


def seen(world: World) -> Lake:
    """Rows and quarantine records as (partition, JSON text), without what names the deployment."""
    s3, resources = world.clients.s3, world.resources
    rows: Counter[tuple[str, str]] = Counter()
    records: Counter[tuple[str, str]] = Counter()
    for bucket in (resources.lake_bucket, resources.quarantine_bucket):
        for item in s3.list_objects_v2(Bucket=bucket).get("Contents", []):
            partition = item["Key"].rpartition("/")[0]
            data = s3.get_object(Bucket=bucket, Key=item["Key"])["Body"].read()
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
def test_both_lanes_give_one_lake(seed: int) -> None:
    # Given files of all kinds
    random = Random(seed)
    files = [
        (f"{random.choice(DATASETS)}/{number}.ndjson", body(random, f"f{number}", truncated=random.random() < 0.1))
        for number in range(random.randint(4, 9))
    ]

    # When they go through the stream in two ways, and through the batch lane
    worlds = [through(files, seed * 10 + number, stream=number < 2) for number in range(3)]

    # Then every lake is the expected one, and they are the same
    for number, world in enumerate(worlds):
        assert world.checker.violations(world.inputs) == [], f"SEED={seed}, way {number}"
    first, *others = map(seen, worlds)
    assert sum(first[0].values()) == sum(len(content.rows) for _, content in files)
    assert all(other == first for other in others)
