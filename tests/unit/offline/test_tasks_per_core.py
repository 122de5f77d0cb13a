"""`hybrid-router convert` has all cores work, also where the input is small because it is compressed."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from cli.offline.convert import convert_files
from tests.unit.offline.conversions import GOOD, answer, request

CONTENT = gzip.compress(GOOD * 2000)


@pytest.mark.parametrize(("name", "parquet_files"), [("ndjson.gz", 2), ("ndjson", 1)])
def test_a_stored_byte_of_a_compressed_file_counts_several_times(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    parquet_files: int,
) -> None:
    # Given two files whose stored bytes are too few for two tasks
    monkeypatch.setattr("offline.conversion.MIN_TASK_BYTES", 2 * len(CONTENT))
    folder = tmp_path / "in" / "orders"
    folder.mkdir(parents=True)
    for stem in ("a", "b"):
        (folder / f"{stem}.{name}").write_bytes(CONTENT)
    # When
    convert_files(request(folder, output=tmp_path / "out"))
    # Then each has a task if the names say that they are compressed
    assert answer(capsys)["rows"] == 2 * 4000
    assert len(list((tmp_path / "out" / "lake").rglob("*.parquet"))) == parquet_files
