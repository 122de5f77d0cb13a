"""Settings of the conversion in both lanes: ``convert``."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lake.errors import InvalidSettingsError
from lake.settings.checks import check_choice, check_range
from lake.settings.workers import GIB, MIB

MAX_COLUMN_LIMIT = 1000
"""Highest value of ``convert.column_limit``: the names of a dataset's columns are one item of the ledger."""


@dataclass(frozen=True, slots=True)
class ConvertSettings:
    """Conversion to Parquet, the same in both lanes."""

    split_bytes: int = 256 * MIB
    """Maximum size in bytes of the parts into which an uncompressed file is split for the tasks."""
    target_file_bytes: int = 128 * MIB
    """Approximate size in bytes of a Parquet file."""
    row_group_bytes: int = 64 * MIB
    """Size in bytes, before compression, of the columns of one row group."""
    compression: str = "zstd"
    """Codec of the Parquet pages: zstd or snappy."""
    encoding: str = "dictionary"
    """Encoding of the values in Parquet pages: dictionary, where values repeat, and plain elsewhere; or plain
    everywhere."""
    zstd_level: int = 1
    """Level of zstd: 9 makes files 4 to 13 % smaller at about a quarter of the speed."""
    column_limit: int = MAX_COLUMN_LIMIT
    """Maximum number of columns of a dataset, or as many as it has already; further keys go to the column
    ``_rescued``."""
    max_line_bytes: int = 16 * MIB
    """A longer line is quarantined."""
    min_bytes_per_second: int = 1_000_000
    """Slowest speed of a file after its first minute, in bytes as stored per second of processor time; a compressed
    file may take ten times as long. A slower file is excluded as unreadable. Waiting for S3 does not count. 0: no file
    is too slow."""
    max_core_minutes: float = 60
    """Processor time in minutes after which a file, or the part of it that a task reads at once, is excluded too; at
    most half of ``batch.run_timeout_minutes``."""
    provenance: bool = False
    """Adds the columns ``_source``, ``_offset`` and ``_arrived_at``: file, byte offset of the line, time of arrival."""

    def __post_init__(self) -> None:
        check_range("convert.split_bytes", self.split_bytes, 1, 16 * GIB)
        check_range("convert.target_file_bytes", self.target_file_bytes, 1, 4 * GIB)
        check_range("convert.row_group_bytes", self.row_group_bytes, 1, 512 * MIB)
        check_choice("convert.compression", self.compression, ("zstd", "snappy"))
        check_choice("convert.encoding", self.encoding, ("dictionary", "plain"))
        check_range("convert.zstd_level", self.zstd_level, 1, 19)
        check_range("convert.column_limit", self.column_limit, 1, MAX_COLUMN_LIMIT)
        check_range("convert.min_bytes_per_second", self.min_bytes_per_second, 0, GIB)
        check_range("convert.max_core_minutes", self.max_core_minutes, 1, 5_040)
        slowest = self.split_bytes / (60 * self.max_core_minutes)
        if self.min_bytes_per_second and self.min_bytes_per_second < slowest:
            expected = (
                f"expected at least {math.ceil(slowest):,}, or 0: a slower part of convert.split_bytes takes longer "
                "than convert.max_core_minutes"
            )
            raise InvalidSettingsError("convert.min_bytes_per_second", self.min_bytes_per_second, expected)
        check_range("convert.max_line_bytes", self.max_line_bytes, 1, 64 * MIB)
