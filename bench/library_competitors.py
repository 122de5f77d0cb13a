"""DuckDB and Polars, in this process. They know all keys, and they may change the order of rows, which is faster."""

from __future__ import annotations

from pathlib import Path

from bench.input_files import InputFiles
from sizing.peak_memory import peak_bytes


def convert_by_duckdb(files: InputFiles, output: Path, threads: int) -> int:
    """All columns VARCHAR, one output file for each thread; returns the peak memory of this process in bytes."""
    import duckdb  # noqa: PLC0415

    columns = ", ".join(f"'{key}': 'VARCHAR'" for key in files.keys)
    with duckdb.connect() as connection:
        connection.execute(f"SET threads = {threads}")
        connection.execute("SET preserve_insertion_order = false")
        connection.execute(
            f"COPY (SELECT * FROM read_json('{_glob(files)}', format = 'newline_delimited', columns = {{{columns}}})) "  # noqa: S608
            f"TO '{output / 'out'}' (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1, PER_THREAD_OUTPUT true)"
        )
    return peak_bytes()


def convert_by_polars(files: InputFiles, output: Path, threads: int) -> int:
    """The streaming engine, all columns String; returns the peak memory of this process in bytes."""
    import polars as pl  # noqa: PLC0415

    if pl.thread_pool_size() != threads:
        raise ValueError(f"POLARS_MAX_THREADS is not {threads}")
    frame = pl.scan_ndjson(_glob(files), schema=dict.fromkeys(files.keys, pl.String))
    frame.sink_parquet(output / "out.parquet", compression="zstd", compression_level=1, maintain_order=False)
    return peak_bytes()


def _glob(files: InputFiles) -> str:
    return f"{files.location}/*" if Path(files.location).is_dir() else files.location
