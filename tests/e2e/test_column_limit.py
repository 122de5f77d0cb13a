"""Objects keyed by UUIDs on the deployed stack: more columns than a dataset may have, and every member arrives."""

from __future__ import annotations

import io
import json
import random
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

import pyarrow.parquet as pq
import pytest

from lake.layout import lake_prefix
from lake.ledger import State
from tests.e2e.stack_settings import e2e_settings

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from lake.ledger import ManifestRow
    from lake.manifest import ObjectVersion
    from tests.e2e.scenario import Scenario

DATASET, NEIGHBOUR = "uuids", "beside_uuids"
FILES, ROWS_OF_FILE, MEMBERS_OF_ROW = 8, 60, 10
pytestmark = pytest.mark.long
"""``make permissions`` plays it; ``tests/integration/test_column_limit.py`` has the same limit without a stack."""
LIMIT = e2e_settings().convert.column_limit
RESCUED = "_rescued"
Members = tuple[tuple[str, str], ...]
"""Names and values of one row, sorted; each value as it is in the file."""


def rows_with_uuid_keys(rng: random.Random) -> list[dict[str, str]]:
    """The rows of one file: each key is there once, each value is JSON text that reading and printing would change."""

    def row(number: int) -> dict[str, str]:
        names = (str(UUID(int=rng.getrandbits(128), version=4)) for _ in range(MEMBERS_OF_ROW))
        return {name: f"{number}.{place}0" for place, name in enumerate(names)}

    return [row(number) for number in range(ROWS_OF_FILE)]


def line_of(row: dict[str, str]) -> str:
    return "{" + ",".join(f'"{name}": {value}' for name, value in row.items()) + "}"


def members(row: dict[str, str]) -> Members:
    return tuple(sorted(row.items()))


@dataclass(frozen=True)
class Generation:
    """What one generation of some manifests has published."""

    rows: Counter[Members]
    """Columns, by their original keys, together with what was rescued."""
    columns: frozenset[str]
    rescued: int
    """Members in ``_rescued``."""
    objects: int
    """Each task has written at least one."""


def published(scenario: Scenario, rows: Iterable[ManifestRow], generation: int) -> Generation:
    bodies = [body for row in rows for body in objects_of(scenario, row, generation)]
    found: Counter[Members] = Counter()
    columns: set[str] = set()
    rescued_members = 0
    for table in (pq.read_table(io.BytesIO(body)) for body in bodies):
        keys = {field.name: original_key(field) for field in table.schema if field.name != RESCUED}
        columns.update(keys.values())
        for record in table.to_pylist():
            rescued = json.loads(record.pop(RESCUED) or "{}", parse_float=str)
            rescued_members += len(rescued)
            in_columns = {keys[name]: value for name, value in record.items() if value is not None}
            found[members({**in_columns, **rescued})] += 1
    return Generation(found, frozenset(columns), rescued_members, len(bodies))


def objects_of(scenario: Scenario, row: ManifestRow, generation: int) -> list[bytes]:
    s3, bucket = scenario.deployment.s3, scenario.deployment.resources.lake_bucket
    listed = s3.list_objects_v2(Bucket=bucket, Prefix=lake_prefix(row.partition, row.id, generation))
    return [s3.get_object(Bucket=bucket, Key=item["Key"])["Body"].read() for item in listed["Contents"]]


def original_key(field: pa.Field) -> str:
    assert field.metadata is not None
    return str(field.metadata[b"original_key"].decode())


def owners(scenario: Scenario, files: Iterable[ObjectVersion]) -> list[ManifestRow]:
    """The DONE manifests that hold the files: those that a plan has merged are superseded."""
    manifests = scenario.deployment.ledger.manifests
    found = {}
    for file in files:
        row = scenario.manifest_of(file)
        while row is not None and row.state == State.SUPERSEDED:
            row = manifests.get(row.superseded_by[0])
        assert row is not None
        assert row.state == State.DONE, row.reason
        found[row.id] = row
    return list(found.values())


@pytest.fixture(scope="module")
def bodies() -> list[list[dict[str, str]]]:
    """The rows of each file."""
    rng = random.Random(7)
    return [rows_with_uuid_keys(rng) for _ in range(FILES)]


@pytest.fixture(scope="module")
def files(scenario: Scenario, bodies: list[list[dict[str, str]]]) -> list[ObjectVersion]:
    """Files with UUID keys, and as the last one a file of another dataset, converted in the same night."""
    put = [scenario.put(f"{DATASET}/{number}.ndjson", list(map(line_of, rows))) for number, rows in enumerate(bodies)]
    put.append(scenario.put(f"{NEIGHBOUR}/a.ndjson", ['{"a": 1.10, "b": 2}']))
    for file in put:
        scenario.wait_state(file, State.QUEUED)
    execution = scenario.execute(scenario.deployment.outputs.overnight, {})
    assert execution["status"] == "SUCCEEDED", execution.get("cause")
    return put


def assert_every_member_once(generation: Generation, bodies: list[list[dict[str, str]]]) -> None:
    assert generation.rows == Counter(members(row) for rows in bodies for row in rows)
    assert len(generation.columns) == LIMIT
    assert generation.rescued == FILES * ROWS_OF_FILE * MEMBERS_OF_ROW - LIMIT


def test_eight_files_with_more_keys_than_the_dataset_may_have_columns(
    scenario: Scenario, files: list[ObjectVersion], bodies: list[list[dict[str, str]]]
) -> None:
    # Then no member is lost, no try was used up, and the other dataset has its columns
    rows = owners(scenario, files[:FILES])
    first = published(scenario, rows, 1)
    assert first.objects == FILES
    assert_every_member_once(first, bodies)
    (beside,) = owners(scenario, files[FILES:])
    assert [row.tries for row in (*rows, beside)] == [1] * (len(rows) + 1)
    assert published(scenario, [beside], 1) == Generation(
        Counter([(("a", "1.10"), ("b", "2"))]), frozenset({"a", "b"}), 0, 1
    )


def test_a_replay_gives_the_same_rows(
    scenario: Scenario, files: list[ObjectVersion], bodies: list[list[dict[str, str]]]
) -> None:
    # Given the hours of the files
    stamps = [row.partition.stamp for row in owners(scenario, files[:FILES])]
    request = {"dataset": DATASET, "from": min(stamps), "to": max(stamps), "force": True}
    # When they are converted again, in a dataset that is full now
    execution = scenario.execute(scenario.deployment.outputs.backfill, request)
    # Then both generations have the same rows, in the same columns
    assert execution["status"] == "SUCCEEDED", execution.get("cause")
    rows = owners(scenario, files[:FILES])
    again = published(scenario, rows, 2)
    assert_every_member_once(again, bodies)
    assert again.columns == published(scenario, rows, 1).columns
