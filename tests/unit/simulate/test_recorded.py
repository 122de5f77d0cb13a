"""The ledger's past day: every file once, however often its manifest was superseded."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from cli.simulate import Output, simulate_ledger
from lake.errors import InvalidInputError
from lake.manifest import Lane, Manifest, ObjectVersion, new_manifest_id, write_manifest
from lake.partition import Partition
from lake.time import iso_utc
from simulate.recorded import read_recorded
from tests.unit.lake.world import RESOURCES, World, new_world
from tests.unit.simulate.world import settings

if TYPE_CHECKING:
    from collections.abc import Iterator

NIGHT = datetime(2026, 11, 18, 22, tzinfo=UTC)
MORNING = NIGHT - timedelta(hours=13)


@pytest.fixture
def world() -> Iterator[World]:
    with new_world() as found:
        yield found


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


def stack(world: World) -> Any:
    return SimpleNamespace(s3=world.raw_s3, resources=RESOURCES)


def test_the_command_simulates_the_day(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    recorded(world, MORNING, *(file(f"{number}.json", MORNING) for number in range(3)))
    simulate_ledger(stack(world), settings(), "2026-11-18", Output(as_json=False, plots=None))
    out, err = capsys.readouterr()
    assert "3 files, 300 B a day" in out
    assert "1 manifest document of the day" in err


@pytest.mark.parametrize(
    ("day", "message"),
    [
        (None, "--date is missing: pass the local date"),
        ("18.11.", "--date 18.11. is not a date"),
        ("2026-11-17", "the ledger has no file of the 24 hours before 2026-11-17T22:00Z"),
    ],
)
def test_a_day_that_is_missing_or_empty_is_refused(world: World, day: str | None, message: str) -> None:
    recorded(world, MORNING, file("a.json", MORNING))
    with pytest.raises(InvalidInputError, match=message):
        simulate_ledger(stack(world), settings(), day, Output(as_json=False, plots=None))
