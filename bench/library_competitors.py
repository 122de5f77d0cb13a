"""Engines without Spark, with the keys known beforehand; order of rows given up where that makes them quicker."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bench.measurement import peak_bytes

if TYPE_CHECKING:
    from bench.input_files import Data


def duckdb_way(data: Data, output: Path, threads: int) -> int:
    """All columns VARCHAR, one file per thread."""
    import duckdb  # noqa: PLC0415

    columns = ", ".join(f"'{key}': 'VARCHAR'" for key in data.keys)
    with duckdb.connect() as connection:
        connection.execute(f"SET threads = {threads}")
        connection.execute("SET preserve_insertion_order = false")
        connection.execute(
            f"COPY (SELECT * FROM read_json('{_files(data)}', format = 'newline_delimited', columns = {{{columns}}})) "  # noqa: S608
            f"TO '{output / 'out'}' (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1, PER_THREAD_OUTPUT true)"
        )
    return peak_bytes()


def polars_way(data: Data, output: Path, threads: int) -> int:
    """The streaming engine, all columns String; POLARS_MAX_THREADS is set by whoever starts the process."""
    import polars as pl  # noqa: PLC0415

    if pl.thread_pool_size() != threads:
        raise ValueError(f"POLARS_MAX_THREADS is not {threads}")
    frame = pl.scan_ndjson(_files(data), schema=dict.fromkeys(data.keys, pl.String))
    frame.sink_parquet(output / "out.parquet", compression="zstd", compression_level=1, maintain_order=False)
    return peak_bytes()


def _files(data: Data) -> str:
    return f"{data.location}/*" if Path(data.location).is_dir() else data.location
