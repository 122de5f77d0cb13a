"""What tests of `hybrid-router convert` convert, and where its tasks run."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from cli.offline.convert import Request, convert_files
from tests.unit.offline.conversions import BAD, GOOD, Convert, request


@pytest.fixture
def convert(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Convert:
    def call(*asked: Any, output: Path = tmp_path / "out", **options: Any) -> tuple[int, dict[str, Any]]:
        capsys.readouterr()
        (first, *_) = asked
        code = convert_files(first if isinstance(first, Request) else request(*asked, output=output, **options))
        return code, json.loads(capsys.readouterr().out)

    return call


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
