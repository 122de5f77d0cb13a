"""The CDK app reads the right settings file; wrong settings end it with one sentence."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from infra.app import main, settings_file
from infra.node import node_binary
from infra.synth import CHECKOUT
from tests.unit.infra.npm_packages import install


def test_the_stage_names_the_settings_file() -> None:
    assert settings_file({}) == CHECKOUT / "settings" / "dev.toml"
    assert settings_file({"stage": "prod"}) == CHECKOUT / "settings" / "prod.toml"
    assert settings_file({"stage": "prod", "settings": "mine.toml"}) == Path("mine.toml")


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ('stage = "dev"\ntime_zone = "Europe/Berlim"', "time_zone", "Europe/Berlim"),
        ('stage = "dev"\n[batch]\nmax_runs = 0', "batch.max_runs", "0"),
        ('stage = "dev"\n[batch]\nmax_run = 5', "batch.max_run", "5"),
        ('stage = "dev"\n[peak]\nhours = ["8-20"]', "peak.hours", "8"),
    ],
)
def test_wrong_settings_are_one_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str,
    key: str,
    value: str,
) -> None:
    # Given a settings file with a wrong value.
    (tmp_path / "wrong.toml").write_text(text)
    monkeypatch.setenv("CDK_CONTEXT_JSON", json.dumps({"settings": str(tmp_path / "wrong.toml")}))
    # When the app runs.
    code = main()
    # Then it fails, and names the key and the value in one line.
    printed = capsys.readouterr().err
    assert code == 1
    assert len(printed.splitlines()) == 1
    assert key in printed
    assert value in printed


@pytest.fixture(scope="session")
def cdk() -> Path:
    """The program of the CDK command line."""
    return install(Path(__file__).parent / "cdk_command_line", "aws-cdk/bin/cdk")


def test_the_cdk_command_line_needs_nothing_but_the_set_up(tmp_path: Path, cdk: Path) -> None:
    # Given a machine without uv on its PATH, and a stage without a settings file.
    (tmp_path / "bin").mkdir()
    environment = {
        "PATH": str(tmp_path / "bin"),
        "HOME": str(tmp_path),
        "AWS_REGION": "eu-central-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "CDK_DISABLE_CLI_TELEMETRY": "true",
        "CDK_DISABLE_VERSION_CHECK": "true",
    }
    # When the CDK command line runs the app of cdk.json.
    command = [str(node_binary()), str(cdk), "list", "-c", "stage=nowhere", "--no-notices", "--output", str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, cwd=CHECKOUT, check=False, env=environment)
    # Then the app has run, and has printed which file is missing, without a stack trace.
    assert result.returncode == 1
    assert [line for line in result.stderr.splitlines() if "nowhere.toml" in line]
    assert "Traceback" not in result.stderr
