"""Settings of the conversion in both lanes: ``convert``."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from lake.engines.description import GIB, MIB
from lake.errors import InvalidSettingsError
from lake.settings.declaration import Choice, Range

MAX_COLUMN_LIMIT = 1000
"""Highest value of ``convert.column_limit``: the names of a dataset's columns are one item of the ledger."""


@dataclass(frozen=True, slots=True)
class ConvertSettings:
    """Conversion to Parquet, the same in both lanes."""

    split_bytes: Annotated[
        int,
        Range(1, 16 * GIB, "bytes"),
        "Maximum size of the parts into which an uncompressed file is split for the tasks.",
    ] = 256 * MIB
    target_file_bytes: Annotated[int, Range(1, 4 * GIB, "bytes"), "Approximate size of a Parquet file."] = 128 * MIB
    row_group_bytes: Annotated[
        int,
        Range(1, 512 * MIB, "bytes"),
        "Size, before compression, of the columns of one row group; one that takes 48 MiB of memory ends before.",
    ] = 128 * MIB
    compression: Annotated[str, Choice(("zstd", "snappy")), "Codec of the Parquet pages."] = "zstd"
    zstd_level: Annotated[
        int, Range(1, 19), "Level of zstd: 9 makes files 4 to 13 % smaller at about a quarter of the speed."
    ] = 1
    column_limit: Annotated[
        int,
        Range(1, MAX_COLUMN_LIMIT),
        "Maximum number of columns of a dataset; one that has more keeps them. Further keys go to the column _rescued.",
    ] = MAX_COLUMN_LIMIT
    max_line_bytes: Annotated[int, Range(1024, 64 * MIB, "bytes"), "A longer line is quarantined."] = 16 * MIB
    concatenated: Annotated[
        bool,
        "Whether rows need no newline between them: a file is a sequence of JSON objects, on one line or printed over "
        "many. One task reads each file.",
    ] = False
    min_bytes_per_second: Annotated[
        int,
        Range(0, GIB, "bytes per second"),
        "Slowest speed of a file after its first minute, in bytes as stored per second of processor time; a tenth of "
        "it for a compressed file. A slower file is excluded as unreadable. Waiting for S3 does not count. 0: no file "
        "is too slow.",
    ] = 1_000_000
    max_core_minutes: Annotated[
        float,
        Range(1, 5_040, "minutes"),
        "Processor time after which a file, or the part of it that a task reads at once, is excluded too; at most "
        "half of batch.run_timeout_minutes.",
    ] = 60
    provenance: Annotated[
        bool,
        "Whether rows have the columns _source, _offset and _arrived_at: file, byte offset of the line, time of "
        "arrival.",
    ] = False

    def conflicts(self) -> Iterator[InvalidSettingsError]:
        slowest = self.split_bytes / (60 * self.max_core_minutes)
        if self.min_bytes_per_second and self.min_bytes_per_second < slowest:
            expected = (
                f"expected at least {math.ceil(slowest):,}, or 0: a slower part of convert.split_bytes takes longer "
                "than convert.max_core_minutes"
            )
            yield InvalidSettingsError("convert.min_bytes_per_second", self.min_bytes_per_second, expected)
