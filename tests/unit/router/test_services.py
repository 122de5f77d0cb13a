"""The container's services come from the environment, once, and carry nothing compiled."""

import subprocess
import sys
from pathlib import Path

import pytest

from lake.settings import dump_settings, parse_settings
from router.services import container_services
from tests.unit.lake.world import RESOURCES

ROOT = Path(__file__).parents[3]
HANDLERS = ("route", "plan", "backfill", "run_status", "settle", "catalog", "stream_control", "promote", "reprocess")


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
    services = container_services()
    file.unlink()
    # Then
    assert services.resources == RESOURCES
    assert services.settings.stage == "test"
    assert services.clock().tzinfo is not None
    assert container_services() is services
    container_services.cache_clear()


def test_handlers_import_nothing_of_the_data_plane() -> None:
    imports = "; ".join(f"import router.{name}.handler" for name in HANDLERS)
    heavy = "('pyspark', 'pyarrow', 'transform', 'obstore', 'ndjson_arrow', 'pydantic')"
    code = f"import sys; {imports}; print([name for name in sys.modules if name in {heavy}])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert answer.stdout.strip() == "[]"
