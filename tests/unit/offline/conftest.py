"""What tests of `hybrid-router convert` convert, and where its tasks run."""

import gzip
from pathlib import Path

import pytest

from tests.unit.offline.conversions import BAD, GOOD


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files of two datasets, one of which cannot be read to its end."""
    for name, content in {
        "orders/a.ndjson": GOOD,
        "orders/b.ndjson": BAD,
        "clicks/c.ndjson.gz": gzip.compress(GOOD * 2000),
        "clicks/cut.ndjson.gz": gzip.compress(GOOD * 2000)[:-40],
        "clicks/empty.ndjson": b"",
        "clicks/.hidden.ndjson": GOOD,
        "clicks/notes.txt": b"x",
    }.items():
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return tmp_path / "in"
