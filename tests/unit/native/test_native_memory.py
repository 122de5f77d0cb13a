"""What one line costs: an uploader decides how many members it has."""

from __future__ import annotations

import subprocess
import sys

import pytest

BYTES = 16_000_000
PROBE = f"""
import resource, sys
from pathlib import Path
from ndjson_arrow import Reader

begin, repeated, end = (text.encode() for text in sys.argv[1:])
line = begin + repeated * ({BYTES} // len(repeated)) + end
reader = Reader()
reader.open("file")
now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + 6 * {BYTES}, now + 6 * {BYTES}))
reader.feed(line)
reader.end_of_input()
reader.read()
counts = reader.close()
print({{reason: count for reason, count in counts.rejects.items() if count}})
"""


@pytest.mark.parametrize(
    ("begin", "repeated", "end", "reason"),
    [
        ("{", '"":0,', '"":0}', "duplicate key"),
        ('{"a":"\\ud800",', '"":0,', '"b":0}', "lone surrogate"),
        ("{", '"":0,', "}", "not JSON"),
        ("{", '"":0,', '"":0} x', "trailing characters"),
        ("[[", "0,", "0]]", "not an object"),
    ],
)
def test_a_rejected_line_of_many_members_takes_little_more_than_itself(
    begin: str, repeated: str, end: str, reason: str
) -> None:
    probe = [sys.executable, "-c", PROBE, begin, repeated, end]
    assert subprocess.run(probe, capture_output=True, text=True, check=True).stdout.strip() == str({reason: 1})
