"""Parquet files of every setting, as nine readers of six implementations see them."""

import itertools
import json
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb
import polars as pl
import pyarrow.parquet as pq

from lake.settings import ConvertSettings
from tests.conformance.tools import Opinion, ToolError, go_programs, older_python
from tests.unit.native.reader_driver import batches_of
from transform.chunk_sample import ChunkSample, Sampling
from transform.parquet_writer import OpenFile

ROWS = 20_000
BATCH_BYTES = 300_000
"""About ten batches for each file."""
Rows = list[dict[str, str | None]]
SPARK = Path(__file__).with_name("read_with_spark.py")


def parquet_readers(folder: Path) -> Opinion:
    rows = _rows()
    files = list(_files(folder, rows))
    names = list(dict.fromkeys(name for row in rows for name in row))
    expected = [{name: row.get(name) for name in names} for row in rows]
    different, questions = {}, 0
    for file, reader, found in itertools.chain(_in_process(files), _spark(folder, files), _parquet_go(files)):
        questions += 1
        problem = _first_difference(expected, found)
        if problem:
            different[f"{reader}, {file.stem}"] = problem
    topic = (
        f"{ROWS:,} rows in {len(files)} files, of each compression, zstd level and size of row groups: every "
        "value as pyarrow, DuckDB, Polars, Spark 4.1 and 3.5 (vectorized and row by row), parquet-go and a reader of "
        "2019 read it"
    )
    return Opinion("The Parquet readers", topic, questions, {}, different)


def _rows() -> Rows:
    """Columns with few values, many values, gaps, a late start, one value, none, values beyond ASCII, or long ones."""
    chance = random.Random(5)
    rows: Rows = []
    for number in range(ROWS):
        row: dict[str, str | None] = {"few": f"host-{number % 300}", "many": f"{chance.getrandbits(60):x}", "one": "x"}
        row |= {"empty": "", "beyond": f'\u00fc\u20ac\U0001f600 {number % 7}\n"\\'}
        if number % 3:
            row["gaps"] = str(number // 3)
        if number > ROWS // 2:
            row["late"] = str(number % 9)
        if number % 5_000 == 7:
            row["long"] = "long " * 4_000
        if number < ROWS // 2:
            row["changing"] = str(number % 9)
        else:
            row["changing"] = str(number)
        rows.append(row)
    return rows


def _files(folder: Path, rows: Rows) -> Iterator[Path]:
    settings = [
        ConvertSettings(compression=compression, zstd_level=level, row_group_bytes=row_group_bytes)
        for compression, level in (("snappy", 1), ("zstd", 1), ("zstd", 9), ("zstd", 19))
        for row_group_bytes in (1 << 20, 1 << 27)
    ]
    for one in settings:
        size = f"{one.row_group_bytes >> 20} MiB"
        level = f" {one.zstd_level}" if one.compression == "zstd" else ""
        file = OpenFile(folder / f"{one.compression}{level}, {size}.parquet", one, ChunkSample(Sampling(), 0))
        for batch in batches_of((json.dumps(row).encode() + b"\n" for row in rows), flush_bytes=BATCH_BYTES):
            file.write(batch)
        file.close()
        yield file.path


def _in_process(files: Sequence[Path]) -> Iterator[tuple[Path, str, Rows]]:
    for file in files:
        yield file, "pyarrow", pq.read_table(file).to_pylist()
        yield file, "Polars", pl.read_parquet(file).to_dicts()
        with duckdb.connect() as connection:
            yield file, "DuckDB", connection.sql(f"FROM '{file}'").to_arrow_table().to_pylist()


def _spark(folder: Path, files: Sequence[Path]) -> Iterator[tuple[Path, str, Rows]]:
    older = older_python().parents[2] / "bin" / "python"
    for python in (Path(sys.executable), older):
        output = folder / "spark.json"
        _run([str(python), str(SPARK), str(output), *map(str, files)])
        with output.open(encoding="utf-8") as lines:
            for line in lines:
                file, reader, rows = json.loads(line)
                yield Path(file), reader, rows


def _parquet_go(files: Sequence[Path]) -> Iterator[tuple[Path, str, Rows]]:
    for program, reader in (("read_parquet", "parquet-go"), ("read_parquet_2019", "xitongsys/parquet-go of 2019")):
        for file in files:
            names, *rows = map(json.loads, _run([str(go_programs() / program), str(file)]).splitlines())
            yield file, reader, [dict(zip(names, row, strict=True)) for row in rows]


def _run(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ToolError(f"{command[0]} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def _first_difference(expected: Rows, found: Rows) -> str:
    if len(expected) != len(found):
        return f"{len(found):,} rows instead of {len(expected):,}"
    for number, (target, row) in enumerate(zip(expected, found, strict=True)):
        for name, value in target.items():
            if row.get(name) != value:
                return f"row {number}, {name}: {row.get(name)!r:.40} instead of {value!r:.40}"
        if set(row) - set(target) - {"_rescued"}:
            return f"columns {sorted(set(row) - set(target))}"
    return ""
