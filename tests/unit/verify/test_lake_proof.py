"""The proof of the tests, which shares nothing with the product, detects every kind of loss or change."""

from __future__ import annotations

import bz2
import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.oracle.lake_proof import count_input, prove

LINES = [
    b'{"a": 1.10, "B": "x\\ny", "c": null}',
    b'{"a": {"n" : [1, 2]}, "B": "\xc3\xbc"}',
    b"",
    b'{"a": 1} tail',
]
URI = "s3://in/things/f.ndjson"


def write_lake(output: Path, rows: list[dict[str, str | None]]) -> None:
    """Write Parquet as the product does: string columns, the original key in the metadata."""
    names = {"a": "a", "__b": "B", "_rescued": ""}
    fields = [
        pa.field(name, pa.string(), metadata={"original_key": key} if key else None) for name, key in names.items()
    ]
    table = pa.table({name: [row.get(name) for row in rows] for name in names}, schema=pa.schema(fields))
    folder = output / "lake/things/date=2026-11-21/hour=05"
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, folder / "m-g1-00000.parquet")


def write_quarantine(output: Path, records: list[dict[str, object]]) -> None:
    """Write the quarantine as JSON lines."""
    folder = output / "quarantine/things/date=2026-11-21/hour=05"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "m-g1-00000.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))


CORRECT_ROWS: list[dict[str, str | None]] = [
    {"a": "1.10", "__b": "x\ny", "_rescued": None},
    {"a": '{"n" : [1, 2]}', "__b": "ü", "_rescued": None},
]
REJECT = {"kind": "line", "source": URI, "offset": 60, "length": 13, "reason": "trailing characters"}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """An input of two rows, one blank line and one invalid line."""
    path = tmp_path / "f.ndjson"
    path.write_bytes(b"\n".join(LINES))
    return path


def differences(source: Path, output: Path) -> list[str]:
    """The differences that the proof finds."""
    return prove([(source, URI, "things")], output).differences


def test_a_correct_lake_has_no_difference(source: Path, tmp_path: Path) -> None:
    write_lake(tmp_path, list(reversed(CORRECT_ROWS)))
    write_quarantine(tmp_path, [REJECT])
    assert differences(source, tmp_path) == []


@pytest.mark.parametrize(
    "rows",
    [
        CORRECT_ROWS[:1],
        [*CORRECT_ROWS, CORRECT_ROWS[0]],
        [{**CORRECT_ROWS[0], "a": "1.1"}, CORRECT_ROWS[1]],
        [{**CORRECT_ROWS[0], "a": None}, CORRECT_ROWS[1]],
        [{**CORRECT_ROWS[0], "a": "x\ny", "__b": "1.10"}, CORRECT_ROWS[1]],
        [{**CORRECT_ROWS[0], "a": CORRECT_ROWS[1]["a"]}, {**CORRECT_ROWS[1], "a": CORRECT_ROWS[0]["a"]}],
    ],
    ids=["lost", "duplicated", "number changed", "value lost", "columns swapped", "values mixed between rows"],
)
def test_a_wrong_lake_is_detected(source: Path, tmp_path: Path, rows: list[dict[str, str | None]]) -> None:
    write_lake(tmp_path, rows)
    write_quarantine(tmp_path, [REJECT])
    assert differences(source, tmp_path)


def test_a_lost_reject_is_detected(source: Path, tmp_path: Path) -> None:
    write_lake(tmp_path, CORRECT_ROWS)
    write_quarantine(tmp_path, [])
    assert differences(source, tmp_path) == [f"{URI}: 1 invalid line, but 0 in the quarantine"]


def test_rescued_members_count_as_values(source: Path, tmp_path: Path) -> None:
    rows = [{**CORRECT_ROWS[0], "a": None, "_rescued": '{"a": 1.10}'}, CORRECT_ROWS[1]]
    write_lake(tmp_path, rows)
    write_quarantine(tmp_path, [REJECT])
    assert differences(source, tmp_path) == []


TEXT = b'{"a": 1}\n{"a": 2}\n\nno JSON\n'


def zst(text: bytes) -> bytes:
    """Two frames, as a tool that appends would write them."""
    return b"".join(pa.compress(part, "zstd", asbytes=True) for part in (text[:9], text[9:]))


@pytest.mark.parametrize("compress", [bytes, gzip.compress, bz2.compress, zst])
def test_the_proof_reads_every_codec(tmp_path: Path, compress: Callable[[bytes], bytes]) -> None:
    plain, packed = tmp_path / "plain", tmp_path / "packed"
    plain.write_bytes(TEXT)
    packed.write_bytes(compress(TEXT))
    count, checksum = count_input(packed, "uri", "things")
    assert (count.lines, count.rows, count.blank, count.invalid, count.unreadable) == (4, 2, 1, 1, None)
    assert (count, checksum) == count_input(plain, "uri", "things")
