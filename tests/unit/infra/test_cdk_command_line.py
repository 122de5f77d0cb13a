"""The CDK command line runs the app of cdk.json with only what set-up installed."""

import json
import re
from pathlib import Path

from infra.synth import CHECKOUT
from tests.unit.infra.npm_packages import run_cdk


def test_every_role_has_the_permission_boundary_of_the_page(tmp_path: Path) -> None:
    # Given a machine without uv on its PATH and without AWS
    (tmp_path / "bin").mkdir()
    environment = {
        "PATH": str(tmp_path / "bin"),
        "HOME": str(tmp_path),
        "AWS_REGION": "eu-central-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        # CDK's libraries are unpacked below HOME, which takes most of the time of a synthesis: once is enough.
        "JSII_RUNTIME_PACKAGE_CACHE_ROOT": str(Path.home() / ".cache" / "aws" / "jsii" / "package-cache"),
    }
    # And the boundary of docs/deploy.md, in the file of a user whose home is tmp_path
    written = re.search(r'\{"context": .*?\}(?=`)', (CHECKOUT / "docs" / "deploy.md").read_text(encoding="utf-8"))
    assert written is not None
    (tmp_path / ".cdk.json").write_text(written.group())
    settings = tmp_path / "day.toml"
    settings.write_text('stage = "day"\n')
    # When
    context = ("-c", f"settings={settings}", "-c", "local=true")
    output = str(tmp_path / "cdk.out")
    code, printed = run_cdk(CHECKOUT, environment, "synth", "--quiet", *context, "--output", output)
    # Then
    assert code == 0, printed
    template = json.loads(next((tmp_path / "cdk.out").glob("*.template.json")).read_text())
    roles = [body["Properties"] for body in template["Resources"].values() if body["Type"] == "AWS::IAM::Role"]
    assert roles
    assert all("policy/<policy>" in str(role.get("PermissionsBoundary")) for role in roles)
