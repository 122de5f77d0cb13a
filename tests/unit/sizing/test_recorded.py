"""The ledger's past day: every file once, however often its manifest was superseded."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from cli.cost.sizing import Source, print_simulation
from lake.errors import InvalidInputError
from lake.ledger import DatasetMeasurement
from lake.manifest import Lane, Manifest, ObjectVersion, Partition, new_manifest_id
from lake.manifest_documents import write_manifest
from lake.time import iso_utc
from sizing.arrivals import RecordedArrivals, RecordedFile, read_recorded, windows_of_day
from tests.unit.lake.world import RESOURCES, World
from tests.unit.sizing.world import settings

NIGHT = datetime(2026, 11, 18, 22, tzinfo=UTC)
MORNING = NIGHT - timedelta(hours=13)


def file(name: str, arrived: datetime, version: str = "v1") -> ObjectVersion:
    return ObjectVersion("input", f"orders/{name}", "e", 100, iso_utc(arrived), version)


def recorded(world: World, at: datetime, *files: ObjectVersion) -> None:
    partition = Partition.of("orders", at)
    write_manifest(world.raw_s3, "control", Manifest(new_manifest_id(at), Lane.BATCH, partition, iso_utc(at), files))


def read(world: World) -> list[str]:
    return sorted(found.key for found in read_recorded(world.raw_s3, "control", "input", NIGHT, lambda _: None))


def test_every_version_of_the_day_is_there_once(world: World) -> None:
    # Given files of the day in manifests, which the night has merged
    first, second = file("a.json", MORNING), file("b.json.gz", MORNING + timedelta(hours=2))
    recorded(world, MORNING, first)
    recorded(world, MORNING + timedelta(hours=2), second, replace(second, version_id="v2"))
    recorded(world, NIGHT + timedelta(minutes=1), first, second)
    # And others of the day before and after, and one that was recorded late
    recorded(world, NIGHT - timedelta(days=2), file("old.json", NIGHT - timedelta(days=2)))
    recorded(world, NIGHT, file("next.json", NIGHT))
    recorded(world, NIGHT + timedelta(hours=2), file("late.json", NIGHT - timedelta(minutes=1)))
    # When, Then
    assert read(world) == ["orders/a.json", "orders/b.json.gz", "orders/b.json.gz", "orders/late.json"]


def source(world: World) -> Source:
    stack: Any = SimpleNamespace(s3=world.raw_s3, resources=RESOURCES, ledger=world.ledger)
    return Source(ledger=lambda: stack)


def test_the_command_simulates_the_day(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    recorded(world, MORNING, *(file(f"{number}.json", MORNING) for number in range(3)))
    print_simulation(source(world), settings(), "2026-11-18", as_json=False)
    out, err = capsys.readouterr()
    assert "3 files, 300 B a day" in out
    assert "1 manifest document of the day" in err


def test_the_speeds_are_those_that_the_ledger_has_measured(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    # Given plain and compressed files of a dataset of which plain ones were converted, at 3 MB/s, and of one of which
    # nothing was
    recorded(world, MORNING, file("a.json", MORNING), file("b.json.zst", MORNING))
    recorded(world, MORNING, replace(file("c.json", MORNING), key="clicks/c.json"))
    world.ledger.datasets.register("orders")
    world.ledger.datasets.add_measurement("orders", DatasetMeasurement(60_000_000, 1, 20_000))
    # When
    print_simulation(source(world), settings(), "2026-11-18", as_json=True)
    # Then
    found = [item for item in json.loads(capsys.readouterr().out)["assumptions"] if item["source"] == "the ledger"]
    (plain,) = found
    assert plain["name"] == "bytes of plain files of orders that a core converts"
    assert (plain["value"], plain["basis"]) == (3, "measured")


def test_files_take_the_time_that_their_dataset_has_measured(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    # Given a day of a dataset that converts a hundredth of what the settings assume
    recorded(world, MORNING, replace(file("a.json", MORNING), size=40_000_000_000))
    nights = []
    for slow in (False, True):
        if slow:
            world.ledger.datasets.register("orders")
            world.ledger.datasets.add_measurement("orders", DatasetMeasurement(40_000_000, 1, 100_000))
        # When
        print_simulation(source(world), settings(), "2026-11-18", as_json=True)
        found = json.loads(capsys.readouterr().out)
        nights.append(next(item for item in found["options"] if item["routing"] == "all-batch")["dollars"]["night"])
    # Then
    assert nights[1] > 20 * nights[0]


@pytest.mark.parametrize(
    ("day", "message"),
    [
        (None, "--date is missing: pass the local date"),
        ("18.11.", "--date .18.11.. is not a valid day"),
        ("2026-11-17", "the ledger has no file of the 24 hours before 2026-11-17T22:00Z"),
    ],
)
def test_a_day_that_is_missing_or_empty_is_refused(world: World, day: str | None, message: str) -> None:
    recorded(world, MORNING, file("a.json", MORNING))
    with pytest.raises(InvalidInputError, match=message):
        print_simulation(source(world), settings(), day, as_json=False)


def test_every_file_of_the_day_is_in_its_window() -> None:
    # Given two files that the settings treat alike in one window, and others, in any order
    files = [
        RecordedFile(key, size, (NIGHT - timedelta(seconds=seconds)).timestamp())
        for key, size, seconds in (
            ("clicks/d, e.json.gz", 400, 1),
            ("orders/b.json", 100, 46_781),
            ("orders/f.json", 500, 0),
            ("orders/urgent/c.json", 300, 46_780),
            ("orders/a.json", 100, 46_800),
        )
    ]
    # When
    windows = list(RecordedArrivals(files, settings(), NIGHT).windows())
    # Then the one of the next day is left out
    assert len(windows) == windows_of_day(settings()) == 4320
    found = {window: [(item.bytes, item.count) for item in groups] for window, groups in enumerate(windows) if groups}
    assert found == {1980: [(100, 2)], 1981: [(300, 1)], 4319: [(400, 1)]}
