"""The night in virtual time: divided and planned by the product's rules, and every file published once."""

from datetime import timedelta

import pytest

from lake.ledger import ManifestRow, State
from lake.manifest import Lane, Partition
from lake.settings import Settings
from sizing.assumptions import SETTLE_SECONDS, Work
from sizing.batch_lane import BacklogItem, collect_backlog, simulate_night
from sizing.routing import SimulatedManifest
from tests.unit.sizing.world import MB, NIGHT, settings

GLUE = settings(batch={"engines": ["glue"]})


def waiting(count: int, size: int, files: int = 1, longest: float = 1.0) -> list[SimulatedManifest]:
    partition = Partition("orders", "2026-11-18", 5)
    return [
        SimulatedManifest(
            ManifestRow(f"{number:06}", State.QUEUED, Lane.BATCH, partition, "", size, files),
            1000.0,
            1010.0,
            Work(size / (40 * MB), 1, longest),
        )
        for number in range(count)
    ]


def backlog(*manifests: SimulatedManifest, of: Settings = GLUE) -> list[BacklogItem]:
    return collect_backlog(manifests, of)


def test_what_invocations_have_received_of_an_hour_is_divided_by_the_limits_and_no_file_is_lost() -> None:
    limits = GLUE.batch
    found = backlog(*waiting(2 * limits.manifest_files, MB, files=3))
    assert len(found) == 7
    assert max(item.row.files for item in found) <= limits.manifest_files
    assert sum(item.row.files for item in found) == 6 * limits.manifest_files
    assert sum(files for item in found for _, files in item.arrived) == 6 * limits.manifest_files
    assert sum(item.core_seconds for item in found) == pytest.approx(2 * limits.manifest_files / 40)


def test_a_manifest_has_at_most_the_bytes_of_the_settings() -> None:
    limits = GLUE.batch
    found = backlog(*waiting(9, limits.manifest_bytes // 3))
    assert [item.row.files for item in found] == [3, 3, 3]


def test_a_night_ends_when_the_plan_says() -> None:
    # Given work in which neither a run fails nor a file is too long
    night = simulate_night(backlog(*waiting(300, 20_000 * MB)), GLUE, NIGHT)
    # Then the product's forecast and the simulation agree, but for the time after the last run
    assert night is not None
    after = timedelta(seconds=SETTLE_SECONDS)
    assert (night.end - after - night.start).total_seconds() / 60 == pytest.approx(
        night.planned.forecast.minutes, abs=0.1
    )
    assert night.dollars == pytest.approx(night.planned.forecast.dollars, abs=0.01)
    assert night.latencies.files == 300


def test_a_night_without_manifests_is_none() -> None:
    assert simulate_night(backlog(), GLUE, NIGHT) is None


def test_every_file_is_published_between_the_start_and_the_end() -> None:
    night = simulate_night(backlog(*waiting(300, 20_000 * MB)), GLUE, NIGHT)
    assert night is not None
    begin, end = (86_400 + (instant - NIGHT).total_seconds() - 1000 for instant in (night.start, night.end))
    latencies = [night.latencies.percentile(share) or 0 for share in (0.001, 1)]
    assert begin < latencies[0] < latencies[1] < end
    assert night.latencies.files == 300


def test_a_compressed_file_that_takes_long_makes_its_run_long() -> None:
    short, long = (
        simulate_night(backlog(*waiting(1, 20_000 * MB, longest=seconds)), GLUE, NIGHT) for seconds in (1, 7200)
    )
    assert short
    assert long
    assert (long.end - short.end).total_seconds() > 6000
