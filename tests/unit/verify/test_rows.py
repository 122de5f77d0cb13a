"""Rows of the verification: their values, no two rows look alike, a second pass finds duplicates in bounded memory.

It shares no code with the conversion, not even through its imports.
"""

import subprocess
import sys
import tracemalloc
from itertools import repeat
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lake.manifest import ObjectVersion
from verify.elements import Line
from verify.rows import BUCKETS, Pairs, locate, read_batches, read_pairs, rescued_pairs, row_digest


def test_members_of_the_rescued_column_are_columns_again() -> None:
    assert rescued_pairs('{"B":"x\\n","a":[1, 2],"n":null}') == [("__b", "x\n"), ("a", "[1, 2]")]
    assert rescued_pairs("broken") == [("_rescued", "broken")]


@given(
    st.lists(st.tuples(st.sampled_from(["a", "b"]), st.text(max_size=4)), max_size=3),
    st.lists(st.tuples(st.sampled_from(["a", "b"]), st.text(max_size=4)), max_size=3),
)
def test_equal_digests_are_equal_rows(left: list[tuple[str, str]], right: list[tuple[str, str]]) -> None:
    assert (row_digest(left) == row_digest(right)) == (left == right)


@pytest.mark.parametrize(("columns", "rows", "size"), [(1, 150, 1 << 20), (512, 1200, 250)])
def test_rows_of_any_size_are_read_in_bounded_memory(columns: int, rows: int, size: int, tmp_path: Path) -> None:
    # Given a small file of large rows; with many columns, each value is stored once in a dictionary
    texts = [f"{number % (rows // columns)}".ljust(size, "x") for number in range(rows)]
    table, path = pa.table({f"c{number}": texts for number in range(columns)}), tmp_path / "a.parquet"
    pq.write_table(table, path, use_dictionary=columns > 1, write_batch_size=1)
    del table
    before = pa.total_allocated_bytes()
    # When, Then
    used = [pa.total_allocated_bytes() - before for _ in read_pairs(path)]
    assert len(used) == rows
    assert max(used) < 120_000_000


def test_many_columns_are_read_in_few_batches(tmp_path: Path) -> None:
    # Given a file of 1,000 columns / When, Then: each batch costs every column 15 us
    pq.write_table(pa.table({f"c{number}": ["x"] * 1000 for number in range(1000)}), tmp_path / "a.parquet")
    with pq.ParquetFile(tmp_path / "a.parquet") as file:
        assert len(list(read_batches(file))) == 4


BYTES = 6_000_000
MAX_BYTES = 220_000_000
"""37 bytes for each of the line's: a line of 16 MiB stays below a worker's 5 GB for 4 tasks."""
PROBE = f"""
import resource, sys
from pathlib import Path
from verify.line_rules import RejectedError
from verify.rows import parse_row, row_digest

begin, repeated, end = (text.encode() for text in sys.argv[1:])
line = begin + repeated * ({BYTES} // len(repeated)) + end
now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + {MAX_BYTES}, now + {MAX_BYTES}))
try:
    print(len(parse_row(line, first=False)), row_digest([]) > 0)
except RejectedError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("begin", "repeated", "end", "outcome"),
    [
        ('{"a":"', "\\n", '"}', "1 True"),
        ('{"a":[', "[0],", "[]]}", "1 True"),
        ('{"a":[', '{"":0},', "[]]}", "1 True"),
        ('{"a":["', "x", '"]}', "1 True"),
        ('{"a":["', "\\u00e9", '"]}', "1 True"),
        ("{", '"":0,', '"":0}', "duplicate key"),
        ('{"a":"', "😀", '"}', "1 True"),
        ('{"a":"', '{\\"a\\":1}', "", "not JSON"),
    ],
)
def test_a_line_takes_bounded_memory_and_time(begin: str, repeated: str, end: str, outcome: str) -> None:
    probe = [sys.executable, "-c", PROBE, begin, repeated, end]
    assert subprocess.run(probe, capture_output=True, text=True, check=True, timeout=60).stdout.strip() == outcome


FILE = ObjectVersion("input", "a.json", "e", 1, "", "v")
URI = "s3://lake/a.parquet"


def buckets(*rows: Pairs) -> list[int]:
    return [row_digest(pairs) % BUCKETS for pairs in rows]


def test_equal_rows_take_the_memory_of_one() -> None:
    # Given one row 20,000 times, and a row that is not in the input
    equal = repeat((FILE, Line(1, 0, 0, b""), [("a", "x")]), 20_000)
    lake = ((URI, pairs) for pairs in ([("a", "x")] if number else [("a", "y")] for number in range(20_001)))
    tracemalloc.start()
    # When
    (difference,) = locate(equal, lake, buckets([("a", "x")], [("a", "y")]), 20_001)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Then
    assert difference.uri == URI
    assert peak < 500_000


IMPORTS = """
import pkgutil, sys, verify
for module in pkgutil.iter_modules(verify.__path__, "verify."):
    __import__(module.name)
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


def test_no_module_of_the_conversion_is_loaded() -> None:
    loaded = subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True, text=True, check=True).stdout.split()
    assert "lake" in loaded
    assert not {"ndjson_arrow", "transform", "batch_job", "streaming_job", "router", "pyspark", "obstore"} & set(loaded)
