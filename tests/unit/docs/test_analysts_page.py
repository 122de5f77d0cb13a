"""docs/analysts.md: its queries, and their DuckDB results on a small lake that `hybrid-router convert` creates."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import patch

import duckdb

from cli.offline.convert import Request, convert_files
from lake.layout import complete_marker_key
from lake.manifest import Partition
from lake.settings import ConvertSettings, Settings
from offline.input_files import LocalFile, Search
from tests.unit.docs.pages import CHECKOUT, Page

PAGE = Page(CHECKOUT / "docs" / "analysts.md")
ENGINES = ("Athena", "Athena, Trino", "Trino", "DuckDB", "Spark")
DAY = date(2026, 11, 20)
LONG_KEY = "x" * 9000
"""It gets no column: docs/columns.md."""

ORDERS = [
    {"orderId": 1, "amount": "12.50", "createdAt": "2026-11-20T08:15:00Z", "items": [{"sku": "pen"}]},
    {"orderId": 2, "amount": "n/a", LONG_KEY: 1},
]
LATER = [{"orderId": 3, "amount": "3.99"}]

EXPECTED: dict[str, list[tuple[Any, ...]]] = {
    "Rows of each hour": [(DAY, 8, 2), (DAY, 9, 1)],
    "The latest hour": [("3", "3.99")],
    "Keys that got no column": [(DAY, 8, 1, '{"xxxx')],
    "Inside an object or an array": [("1", "pen")],
    "What a cast loses": [(3, 2)],
    "Values that a cast loses": [("2", "n/a")],
    "Sum of a day": [(Decimal("16.49"),)],
    "A typed, sorted copy of an hour": [(Decimal("12.50"),)],
    "Why lines are in the quarantine": [("not JSON", 2, 0), ("not an object", 1, 0)],
    "The rejected lines": [
        (DAY, 8, "not JSON", 0, "oops"),
        (DAY, 9, "not JSON", 0, "oops"),
        (DAY, 9, "not an object", 5, "[1]"),
    ],
    "Rows and rejected lines of each file": [(8, 1, 2), (9, 2, 1)],
}
"""By heading."""


def convert_orders(folder: Path, *, clean: bool = False) -> Path:
    """The folder that the page names ``converted``: two hours of orders, each with rejected lines.

    ``clean``: no line is rejected, and the later hour has a column that the earlier one lacks.
    """
    output = folder / "converted"
    hours = {8: ["oops", *map(json.dumps, ORDERS)], 9: ["oops", "[1]", *map(json.dumps, LATER)]}
    if clean:
        hours = {8: list(map(json.dumps, ORDERS)), 9: [json.dumps({"orderId": 3, "amount": "3.99", "coupon": "x"})]}
    settings = Settings(stage="here", convert=ConvertSettings(provenance=True))
    for hour, lines in hours.items():
        file = folder / f"{hour}.ndjson"
        file.write_text("\n".join(lines), encoding="utf-8")
        instant = datetime(2026, 11, 20, hour, tzinfo=UTC)
        # The first file is from a bucket with versions.
        found = replace(LocalFile.found(str(file.resolve())), version_id="v1" if hour == min(hours) else None)
        with patch.object(LocalFile, "found", return_value=found):
            convert_files(Request(Search([str(file)], settings, "orders", instant), output, cores=1))
        # Present as in a stage: no query reads it.
        marker = output / "lake" / complete_marker_key(Partition("orders", str(DAY), hour))
        marker.write_text('{"rows": 1}', encoding="utf-8")
    return output


def statements(engine: str, converted: Path) -> Iterator[tuple[str, str]]:
    """(heading, statement) of the page for an engine: its own, and those for every engine, on this lake."""
    for section in re.split(r"^#+ ", PAGE.text, flags=re.MULTILINE):
        heading = section.partition("\n")[0]
        for block in re.findall(r"^```sql\n(.*?)^```$", section, flags=re.MULTILINE | re.DOTALL):
            named = re.match(r"-- (.+)\n", block)
            assert named is None or named[1] in ENGINES
            if named is None or named[1] == engine:
                text = block.replace("'converted/", f"'{converted}/").removeprefix(f"-- {engine}\n")
                yield from ((heading, statement.strip()) for statement in text.split(";") if statement.strip())


def python_blocks(library: str, converted: Path) -> str:
    """The Python of the page for a library, on this lake."""
    (block,) = re.findall(rf"^```python\n# {library}\n(.*?)^```$", PAGE.text, flags=re.MULTILINE | re.DOTALL)
    return str(block.replace('"converted/', f'"{converted}/'))


def answers(
    engine: str, converted: Path, run: Callable[[str], list[tuple[Any, ...]]]
) -> dict[str, list[tuple[Any, ...]]]:
    """The results of each query of the page, by heading."""
    found = {}
    for heading, statement in statements(engine, converted):
        rows = run(statement)
        if statement.startswith("SELECT"):
            assert heading not in found
            found[heading] = rows
    return found


def test_the_queries_run_in_duckdb(tmp_path: Path) -> None:
    converted = convert_orders(tmp_path)
    with duckdb.connect() as database:

        def run(statement: str) -> list[tuple[Any, ...]]:
            return database.execute(statement).fetchall()

        assert answers("DuckDB", converted, run) == EXPECTED


def test_on_a_clean_dataset_no_view_fails(tmp_path: Path) -> None:
    converted = convert_orders(tmp_path, clean=True)
    with duckdb.connect() as database:
        found = answers("DuckDB", converted, lambda statement: database.execute(statement).fetchall())
    assert found["Why lines are in the quarantine"] == found["The rejected lines"] == []
    assert found["Rows of each hour"] == EXPECTED["Rows of each hour"]


def test_polars_and_pyarrow_see_columns_that_appear_later(tmp_path: Path) -> None:
    # Given an hour with a column that the hour before it lacks
    converted = convert_orders(tmp_path, clean=True)
    for library in ("Polars", "pyarrow"):
        names: dict[str, Any] = {}
        # When
        exec(python_blocks(library, converted), names)
        orders = names["orders"]
        rows = orders.collect().to_dicts() if library == "Polars" else orders.to_table().to_pylist()
        # Then
        values = sorted((row["order__id"], row["coupon"], row["date"], row["hour"]) for row in rows)
        assert values == [("1", None, DAY, 8), ("2", None, DAY, 8), ("3", "x", DAY, 9)]
