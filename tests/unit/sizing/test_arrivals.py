"""Arrivals of a profile and of a past day: every file once, at the time of the curve or the ledger."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer import BadParameter

from cli.cost.sizing import simulate_command
from lake.errors import InvalidInputError
from lake.ledger import DatasetMeasurement, SpeedSample
from lake.manifest import Lane, Manifest, ObjectVersion, Partition, has_compressed_name, new_manifest_id
from lake.manifest_documents import write_manifest
from lake.time import iso_utc
from sizing.arrivals import (
    PARALLEL_READS,
    RecordedFile,
    load_profile,
    parse_profile,
    read_recorded,
    recorded_arrivals,
    windows_of_day,
)
from tests.load.request_counts import counted_requests
from tests.unit.lake.world import RESOURCES, World
from tests.unit.sizing.world import arrivals, profile, settings


def files_by_hour(*, time_zone: str = "UTC", **fields: object) -> Counter[int]:
    of = settings(time_zone=time_zone)
    found = arrivals(profile(**fields), of)
    hours: Counter[int] = Counter()
    for number, groups in enumerate(found.windows):
        hours[(number * of.input.event_window_seconds // 3600 + 22) % 24] += sum(group.count for group in groups)
    return hours


@pytest.mark.parametrize(
    ("files", "datasets", "urgent", "gzip"),
    [(1, 1, 0, 0), (1, 7, 0.5, 0.5), (4, 4, 0.3, 0.3), (5000, 3, 0.01, 1), (4999, 7, 1, 0.1), (12345, 1, 0.999, 0.001)],
)
def test_every_file_arrives_once(files: int, datasets: int, urgent: float, gzip: float) -> None:
    found = arrivals(
        profile(
            files=files,
            datasets=datasets,
            urgent_share=urgent,
            gzip={"share": gzip},
            sizes=[{"bytes": 1}, {"bytes": 2, "share": 2}],
        ),
        settings(),
    )
    windows = found.windows
    assert len(windows) == windows_of_day(settings())
    assert sum(group.count for groups in windows for group in groups) == files
    assert all(group.count > 0 for groups in windows for group in groups)


def test_a_kind_of_less_than_half_a_file_has_none() -> None:
    # Given a hundred files of 1 MB, and one of 1 TB among a thousand files
    sizes = [{"bytes": 10**6, "share": 999}, {"bytes": 10**12}]
    # When, Then
    windows = arrivals(profile(files=100, sizes=sizes, urgent_share=0.001), settings()).windows
    assert {group.key: group.bytes for groups in windows for group in groups} == {"dataset/file.ndjson": 10**6}


@pytest.mark.parametrize("suffixes", [[".gz", ""], [".gz", ".json"], [".json", ""]])
def test_only_compressed_files_have_compressed_names(suffixes: list[str]) -> None:
    of = settings(input={"suffixes": suffixes})
    for share in (0, 1):
        (group,) = (
            group for groups in arrivals(profile(files=1, gzip={"share": share}), of).windows for group in groups
        )
        assert has_compressed_name(group.key) == bool(share)
        assert of.input.suffix_of(group.key) is not None


def test_files_arrive_in_the_local_hours_of_the_curve() -> None:
    hours = files_by_hour(files=1000, curve=[0] * 8 + [1] * 8 + [3] * 4 + [0] * 4, time_zone="Europe/Berlin")
    assert [hours[hour] for hour in (7, 8, 15, 16, 19, 20)] == pytest.approx([0, 50, 50, 150, 150, 0], abs=1)


def test_a_curve_without_an_hour_that_exists_is_refused() -> None:
    # Given the day on which the clock goes from 02:00 to 03:00
    with pytest.raises(InvalidInputError, match="2026-03-29 in Europe/Berlin"):
        files_by_hour(curve=[0, 0, 1] + [0] * 21, date="2026-03-29", time_zone="Europe/Berlin")


@pytest.mark.parametrize(
    ("fields", "groups", "message"),
    [
        ({"datasets": 2}, {"datasets": [{"name": "orders"}]}, r"the settings allow 1; add \[\[datasets]]"),
        ({"datasets": 4}, {"max_datasets": 3}, "allow 3; raise max_datasets"),
        ({}, {"urgent": {"keys": ["*"]}}, "pass settings whose rules do"),
    ],
)
def test_a_profile_that_the_rules_cannot_give_is_refused(fields: dict, groups: dict, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        arrivals(profile(**fields), settings(**groups))


SIZES = [{"bytes": 1000}]


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"sizes": SIZES}, ("files", "None", "required")),
        ({"files": 1}, ("sizes", "required")),
        ({"files": 1, "sizes": []}, ("sizes", "[[sizes]]")),
        ({"files": 1, "sizes": [{"bytes": 1, "share": 0}]}, ("sizes", "share above 0")),
        ({"files": 1, "sizes": SIZES, "files_a_day": 2}, ("files_a_day", "2", "known: files")),
        ({"files": 1, "sizes": SIZES, "urgent_share": 1.1}, ("urgent_share", "1.1", "from 0 to 1")),
        ({"files": 1, "sizes": SIZES, "curve": [1, 2]}, ("curve", "24 weights")),
        ({"files": 1, "sizes": SIZES, "curve": [0] * 24}, ("curve", "24 weights")),
        ({"files": 1, "sizes": SIZES, "date": "9999-12-31"}, ("date", "9999-12-31", "2026-11-18")),
    ],
)
def test_a_wrong_profile_is_refused_with_key_value_and_what_is_allowed(body: Any, named: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse_profile(body)
    assert [part for part in ("profile: ", *named) if part not in str(caught.value)] == []


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text("files = ", encoding="utf-8")
    for path in (broken, tmp_path / "missing.toml"):
        with pytest.raises(InvalidInputError, match=path.name):
            load_profile(path)


NIGHT = datetime(2026, 11, 18, 22, tzinfo=UTC)
MORNING = NIGHT - timedelta(hours=13)


def file(name: str, arrived: datetime, version: str = "v1") -> ObjectVersion:
    return ObjectVersion("input", f"orders/{name}", "e", 100, iso_utc(arrived), version)


def recorded(world: World, at: datetime, *files: ObjectVersion) -> None:
    partition = Partition.of("orders", at)
    write_manifest(world.raw_s3, "control", Manifest(new_manifest_id(at), Lane.BATCH, partition, iso_utc(at), files))


def read(world: World) -> list[str]:
    return sorted(found.key for found in read_recorded(world.raw_s3, "control", NIGHT, lambda _: None))


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
    # And repaired lines of the quarantine
    recorded(world, MORNING, replace(file("repaired.json", MORNING), bucket="control"))
    # And a file of the stage's previous input bucket
    recorded(world, MORNING, replace(file("earlier.json", MORNING), bucket="landing-zone-1"))
    # When, Then
    names = ["a.json", "b.json.gz", "b.json.gz", "earlier.json", "late.json"]
    assert read(world) == [f"orders/{name}" for name in names]


def test_documents_that_are_not_used_yet_are_not_read(world: World) -> None:
    # Given more documents than are read concurrently
    for number in range(PARALLEL_READS + 1):
        recorded(world, MORNING, file(f"{number}.json", MORNING))
    # When only the first file is taken
    found: Any = read_recorded(world.raw_s3, "control", NIGHT, lambda _: None)
    with counted_requests() as counts:
        assert next(found)
        found.close()
    # Then
    assert counts["GetObject"] <= PARALLEL_READS


@pytest.fixture
def stage(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    stack = SimpleNamespace(s3=world.raw_s3, resources=RESOURCES, ledger=world.ledger)
    monkeypatch.setattr("cli.cost.sizing.connect_to_stage", lambda *_, **__: stack)
    monkeypatch.setattr("cli.cost.sizing.load_settings", lambda _: settings())


@pytest.mark.usefixtures("stage")
def test_files_take_the_time_that_their_dataset_has_measured(world: World) -> None:
    # Given plain and compressed files of a dataset whose plain files were converted at a hundredth of the speed that
    # the settings assume
    recorded(world, MORNING, replace(file("a.json", MORNING), size=40_000_000_000), file("b.json.zst", MORNING))
    nights, known = [], []
    for slow in (False, True):
        if slow:
            world.ledger.datasets.admit({"orders": ""}, 0)
            world.ledger.datasets.add_measurement("orders", DatasetMeasurement(1, SpeedSample(40_000_000, 100_000)))
        # When
        found: Any = simulate_command(ledger=True, day="2026-11-18").document
        nights.append(next(item for item in found["options"] if item["routing"] == "all-batch")["dollars"]["night"])
        known.append({item["name"]: item["value"] for item in found["assumptions"] if item["basis"] == "measured"})
    # Then
    assert nights[1] > 20 * nights[0]
    assert dict(known[1].items() - known[0].items()) == {"bytes of plain files of orders that a core converts": 0.4}


@pytest.mark.usefixtures("stage")
@pytest.mark.parametrize(
    ("day", "message"),
    [
        ("18.11.", "--date .18.11.. is not a valid day"),
        ("2026-11-17", "the ledger has no file of the 24 hours before 2026-11-17T22:00Z"),
    ],
)
def test_a_day_that_is_missing_or_empty_is_refused(world: World, day: str, message: str) -> None:
    recorded(world, MORNING, file("a.json", MORNING))
    with pytest.raises(InvalidInputError, match=message):
        simulate_command(ledger=True, day=day)


@pytest.mark.usefixtures("stage")
@pytest.mark.parametrize(
    "options", [{"a_day": "2TB", "files_of": "3MB", "day": "2026-11-18"}, {"ledger": True}, {"day": "2026-11-18"}]
)
def test_a_day_is_for_the_ledger_alone(options: dict[str, Any]) -> None:
    with pytest.raises(BadParameter, match="pass one of a profile"):
        simulate_command(**options)


def test_every_file_of_the_day_is_in_its_window() -> None:
    # Given two files of one window with the same treatment in the settings, and others, in any order
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
    windows = recorded_arrivals(files, settings(), NIGHT).windows
    # Then the file of the next day is left out
    assert len(windows) == windows_of_day(settings()) == 4320
    found = {window: [(item.bytes, item.count) for item in groups] for window, groups in enumerate(windows) if groups}
    assert found == {1980: [(100, 2)], 1981: [(300, 1)], 4319: [(400, 1)]}
