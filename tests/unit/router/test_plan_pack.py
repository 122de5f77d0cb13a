"""plan: packing looks at few runs for each manifest, and fills them evenly."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from lake.ledger import ManifestRow, State
from lake.manifest import Lane
from lake.settings import parse_settings
from lake.settings.lanes import RUN_FILES
from router.plan import night as pack_module
from router.plan.night import MAX_TRIES, pack_evenly
from tests.unit.lake.world import PARTITION

GIB = 1 << 30
LIMITS = parse_settings({"stage": "t", "batch": {"run_bytes": 512 * GIB}}).batch


def manifest(number: int, size: int, files: int = 1) -> ManifestRow:
    return ManifestRow(f"m{number:05}", State.QUEUED, Lane.BATCH, PARTITION, "", size, files)


def seconds(row: ManifestRow) -> float:
    return row.bytes / GIB


def test_runs_take_about_the_same_time() -> None:
    # Given manifests of 1 to 64 GiB
    random = Random(1)
    backlog = [manifest(number, random.randint(1, 64) * GIB) for number in range(2000)]
    # When
    runs = pack_evenly(backlog, LIMITS, 150, seconds)
    # Then: no run is longer than the mean and a tenth of the largest manifest
    lengths = [sum(map(seconds, run.manifests)) for run in runs]
    assert len(runs) == 150
    assert max(lengths) <= sum(lengths) / len(lengths) + 6.4


def test_a_dataset_that_is_converted_slowly_weighs_more_than_its_bytes() -> None:
    # Given: a manifest that takes as long as four others of its size
    backlog = [manifest(number, 10 * GIB) for number in range(5)]
    # When
    runs = pack_evenly(backlog, LIMITS, 2, lambda row: 4.0 if row.id == "m00000" else 1.0)
    # Then
    assert sorted(len(run.manifests) for run in runs) == [1, 4]


@pytest.mark.parametrize("files", [lambda random: 1, lambda random: random.randint(1, RUN_FILES)])
def test_the_work_for_a_manifest_does_not_grow_with_the_number_of_runs(
    files: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given: sizes between nothing and a whole run
    random, checks = Random(1), 0
    backlog = [manifest(number, int(LIMITS.run_bytes * random.random()), files(random)) for number in range(1500)]
    has_room = pack_module._OpenRun.has_room

    def counted(run: Any, row: ManifestRow, limits: Any) -> bool:
        nonlocal checks
        checks += 1
        return has_room(run, row, limits)

    monkeypatch.setattr(pack_module._OpenRun, "has_room", counted)
    # When
    runs = pack_evenly(backlog, LIMITS, 1, seconds)
    # Then
    assert checks <= len(backlog) * MAX_TRIES
    assert sum(len(run.manifests) for run in runs) == len(backlog)
