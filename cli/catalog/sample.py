"""A bounded sample of a dataset's published Parquet objects, or of a folder's files, the newest hours first."""

import io
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from pathlib import Path
from typing import IO, Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from cli.deployed_stack import DeployedStack
from lake.aws_types import Buffer, S3Client
from lake.errors import TerminalError
from lake.faults import Fault, judge
from lake.layout import parse_generation

T = TypeVar("T")

ROWS_PER_OBJECT = 2_000
"""Rows that are read of each object, from its beginning; each value is compared with the patterns of the types."""
ROWS_PER_BATCH = 100
"""Rows that are decoded at once: values can be large."""
MAX_DECODED_BYTES = 64 << 20
"""Bytes of values after which no further rows of an object are read."""
BUFFER_BYTES = 1 << 20
"""Bytes of an object that are requested at once, of each column at least."""


@dataclass(slots=True)
class DatasetSample:
    objects: int = 0
    rows: int = 0
    values: dict[str, Counter[str]] = field(default_factory=dict)
    """For each column how often each value occurs, without NULL."""


def read_sample(stack: DeployedStack, dataset: str, max_objects: int) -> DatasetSample:
    """Read the newest objects of a dataset: one of each hour, then the next of each hour."""
    sample, lake = DatasetSample(), stack.resources.lake_bucket
    for key, size in _newest_objects(stack.s3, lake, dataset, max_objects):
        # The sweep may have deleted this generation since it was listed.
        with suppress(stack.s3.exceptions.NoSuchKey), reading_object(lake, key):
            _add_object(sample, io.BufferedReader(RangeReader(stack.s3, lake, key, size), BUFFER_BYTES))
    return sample


def read_folder_sample(folder: Path, max_files: int) -> DatasetSample:
    """A sample of a dataset's folder that ``convert`` has written on this machine. Raises ``OSError``."""
    sample = DatasetSample()
    hours = [sorted(hour.glob("*.parquet")) for hour in sorted(folder.glob("date=*/hour=*"), reverse=True)]
    for path in _one_of_each([files for files in hours if files], max_files):
        with path.open("rb") as file, reading_parquet(str(path), "delete it, and convert its files again"):
            _add_object(sample, file)
    return sample


@contextmanager
def reading_parquet(place: str, advice: str) -> Iterator[None]:
    """What pyarrow raises inside for a file that is damaged becomes a ``TerminalError`` with its place and ``advice``.

    An error of the disk or of the network stays what it is.
    """
    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as error:
        # The operating system says nothing of the content. Time-outs of botocore are OSErrors without a number.
        if judge(error) == Fault.ENVIRONMENT or (isinstance(error, OSError) and error.errno is not None):
            raise
        raise TerminalError(f"{place} is not a Parquet file that can be read ({error}): {advice}") from error


def reading_object(bucket: str, key: str) -> AbstractContextManager[None]:
    manifest, _ = parse_generation(key) or ("", 0)
    return reading_parquet(
        f"s3://{bucket}/{key}", f"restore it, or run 'hybrid-router reprocess --manifest {manifest}'"
    )


def _one_of_each(hours: list[list[T]], number: int) -> list[T]:
    """At most ``number``: the first of each hour, then the next of each."""
    return [item for items in zip_longest(*hours) for item in items if item is not None][:number]


def _add_object(sample: DatasetSample, file: IO[bytes]) -> None:
    parquet = pq.ParquetFile(file, buffer_size=BUFFER_BYTES, pre_buffer=False)
    sample.objects += 1
    for name in parquet.schema_arrow.names:
        sample.values.setdefault(name, Counter())
    first_row_group = [0] if parquet.num_row_groups else []
    rows = size = 0
    for batch in parquet.iter_batches(ROWS_PER_BATCH, first_row_group):
        rows, size = rows + batch.num_rows, size + batch.nbytes
        sample.rows += batch.num_rows
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            sample.values[name].update(text for text in column.to_pylist() if text is not None)
        if rows >= ROWS_PER_OBJECT or size >= MAX_DECODED_BYTES:
            break


def _newest_objects(s3: S3Client, bucket: str, dataset: str, number: int) -> list[tuple[str, int]]:
    """Key and size of at most ``number`` objects of at most ``number`` hours."""
    hours: list[list[tuple[str, int]]] = []
    days = sorted(_folders(s3, bucket, f"{dataset}/"), reverse=True)
    for hour in chain.from_iterable(sorted(_folders(s3, bucket, day), reverse=True) for day in days):
        page = s3.list_objects_v2(Bucket=bucket, Prefix=hour)
        found = [(item["Key"], item["Size"]) for item in page.get("Contents", []) if parse_generation(item["Key"])]
        hours += [found] if found else []
        if len(hours) == number:
            break
    return _one_of_each(hours, number)


def _folders(s3: S3Client, bucket: str, prefix: str) -> Iterator[str]:
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix, Delimiter="/")
    return (item["Prefix"] for page in pages for item in page.get("CommonPrefixes", []))


class RangeReader(io.RawIOBase):
    """An object of which only the requested ranges are read."""

    def __init__(self, s3: S3Client, bucket: str, key: str, size: int) -> None:
        super().__init__()
        self._s3, self._size, self._position = s3, size, 0
        self._object: dict[str, Any] = {"Bucket": bucket, "Key": key}

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._position = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence] + offset
        return self._position

    def readinto(self, target: Buffer) -> int:
        with memoryview(target).cast("B") as view:
            count = max(0, min(len(view), self._size - self._position))
            if count:
                last = self._position + count - 1
                body = self._s3.get_object(**self._object, Range=f"bytes={self._position}-{last}")["Body"].read()
                count = len(body)
                view[:count] = body
        self._position += count
        return count
