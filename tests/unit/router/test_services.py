"""The container's services come from the environment, once, and carry nothing compiled."""

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from botocore.utils import parse_timestamp

from infra.functions import SPECS
from lake.settings import dump_settings, parse_settings
from router.services import container_services, parse_time
from tests.unit.lake.world import RESOURCES
from tests.unit.router.emr import LAUNCH

ROOT = Path(__file__).parents[3]


def test_settings_are_parsed_once_per_container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given: a Lambda's environment
    file = tmp_path / "settings.json"
    file.write_text(dump_settings(parse_settings({"stage": "test"})), encoding="utf-8")
    for key, value in {
        **RESOURCES.to_environment(),
        "SETTINGS_FILE": str(file),
        "AWS_DEFAULT_REGION": "eu-west-1",
    }.items():
        monkeypatch.setenv(key, value)
    container_services.cache_clear()
    # When
    first = container_services()
    file.unlink()
    # Then
    assert first.resources == RESOURCES
    assert first.settings.stage == "test"
    assert first.clock().tzinfo is not None
    assert container_services() is first
    container_services.cache_clear()


def test_a_function_is_told_how_a_streaming_run_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given the environment of a stage whose streaming jobs are on EMR Serverless
    file = tmp_path / "settings.json"
    settings = parse_settings({"stage": "test", "stream": {"engine": "emr-serverless"}})
    file.write_text(dump_settings(settings), encoding="utf-8")
    environment = {**RESOURCES.to_environment(), "SETTINGS_FILE": str(file), "AWS_DEFAULT_REGION": "eu-west-1"}
    for key, value in {**environment, "STREAM_LAUNCH": LAUNCH.to_text()}.items():
        monkeypatch.setenv(key, value)
    container_services.cache_clear()
    # When
    found = container_services()
    container_services.cache_clear()
    # Then
    assert found.stream_launch == LAUNCH
    assert set(found.job_clients) == {"glue", "emr-serverless"}


@pytest.mark.parametrize(
    "value", ["2026-11-20T09:30:00.000Z", "2026-11-20T09:30:00Z", "Fri, 20 Nov 2026 09:30:00 GMT", 1795167000]
)
def test_times_of_every_format_are_read_and_those_of_listings_without_botocores_parser(value: Any) -> None:
    assert parse_time(value) == parse_timestamp(value) == datetime(2026, 11, 20, 9, 30, tzinfo=UTC)


def test_handlers_import_nothing_of_the_data_plane() -> None:
    imports = "; ".join(f"import router.{spec.module}" for spec in SPECS)
    heavy = "('pyspark', 'pyarrow', 'transform', 'obstore', 'ndjson_arrow', 'pydantic')"
    code = f"import sys; {imports}; print([name for name in sys.modules if name in {heavy}])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert answer.stdout.strip() == "[]"
