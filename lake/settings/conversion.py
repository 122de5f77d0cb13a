"""Settings of ``convert``."""

from __future__ import annotations

from dataclasses import dataclass

from lake.settings.checks import check_choice, check_range
from lake.settings.workers import GIB, MIB


@dataclass(frozen=True, slots=True)
class ConvertSettings:
    """Both lanes' conversion."""

    split_bytes: int = 256 * MIB
    target_file_bytes: int = 128 * MIB
    row_group_bytes: int = 64 * MIB
    """Columns, not compressed, that a row group is made of."""
    compression: str = "zstd"
    column_limit: int = 1000
    """Further keys of an object go to ``_rescued``."""
    max_line_bytes: int = 16 * MIB
    provenance: bool = False
    """Adds the columns ``_source``, ``_offset`` and ``_arrived_at``."""

    def __post_init__(self) -> None:
        check_range("convert.split_bytes", self.split_bytes, 1, 16 * GIB)
        check_range("convert.target_file_bytes", self.target_file_bytes, 1, 4 * GIB)
        check_range("convert.row_group_bytes", self.row_group_bytes, 1, 512 * MIB)
        check_choice("convert.compression", self.compression, ("zstd", "snappy"))
        check_range("convert.column_limit", self.column_limit, 1, 1000)
        check_range("convert.max_line_bytes", self.max_line_bytes, 1, 64 * MIB)
