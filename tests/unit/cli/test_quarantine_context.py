"""`hybrid-router quarantine show --context`: rejected lines with their numbers and neighbours."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from cli.quarantine import listing as context_module
from cli.quarantine.listing import print_records
from cli.quarantine.records import parse_quarantine_selection
from tests.unit.cli.quarantined import converted, line_of

if TYPE_CHECKING:
    from tests.unit.lake.world import World

BODY = b'{"n":1}\n{"n":2}\n{\n{"n":4}\n[5]\n{"n":6}\n'
REJECTS = {"{": BODY.index(b"{\n"), "[5]": BODY.index(b"[5]")}


def show(world: World, capsys: pytest.CaptureFixture[str], context: int, *, as_json: bool = False) -> Any:
    selection = parse_quarantine_selection(world)  # type: ignore[arg-type]
    print_records(world, selection, 20, context, as_json=as_json)  # type: ignore[arg-type]
    told = capsys.readouterr().out
    return json.loads(told)["records"] if as_json else [line.strip() for line in told.splitlines()]


def quarantined(world: World, stored: bytes, **offsets: int) -> None:
    """The input file ``a`` and the records of its lines at these offsets."""
    etag = world.raw_s3.put_object(Bucket="input", Key="orders/a", Body=stored)["ETag"].strip('"')
    converted(world, [line_of(text, offset, version=f"etag:{etag}") for text, offset in offsets.items()], "a")


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_a_line_is_shown_with_its_number_and_neighbours(
    world: World, capsys: pytest.CaptureFixture[str], compress: Callable[[bytes], bytes]
) -> None:
    quarantined(world, compress(BODY), **REJECTS)
    told = show(world, capsys, 2)
    assert told[2:7] == ['1- {"n":1}', '2- {"n":2}', "3: {", '4- {"n":4}', "5- [5]"]
    assert told[9:] == ["3- {", '4- {"n":4}', "5: [5]", '6- {"n":6}']


def test_json_has_numbers_and_neighbours(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    # Given a neighbour that is not valid UTF-8
    quarantined(world, b'{\n{"n":"\xff"}\n', **{"{": 0})
    (record,) = show(world, capsys, 1, as_json=True)
    assert (record["line_number"], record["before"]) == (1, [])
    assert record["after"] == [{"line_number": 2, "length": 9, "line_base64": "eyJuIjoi/yJ9"}]


def test_a_line_after_a_byte_order_mark_is_found(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    quarantined(world, b"\xef\xbb\xbf{\n", **{"{": 3})
    assert show(world, capsys, 1)[2] == "1: {"


def test_a_file_that_was_replaced_has_no_context(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    quarantined(world, BODY, **REJECTS)
    world.raw_s3.put_object(Bucket="input", Key="orders/a", Body=b"other")
    assert show(world, capsys, 1)[2:4] == [
        "{",
        "(no line number: the file cannot be read any more: S3 answers 412)",
    ]


def test_what_is_read_of_a_file_is_bounded(
    world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context_module, "MAX_READ_BYTES", REJECTS["{"])
    quarantined(world, BODY, **REJECTS)
    told = show(world, capsys, 0)
    assert told[2] == "3: {"
    assert told[5:] == ["[5]", "(no line number: it is after the first 0 MiB of its file)"]


def test_lines_before_the_damage_keep_their_numbers(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    # Given a gzip file of two members, the second of which is cut
    stored = gzip.compress(BODY[: REJECTS["[5]"]]) + gzip.compress(BODY[REJECTS["[5]"] :])[:-20]
    quarantined(world, stored, **REJECTS)
    told = show(world, capsys, 1)
    assert "3: {" in told
    assert told[-1].startswith("(no line number: the file cannot be decompressed: ")
