"""`hybrid-router try`: what would happen to a file, without any cloud."""

import gzip
import json
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from typer.testing import CliRunner

from cli.errors import ExitCode, NotReachableError
from cli.main import app
from lake.errors import InvalidInputError
from lake.settings.operation import PriceSettings
from transform.source import DeniedFileError

SETTINGS = """stage = "x"
time_zone = "UTC"
[[datasets]]
name = "small"
prefix = "small/"
urgent.max_bytes = 9
[[datasets]]
name = "tagged"
prefix = "tagged/"
urgent.tags = ["priority=high"]
urgent.metadata = ["feed=live*"]
[[datasets]]
name = "{folder}"
[peak]
hours = ["08:00-10:00"]
"""


def tried(tmp_path: Path, content: bytes, key: str, *options: str) -> tuple[int, Any]:
    file, settings = tmp_path / "a.ndjson", tmp_path / "settings.toml"
    file.write_bytes(content)
    settings.write_text(SETTINGS)
    found = CliRunner().invoke(app, ["try", str(file), "--key", key, "--settings", str(settings), *options])
    return found.exit_code, json.loads(found.stdout) if "--json" in options else found.stdout


def test_columns_rejects_and_price_are_shown(tmp_path: Path) -> None:
    code, text = tried(tmp_path, b'{"Total": 1.10, "b": null}\n[]\n\n', "orders/a.ndjson", "--at", "2026-11-20T12")
    assert code == ExitCode.NEGATIVE
    for words in (
        "orders/a.ndjson: batch lane: waits for the overnight run",
        "dataset orders, hour 2026-11-20T12",
        "3: 1 row, 1 quarantined, 1 blank",
        "1 line: not an object",
        "first: not an object at byte 27",
        "total",
        "conversion  glue-flex < $0.0001: ",
        "by the prices and the assumed speed of price.*",
    ):
        assert words in text


def test_a_file_that_cannot_be_read_to_its_end(tmp_path: Path) -> None:
    code, text = tried(tmp_path, b"\x1f\x8b\x08\x00broken", "orders/a.ndjson.gz")
    assert code == ExitCode.NEGATIVE
    assert "the whole file goes to the quarantine" in text


@pytest.mark.parametrize(
    ("key", "options", "lane", "reason"),
    [
        ("orders/a.ndjson", ("--at", "2026-11-20T09"), "stream", "peak hours"),
        ("orders/a.txt", (), None, "input.suffixes"),
        ("small/a.ndjson", (), "stream", "urgent: its size (9 bytes) is within datasets.urgent"),
        (
            "tagged/a.ndjson",
            ("--tag", "a=b", "--tag", "priority=low", "--metadata", "Feed=live-1"),
            "stream",
            "urgent: feed=live* is in its metadata",
        ),
        (
            "tagged/a.ndjson",
            ("--tag", "priority=low"),
            "batch",
            "waits for the overnight run; its metadata were not read: a local file has none, pass --metadata "
            "name=value",
        ),
    ],
)
def test_the_lane_is_the_routers_choice_for_this_file_at_that_hour(
    tmp_path: Path, key: str, options: tuple[str, ...], lane: str | None, reason: str
) -> None:
    code, body = tried(tmp_path, b'{"a": 1}\n', key, "--json", "--at", "2026-11-20T12", *options)
    assert (body["lane"], body["dataset"]) == (lane, None if lane is None else key.partition("/")[0])
    assert reason in body["reason"]
    assert code == (ExitCode.NEGATIVE if lane is None else ExitCode.OK)


@pytest.mark.parametrize("option", ["--tag", "--metadata"])
@pytest.mark.parametrize("value", ["priority", "=high"])
def test_an_option_without_a_name_or_a_value_is_refused(option: str, value: str) -> None:
    found = CliRunner().invoke(app, ["try", "README.md", option, value])
    assert isinstance(found.exception, InvalidInputError)
    assert f"{option} {value!r} is not valid: pass name=value" in str(found.exception)


def test_what_is_not_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "loop.json").symlink_to("loop.json")
    for name in ("loop.json", "missing.json", "."):
        found = CliRunner().invoke(app, ["try", str(tmp_path / name)])
        assert isinstance(found.exception, InvalidInputError)
        assert "is not a file: pass one NDJSON file" in str(found.exception)


@mock_aws
def test_an_object_of_s3_is_tried_with_its_own_tags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given an object with a tag; its bytes come from memory, because the reader of ranges has no emulation here
    monkeypatch.setattr(
        "offline.input_files.InputFiles.fetch", lambda _self, _file, start, end: b'{"a": 1}\n'[start:end]
    )
    s3 = boto3.client("s3", region_name="eu-central-1")
    s3.create_bucket(Bucket="landing", CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
    s3.put_object(Bucket="landing", Key="tagged/a.ndjson", Body=b'{"a": 1}\n', Tagging="priority=high")
    settings = tmp_path / "settings.toml"
    settings.write_text(SETTINGS)
    place = ("--settings", str(settings), "--region", "eu-central-1", "--at", "2026-11-20T12", "--json")
    # When, Then
    found = CliRunner().invoke(app, ["try", "s3://landing/tagged/a.ndjson", *place])
    assert found.exit_code == ExitCode.OK, found.output
    body = json.loads(found.stdout)
    assert (body["key"], body["lane"], body["rows"]) == ("tagged/a.ndjson", "stream", 1)
    assert body["reason"] == "urgent: priority=high is in its tags"
    # And a missing file is reported
    missing = CliRunner().invoke(app, ["try", "s3://landing/b.ndjson", *place])
    assert "s3://landing/b.ndjson does not exist" in str(missing.exception)
    # And so is a file that cannot be read now
    denied = Mock(side_effect=DeniedFileError("it may not be read"))
    denied.side_effect.__cause__ = ClientError({"Error": {"Code": "AccessDenied"}}, "GetObject")
    monkeypatch.setattr("offline.input_files.InputFiles.fetch", denied)
    refused = CliRunner().invoke(app, ["try", "s3://landing/tagged/a.ndjson", *place])
    assert isinstance(refused.exception, NotReachableError)
    assert "was not converted: it may not be read" in str(refused.exception)


@pytest.mark.parametrize(("name", "speed"), [("a.ndjson", 40), ("a.ndjson.gz", 15.75)])
def test_the_price_follows_the_assumed_speed_of_s3(tmp_path: Path, name: str, speed: float) -> None:
    content = b'{"a": "' + b"x" * 10**6 + b'"}\n'
    content = gzip.compress(content, 0) if name.endswith("gz") else content
    _, body = tried(tmp_path, content, f"orders/{name}", "--at", "2026-11-20T12", "--json")
    per_core_second = PriceSettings().dpu_hour_flex / 4 / 3600
    assert body["dollars"] == {"glue-flex": pytest.approx(len(content) / speed / 10**6 * per_core_second)}


def test_a_file_of_the_stream_lane_has_the_price_of_its_engine_alone(tmp_path: Path) -> None:
    _, text = tried(tmp_path, b'{"a": 1}\n', "orders/urgent/a.ndjson")
    assert "conversion  glue < $0.0001: the workers" in text
