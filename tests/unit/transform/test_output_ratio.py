"""A few places of a manifest predict the size of its Parquet."""

from __future__ import annotations

import gzip
from random import Random
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from bench.input_files import Recipe, generate
from lake.manifest import Partition
from lake.settings import ConvertSettings
from offline.input_bytes import InputFiles, LocalFile
from offline.output_folder import StagedFiles
from transform.plan_attempt import SAMPLE_BYTES, output_ratio, split_files
from transform.run_task import run_task
from transform.task_model import Task

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from lake.manifest import ObjectVersion
    from transform.task_model import Split

MIB = 1 << 20
SETTINGS = ConvertSettings()
SOURCE = InputFiles("")


def splits(files: Sequence[ObjectVersion], compressed: Sequence[ObjectVersion] = ()) -> list[Split]:
    return split_files(files, compressed, SETTINGS.split_bytes)


def converted_ratio(files: Sequence[ObjectVersion], folder: Path) -> float:
    whole = tuple(splits(files, files))
    task = Task(
        "m", 1, Partition("orders", "2026-11-01", 0), 0, whole, (), "lake", "quarantine", "eu-central-1", SETTINGS
    )
    result = run_task(task, SOURCE, StagedFiles(folder), folder)
    written = (folder / "lake").rglob("*.parquet")
    assert sum(pq.read_metadata(path).num_rows for path in written) == sum(item.rows for item in result.splits)
    return sum(item.size for item in result.objects) / sum(file.size for file in files)


@pytest.mark.parametrize("shape", ["flat", "nested", "repetitive", "gzip"])
def test_the_sampled_ratio_is_near_that_of_the_conversion(shape: str, tmp_path: Path) -> None:
    # Given: 24 MB of records; "repetitive" ones compress to a fortieth
    if shape == "repetitive":
        keys = Random(7)
        line = b'{"key":"%016x","text":"%s","kind":"view"}\n'
        text = b"".join(line % (keys.getrandbits(64), b"the same " * 40) for _ in range(60_000))
    else:
        text = generate(Recipe("nested" if shape == "nested" else "flat", 1, 24_000_000), 0)
    path = tmp_path / "input" / "a.ndjson"
    path.parent.mkdir()
    path.write_bytes(gzip.compress(text, 1) if shape == "gzip" else text)
    file = LocalFile.found(str(path))

    # When
    sampled = output_ratio(SOURCE, splits([file], [file] if shape == "gzip" else []), SETTINGS)

    # Then
    actual = converted_ratio([file], tmp_path)
    assert sampled is not None
    assert 0.7 < sampled / actual < 1.4, (sampled, actual)


def test_places_are_spread_and_each_is_read_from_its_first_line_on(tmp_path: Path) -> None:
    # Given: four splits of which only the last has rows at its start
    lines = [b"x" * 99 + b"\n"] * (3 * MIB // 100) + [b'{"a":"%d"}\n' % number for number in range(100_000)]
    path = tmp_path / "a.ndjson"
    path.write_bytes(b"".join(lines))
    file = LocalFile.found(str(path))
    parts = split_files([file], (), -(-file.size // 4))
    assert len(parts) == 4

    # When / Then: a task of nothing but rejects has no ratio, the manifest as a whole has one
    assert output_ratio(SOURCE, parts[:2], SETTINGS) is None
    assert output_ratio(SOURCE, parts, SETTINGS) is not None


def test_a_file_that_is_gone_does_not_stop_the_others(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b'{"a":1}\n' * 1000)
    files = [LocalFile.found(str(tmp_path / name)) for name in ("a", "b")]
    (tmp_path / "a").unlink()
    assert output_ratio(SOURCE, splits(files), SETTINGS) is not None


def test_a_gzip_bomb_is_not_decompressed_to_its_end(tmp_path: Path) -> None:
    # Given: two megabytes that decompress to four hundred
    line = b'{"a":"' + b"0" * 990 + b'"}\n'
    path = tmp_path / "a.ndjson.gz"
    path.write_bytes(gzip.compress(line * 400_000, 1))
    assert path.stat().st_size > SAMPLE_BYTES / 8
    file = LocalFile.found(str(path))

    # When
    ratio = output_ratio(SOURCE, splits([file], [file]), SETTINGS)

    # Then: the reader's first full batch ended it
    assert ratio is not None
