"""The CDK command line runs the app of cdk.json with nothing but what set-up installed."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from infra.synth import CHECKOUT
from tests.unit.infra.npm_packages import NODE_BINARY, install


@pytest.fixture
def cdk(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a command of CDK in a checkout, on a machine without uv on its PATH and without AWS."""
    program = install(Path(__file__).parent / "cdk_command_line", "aws-cdk/bin/cdk")
    (tmp_path / "bin").mkdir()
    environment = {
        "PATH": str(tmp_path / "bin"),
        "HOME": str(tmp_path),
        "AWS_REGION": "eu-central-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "CDK_DISABLE_CLI_TELEMETRY": "true",
        "CDK_DISABLE_VERSION_CHECK": "true",
        # CDK's libraries are unpacked below HOME, which takes most of the time of a synthesis: once is enough.
        "JSII_RUNTIME_PACKAGE_CACHE_ROOT": str(Path.home() / ".cache" / "aws" / "jsii" / "package-cache"),
    }

    def run(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(NODE_BINARY), str(program), *arguments, "--no-notices", "--no-color"]
        command += ["--output", str(tmp_path / "cdk.out")]
        return subprocess.run(command, capture_output=True, text=True, cwd=checkout, check=False, env=environment)

    return run


def test_a_wrong_stage_ends_with_the_sentence_of_the_app(cdk: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    # Given a stage without a settings file.
    result = cdk(CHECKOUT, "list", "-c", "stage=nowhere")
    # Then the app has run, and has printed which file is missing, without a stack trace.
    assert result.returncode == 1
    assert [line for line in result.stderr.splitlines() if "nowhere.toml" in line]
    assert "Traceback" not in result.stderr


def test_the_permission_boundary_of_the_page_is_that_of_every_role(
    cdk: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    # Given what docs/deploy.md says of a boundary, in the file of a user whose home is tmp_path
    written = re.search(r'\{"context": .*?\}(?=`)', (CHECKOUT / "docs" / "deploy.md").read_text(encoding="utf-8"))
    assert written is not None
    (tmp_path / ".cdk.json").write_text(written.group())
    settings = tmp_path / "day.toml"
    settings.write_text('stage = "day"\n')
    # When
    result = cdk(CHECKOUT, "synth", "--quiet", "-c", f"settings={settings}", "-c", "local=true")
    # Then
    assert result.returncode == 0, result.stdout + result.stderr
    template = json.loads(next((tmp_path / "cdk.out").glob("*.template.json")).read_text())
    roles = [body["Properties"] for body in template["Resources"].values() if body["Type"] == "AWS::IAM::Role"]
    assert roles
    assert all("policy/<policy>" in str(role.get("PermissionsBoundary")) for role in roles)
