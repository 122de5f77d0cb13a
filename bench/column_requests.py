"""Requests that a reader of S3 makes for one whole column of an object: ``python -m bench.column_requests LAKE``.

pyarrow reads the files; each read of the file would be a GET with a range.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path
from statistics import median

import pyarrow.parquet as pq


class _CountingFile(io.FileIO):
    """Counts its reads."""

    requests = 0

    def read(self, size: int | None = -1) -> bytes:
        self.requests += 1
        return super().read(size)


def describe(path: Path) -> str:
    """Row groups of a file, and for the column of median size its chunks and the requests with that of the footer."""
    metadata = pq.read_metadata(path)
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    sizes = [[group.column(number).total_compressed_size for group in groups] for number in range(metadata.num_columns)]
    column = sorted(range(len(sizes)), key=lambda number: sum(sizes[number]))[len(sizes) // 2]
    name, group_bytes = metadata.schema.column(column).path, median(map(sum, zip(*sizes, strict=True)))
    with _CountingFile(path) as file:
        pq.ParquetFile(file, pre_buffer=True).read([name], use_threads=False)
        requests = file.requests
    return (
        f"{path.name}: {path.stat().st_size / 1e6:.0f} MB, {len(groups)} row groups of {group_bytes / 1e6:.1f} MB, "
        f"{requests} requests for {name}, whose chunks have {median(sizes[column]) / 1e6:.2f} MB"
    )


if __name__ == "__main__":
    for found in sorted(Path(sys.argv[1]).rglob("*.parquet")):
        print(describe(found))
