"""The reader that counts its requests for one column."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from bench.column_requests import describe

if TYPE_CHECKING:
    from pathlib import Path


def test_a_column_takes_one_request_of_each_row_group_and_one_of_the_footer(tmp_path: Path) -> None:
    values = [f"{row * 7919:0>40}" for row in range(60_000)]
    table = pa.table({"small": ["x"] * 60_000, "middle": values, "large": [value * 3 for value in values]})
    pq.write_table(table, tmp_path / "file.parquet", row_group_size=20_000, use_dictionary=False)
    assert ", 3 row groups of " in describe(tmp_path / "file.parquet")
    assert ", 4 requests for middle, " in describe(tmp_path / "file.parquet")
