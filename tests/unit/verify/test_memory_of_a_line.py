"""What one long line costs: an uploader decides what is in it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from verify.rows import parse_row

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
DIGITS = "9" * 4301
"""Python refuses such a number, so the slow rules decide about its line."""


@pytest.mark.parametrize(
    ("begin", "repeated", "end", "outcome"),
    [
        (f'{{"n":{DIGITS},"a":"', "x", '"}', "2 True"),
        (f'{{"n":{DIGITS},"a":"', "\\n", '"}', "2 True"),
        ('{"a":["', "x", '"]}', "1 True"),
        ('{"a":["', "\\u00e9", '"]}', "1 True"),
        ("{", '"":0,', '"":0}', "duplicate key"),
        ('{"a":"', "😀", '"}', "1 True"),
    ],
)
def test_a_line_takes_bounded_memory(begin: str, repeated: str, end: str, outcome: str) -> None:
    probe = [sys.executable, "-c", PROBE, begin, repeated, end]
    assert subprocess.run(probe, capture_output=True, text=True, check=True).stdout.strip() == outcome


def test_long_keys_are_not_kept() -> None:
    # Given lines with keys that differ in their last characters
    names = [parse_row(b'{"%s%d":1}' % (b"K" * 100_000, number), first=False) for number in range(2)]
    # Then each has a column of its own
    assert names[0] != names[1]
