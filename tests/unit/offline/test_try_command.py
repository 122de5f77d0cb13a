"""`hybrid-router try`: what would happen to a file, without any cloud."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from cli.exit_codes import ExitCode
from cli.main import app

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS = """stage = "x"
time_zone = "UTC"
[[datasets]]
name = "{folder}"
[peak]
hours = ["08:00-10:00"]
"""


@pytest.fixture(autouse=True)
def _threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The start of processes would take most of the test."""
    monkeypatch.setattr("offline.conversion.new_pool", ThreadPoolExecutor)


def tried(tmp_path: Path, content: bytes, key: str, *options: str) -> tuple[int, Any]:
    file, settings = tmp_path / "a.ndjson", tmp_path / "settings.toml"
    file.write_bytes(content)
    settings.write_text(SETTINGS)
    found = CliRunner().invoke(app, ["try", str(file), "--key", key, "--settings", str(settings), *options])
    return found.exit_code, json.loads(found.stdout) if "--json" in options else found.stdout


@pytest.mark.parametrize(
    ("key", "hour", "lane", "reason"),
    [
        ("orders/a.ndjson", "2026-11-20T09", "stream", "peak hours"),
        ("orders/a.ndjson", "2026-11-20T12", "batch", "waits for the overnight run"),
        ("orders/urgent/a.ndjson", "2026-11-20T12", "stream", "urgent: the key matches */urgent/*"),
        ("orders/a.txt", "2026-11-20T12", None, "input.suffixes"),
    ],
)
def test_the_lane_is_that_of_the_router_at_that_hour(
    tmp_path: Path, key: str, hour: str, lane: str | None, reason: str
) -> None:
    code, body = tried(tmp_path, b'{"a": 1}\n', key, "--at", hour, "--json")
    assert (body["lane"], body["hour"]) == (lane, hour)
    assert reason in body["reason"]
    assert body["dataset"] == (None if lane is None else "orders")
    assert code == (ExitCode.NOT_SO if lane is None else ExitCode.FINE)


def test_columns_rejects_and_price_are_shown(tmp_path: Path) -> None:
    code, text = tried(tmp_path, b'{"Total": 1.10, "b": null}\n[]\n\n', "orders/a.ndjson", "--at", "2026-11-20T12")
    assert code == ExitCode.NOT_SO
    for words in (
        "orders/a.ndjson: batch lane: waits for the overnight run",
        "dataset orders, hour 2026-11-20T12",
        "3: 1 rows, 1 quarantined, 1 blank",
        "1 lines: not an object",
        "first: not an object at byte 27",
        "total",
        "glue-flex $0.00000",
    ):
        assert words in text


def test_a_file_that_cannot_be_read_to_its_end(tmp_path: Path) -> None:
    code, text = tried(tmp_path, b"\x1f\x8b\x08\x00broken", "orders/a.ndjson.gz")
    assert code == ExitCode.NOT_SO
    assert "the whole file goes to the quarantine" in text
