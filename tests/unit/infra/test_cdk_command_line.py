"""The CDK command line runs the app of cdk.json with nothing but what set-up installed."""

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from infra.synth import CHECKOUT
from tests.unit.infra.npm_packages import run_cdk

Cdk = Callable[..., tuple[int, str]]


@pytest.fixture
def cdk(tmp_path: Path) -> Cdk:
    """Runs a command of CDK in the checkout, on a machine without uv on its PATH and without AWS."""
    (tmp_path / "bin").mkdir()
    environment = {
        "PATH": str(tmp_path / "bin"),
        "HOME": str(tmp_path),
        "AWS_REGION": "eu-central-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        # CDK's libraries are unpacked below HOME, which takes most of the time of a synthesis: once is enough.
        "JSII_RUNTIME_PACKAGE_CACHE_ROOT": str(Path.home() / ".cache" / "aws" / "jsii" / "package-cache"),
    }
    return partial(run_cdk, CHECKOUT, environment)


def test_a_wrong_stage_ends_with_the_sentence_of_the_app(cdk: Cdk, tmp_path: Path) -> None:
    # Given a stage without a settings file.
    code, printed = cdk("list", "-c", "stage=nowhere", "--output", str(tmp_path / "cdk.out"))
    # Then the app has run, and has printed which file is missing, without a stack trace.
    assert (code, "nowhere.toml" in printed, "Traceback" in printed) == (1, True, False), printed


def test_the_permission_boundary_of_the_page_is_that_of_every_role(cdk: Cdk, tmp_path: Path) -> None:
    # Given what docs/deploy.md says of a boundary, in the file of a user whose home is tmp_path
    written = re.search(r'\{"context": .*?\}(?=`)', (CHECKOUT / "docs" / "deploy.md").read_text(encoding="utf-8"))
    assert written is not None
    (tmp_path / ".cdk.json").write_text(written.group())
    settings = tmp_path / "day.toml"
    settings.write_text('stage = "day"\n')
    # When
    context = ("-c", f"settings={settings}", "-c", "local=true")
    code, printed = cdk("synth", "--quiet", *context, "--output", str(tmp_path / "cdk.out"))
    # Then
    assert code == 0, printed
    template = json.loads(next((tmp_path / "cdk.out").glob("*.template.json")).read_text())
    roles = [body["Properties"] for body in template["Resources"].values() if body["Type"] == "AWS::IAM::Role"]
    assert roles
    assert all("policy/<policy>" in str(role.get("PermissionsBoundary")) for role in roles)
