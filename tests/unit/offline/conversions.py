"""Files and requests for the tests of `hybrid-router convert`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from cli.offline.convert import Request
from lake.settings import ConvertSettings, Settings
from offline.input_files import Destination, Search

if TYPE_CHECKING:
    import pytest

GOOD = b'{"a": 1, "b": "x"}\n{"a": 2}\n'
BAD = b'{"a": 3}\nnot JSON\n'
SMALL = Settings(stage="here", convert=ConvertSettings(split_bytes=4096, target_file_bytes=8192, row_group_bytes=65536))


def request(*paths: Path | str, output: Path, settings: Settings = SMALL, dataset: str | None = None) -> Request:
    search = Search([str(path) for path in paths], settings, Destination(dataset), "")
    return Request(search, output, cores=2, as_json=True)


def inputs(folder: Path) -> list[tuple[Path, str, str]]:
    found = sorted(path for path in folder.rglob("*.ndjson*") if not path.name.startswith("."))
    return [(path, path.resolve().as_uri(), path.parent.name) for path in found]


def answer(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    body: dict[str, object] = json.loads(capsys.readouterr().out)
    return body
