"""Fixtures for the tests of `hybrid-router convert`, and conversions that are killed."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.offline.convert import Request, convert_files
from lake.documents import format_json
from lake.settings import ConvertSettings, Settings
from offline.input_files import Search

GOOD = b'{"a": 1, "b": "x"}\n{"a": 2}\n'
BAD = b'{"a": 3}\nnot JSON\n'
Convert = Callable[..., tuple[int, dict[str, Any]]]
"""Converts files into one folder, or runs the given command; returns the exit code and the ``--json`` output."""
SMALL = Settings(stage="here", convert=ConvertSettings(split_bytes=4096, target_file_bytes=8192, row_group_bytes=65536))


def request(*paths: Path | str, output: Path, settings: Settings = SMALL, dataset: str | None = None) -> Request:
    search = Search([str(path) for path in paths], settings, dataset)
    return Request(search, output, cores=2)


def inputs(folder: Path) -> list[tuple[Path, str, str]]:
    found = sorted(path for path in folder.rglob("*.ndjson*") if not path.name.startswith("."))
    return [(path, path.resolve().as_uri(), path.parent.name) for path in found]


class KilledError(Exception):
    """A conversion was killed."""


def convert_until_killed(conversion: Request, steps: int) -> bool:
    """Convert, but raise ``KilledError`` instead of each rename or deletion of a file after this number of them.

    Returns whether it was raised.
    """
    left = iter(range(steps))

    def until(call: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any, **options: Any) -> Any:
            if next(left, None) is None:
                raise KilledError
            return call(*arguments, **options)

        return called

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Path, "replace", until(Path.replace))
        patched.setattr(Path, "unlink", until(Path.unlink))
        try:
            convert_files(conversion)
        except KilledError:
            return True
    return False


@pytest.fixture
def convert(tmp_path: Path) -> Convert:
    def call(*names: Any, output: Path = tmp_path / "out", **options: Any) -> tuple[int, dict[str, Any]]:
        (first, *_) = names
        answer = convert_files(first if isinstance(first, Request) else request(*names, output=output, **options))
        return answer.code, json.loads(format_json(answer.document))

    return call


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files of two datasets; one file cannot be read to its end."""
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
