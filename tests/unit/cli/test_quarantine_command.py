"""`hybrid-router quarantine ls`, `show` and `export`: what of the quarantine they select, and what they tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.errors import ExitCode
from cli.quarantine.listing import print_quarantine, print_records
from cli.quarantine.records import parse_quarantine_selection
from cli.quarantine.repair import export_lines, line_digest, origins_file, read_origins
from lake.commit import PendingObject
from lake.errors import InvalidInputError, TerminalError
from lake.layout import quarantine_key
from lake.manifest import Partition
from tests.unit.cli.quarantined import converted, line_of, published
from tests.unit.cli.stack_world import FakeServices, stack_of
from tests.unit.lake.world import PARTITION, World

LATER = Partition("orders", "2026-11-20", 10)
EVENING = Partition("orders", "2026-11-20", 20)
WHOLE = {"kind": "file", "source": "s3://input/orders/b", "version": "v1", "offset": 0, "length": 9, "reason": "gone"}


@pytest.fixture
def world(world: World) -> World:
    converted(world, [line_of("\x1b[2J", 5), line_of("[1]", 9, reason="not an object"), WHOLE], "a", "b")
    counted = {**line_of("", 0, "c"), "kind": "lines", "count": 7, "length": 100}
    converted(world, [counted], "c", partition=LATER)
    return world


def selection(world: Any, **options: Any) -> Any:
    return parse_quarantine_selection(world, **options)


def listed(world: Any, capsys: pytest.CaptureFixture[str], by: str = "hour", **options: Any) -> Any:
    print_quarantine(world, selection(world, **options), by, 100, as_json=True)
    body = json.loads(capsys.readouterr().out)
    return [tuple(group.values()) for group in body["groups"]]


def test_ls_counts_lines_and_files_by_hour_and_reason(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert listed(world, capsys) == [
        ("orders", "2026-11-20T09", "gone", 0, 0, 1),
        ("orders", "2026-11-20T09", "not JSON", 1, 0, 0),
        ("orders", "2026-11-20T09", "not an object", 1, 0, 0),
        ("orders", "2026-11-20T10", "not JSON", 7, 0, 0),
    ]
    assert listed(world, capsys, "reason")[1] == ("not JSON", 8, 0, 0)


@pytest.mark.parametrize(
    ("options", "reasons"),
    [
        ({"first": "2026-11-20T10"}, ["not JSON"]),
        ({"last": "2026-11-20T09", "reason": "not "}, ["not JSON", "not an object"]),
        ({"dataset": "orders", "first": "2026-11-20T09", "last": "2026-11-20T09", "reason": "gone"}, ["gone"]),
        ({"file": "s3://input/orders/b"}, ["gone"]),
        ({"file": "s3://input/orders/nowhere"}, []),
        ({"first": "2026-11-21"}, []),
    ],
)
def test_ls_selects_by_dataset_hour_reason_and_file(
    world: World, capsys: pytest.CaptureFixture[str], options: dict[str, str], reasons: list[str]
) -> None:
    assert [group[2] for group in listed(world, capsys, "hour", **options)] == reasons


def test_only_the_published_generation_counts(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    # Given: an hour that was reprocessed, and whose replaced objects are still there
    row = converted(world, [line_of("{", 0, "d")], "d", partition=Partition("orders", "2026-11-20", 11))
    world.ledger.manifests.force(row, world.now)
    published(world, world.row(row.id), [line_of("[", 0, "d", reason="other")])
    # Then
    assert listed(world, capsys, "hour", first="2026-11-20T11") == [("orders", "2026-11-20T11", "other", 1, 0, 0)]


def test_what_the_published_generation_keeps_of_an_earlier_one_counts(
    world: World, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    # Given a second generation that keeps the rejected lines of the first one
    row = converted(world, [line_of("{", 5)], "d", partition=EVENING)
    key = quarantine_key(EVENING, row.id, 1, 0)
    world.ledger.manifests.force(row, world.now)
    kept = PendingObject("quarantine", key, "", (), "", 1, 1)
    published(world, world.row(row.id), [line_of("[1]", 9, reason="not an object")], [kept])
    # When, Then: both count, as lines of the second one
    found = listed(world, capsys, "hour", first=EVENING.stamp)
    assert [reason for _, _, reason, *_ in found] == ["not JSON", "not an object"]
    evening = selection(world, first=EVENING.stamp)
    export_lines(stack_of(world, FakeServices()), evening, tmp_path / "lines", 100, as_json=False)
    assert {origin.generation for origin in read_origins(tmp_path / "lines")} == {2}


def test_show_prints_place_reason_and_line(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert print_records(world, selection(world), 20, None, as_json=False) == ExitCode.FINE  # type: ignore[arg-type]
    told = capsys.readouterr().out.splitlines()
    assert told[:3] == [
        "s3://input/orders/a  version v1  hour 2026-11-20T09",
        "  byte 5, 4 bytes: not JSON",
        "  \\x1b[2J",
    ]
    assert "  the whole file: gone" in told
    assert told[-1] == "  7 lines from byte 0 to 100: not JSON; only counted"


def test_a_narrow_selection_ends_as_well(
    world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given: more records than one command reads
    monkeypatch.setattr("cli.quarantine.records.MAX_READ", 3)
    nothing = selection(world, reason="none of these")
    # When
    print_quarantine(world, nothing, "hour", 100, as_json=True)  # type: ignore[arg-type]
    # Then
    assert json.loads(capsys.readouterr().out)["complete"] is False


@pytest.mark.parametrize("damage", [b"{}\n", b'{"kind": "li'])
def test_an_object_that_is_damaged_is_named(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: bytes
) -> None:
    key, *_ = world.keys("quarantine")
    whole = world.raw_s3.get_object(Bucket="quarantine", Key=key)["Body"].read().splitlines(keepends=True)[0]
    world.raw_s3.put_object(Bucket="quarantine", Key=key, Body=whole + damage)
    stack = stack_of(world, FakeServices())
    for command in (
        lambda: listed(stack, capsys),
        lambda: print_records(stack, selection(stack), 10, 0, as_json=False),
        lambda: export_lines(stack, selection(stack), tmp_path / "lines.ndjson", 10, as_json=False),
    ):
        with pytest.raises(TerminalError, match=f"record 2 of s3://quarantine/{key} is damaged .* run 'hybrid-router"):
            command()
    assert not list(tmp_path.iterdir())


def test_export_writes_the_bytes_of_each_line_and_where_it_is_from(world: World, tmp_path: Path) -> None:
    # Given: a line that is not valid UTF-8 as well
    raw = line_of("", 20, "f", line_base64="/w==")
    del raw["line"]
    row = converted(world, [raw], "f", partition=Partition("orders", "2026-11-20", 8))
    target = tmp_path / "repair.ndjson"
    # When
    assert export_lines(stack_of(world, FakeServices()), selection(world), target, 100, as_json=False) == ExitCode.FINE
    # Then
    assert target.read_bytes() == b"\xff\n\x1b[2J\n[1]\n"
    first, second, third = read_origins(target)
    assert (first.partition.hour, first.manifest, first.generation) == (8, row.id, 1)
    assert (first.source, first.version, first.offset) == ("s3://input/orders/f", "v1", 20)
    assert first.digest == line_digest(b"\xff")
    assert (second.partition, second.offset, third.reason) == (PARTITION, 5, "not an object")


def test_export_overwrites_nothing_and_leaves_no_empty_file(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "repair.ndjson"
    counted = selection(world, first="2026-11-20T10")
    assert export_lines(world, counted, target, 100, as_json=True) == ExitCode.NOT_SO  # type: ignore[arg-type]
    body = json.loads(capsys.readouterr().out)
    assert (body["lines"], body["not_kept"], body["files"], body["complete"]) == (0, 7, 0, True)
    assert list(tmp_path.iterdir()) == []
    origins_file(target).touch()
    with pytest.raises(InvalidInputError, match=r"repair\.ndjson\.origins exists: pass the name of a new file"):
        export_lines(world, counted, target, 100, as_json=True)  # type: ignore[arg-type]
