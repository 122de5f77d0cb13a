"""Objects with more keys than a dataset may have columns: every row and key arrives, and no manifest waits for ever."""

import json
import random
from collections import Counter
from uuid import UUID

from pyspark.sql import SparkSession

from batch_job.main import run
from tests.integration.conversion_world import ConversionWorld, Row


def body_with_uuid_keys(rng: random.Random, keys: int) -> bytes:
    """Objects of ten keys each; no key is there twice."""
    names = [str(UUID(int=rng.getrandbits(128), version=4)) for _ in range(keys)]
    rows = [dict.fromkeys(names[start : start + 10], str(start)) for start in range(0, keys, 10)]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def members(row: Row) -> dict[str, str | None]:
    """What the input object had: columns together with what was rescued."""
    plain = {name: value for name, value in row.items() if name != "_rescued"}
    return {**plain, **json.loads(row.get("_rescued") or "{}")}


def test_eight_files_of_objects_keyed_by_uuids(world: ConversionWorld, spark: SparkSession) -> None:
    # Given: eight tasks that each find as many columns as a dataset may have, a second such manifest, a neighbour
    world.configure("convert", target_file_bytes=100_000, column_limit=200)
    rng = random.Random(7)
    bodies = [body_with_uuid_keys(rng, 600) for _ in range(9)]
    first = world.enqueue([world.put(f"orders/{number}.json", body) for number, body in enumerate(bodies[:8])])
    second = world.enqueue([world.put("orders/8.json", bodies[8])])
    neighbour = world.enqueue([world.put("visits/a.json", b'{"a":1}\n')], dataset="visits")

    # When
    document = world.put_run_document([first, second, neighbour])
    assert run(world.context(spark, "run-1"), {"run": document}) == 0

    # Then: all are DONE without having used up a try, the dataset is full, and nothing is lost
    assert [world.row(manifest).state for manifest in (first, second, neighbour)] == ["DONE"] * 3
    assert all(world.row(manifest).tries == 1 for manifest in (first, second, neighbour))
    dataset = world.services.ledger.datasets.get("orders")
    assert dataset is not None
    assert len(dataset.columns) == 200
    values = Counter(value for row in world.lake() for value in members(row).values())
    expected = Counter(value for body in bodies for line in body.splitlines() for value in json.loads(line).values())
    assert values == expected + Counter({"1": 1})
    assert any("go to _rescued" in line for line in world.log_lines)
    assert world.unfinished_uploads() == []
