"""``python -m tests.night``: its count of the lines notices what it is there for."""

import json
from collections import Counter

import pytest

from tests.night.check import Count, compare, expected_rejected, expected_rows, read_records
from tests.night.cloud import BUCKET
from tests.night.files import LINES, Day, Part, make_day

FILES = 200
DAY = make_day(FILES)


def counted(day: Day, rows: Counter[str], rejected: Counter[str]) -> Count:
    return compare(expected_rows(day), rows, expected_rejected(day), rejected)


def records(day: Day) -> Counter[str]:
    """The quarantine as the product writes it."""
    lines = [
        {"kind": "line", "source": f"s3://{BUCKET}/{file.key}", "line": line.decode()}
        for file in day.files
        for line in file.rejected
    ]
    whole = [{"kind": "file", "source": f"s3://{BUCKET}/{file.key}"} for file in day.of(Part.DAMAGED)]
    return read_records(json.dumps(record) for record in (*lines, *whole))


def test_a_day_has_every_part_and_rejected_lines() -> None:
    assert len({file.key for file in DAY.files}) == FILES
    assert {file.part for file in DAY.files} == set(Part)
    assert sum(len(file.rows) for file in DAY.files) == FILES * LINES
    assert any(file.rejected for file in DAY.files)


def test_lines_that_are_all_there_once_differ_in_nothing() -> None:
    found = counted(DAY, expected_rows(DAY), records(DAY))
    assert found.differences == []
    assert found.rows == FILES * LINES + sum(len(file.repaired) for file in DAY.files)


@pytest.mark.parametrize("kind", ["lost", "doubled", "unknown"])
def test_one_row_too_few_too_many_or_of_no_file_is_named(kind: str) -> None:
    # Given a lake in which one row is lost, there twice, or was never sent
    rows = expected_rows(DAY)
    row = '{"n": "1"}' if kind == "unknown" else DAY.files[3].rows[5]
    rows[row] += -1 if kind == "lost" else 1
    # When the lines are counted / Then the row is named, and nothing else
    assert counted(DAY, +rows, records(DAY)).differences == [f"{kind}: {row}"]


def test_a_changed_value_is_lost_and_unknown() -> None:
    rows, row = expected_rows(DAY), DAY.files[3].rows[5]
    changed = row.replace("5.10", "5.1")
    rows.update({row: -1, changed: 1})
    assert counted(DAY, +rows, records(DAY)).differences == [f"lost: {row}", f"unknown: {changed}"]


def test_a_rejected_line_that_is_not_in_the_quarantine_is_lost() -> None:
    rejected = records(DAY)
    line = next(iter(rejected))
    del rejected[line]
    assert counted(DAY, expected_rows(DAY), rejected).differences == [f"lost: {line}"]
