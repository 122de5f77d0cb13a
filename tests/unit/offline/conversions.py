"""Files and requests for the tests of `hybrid-router convert`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cli.offline.convert import Request
from lake.settings import ConvertSettings, Settings
from offline.input_files import Destination, Search

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


class KilledError(Exception):
    """A conversion was killed."""


@contextmanager
def killed_after(steps: int) -> Iterator[None]:
    """Raise ``KilledError`` instead of each rename or deletion of a file after this number of them."""
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
        yield
