"""``cdk diff`` compares the app with the stack that CloudFormation has."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING

from infra.node import node_binary
from infra.synth import CHECKOUT, synth
from tests.e2e.stack_settings import e2e_settings
from tests.unit.infra.npm_packages import install

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.scenario import Scenario


def diff(scenario: Scenario, assembly: Path) -> subprocess.CompletedProcess[str]:
    """Run ``cdk diff`` as the principal that has deployed the stack; 1 if it finds a difference."""
    program = install(CHECKOUT / "tests" / "unit" / "infra" / "cdk_command_line", "aws-cdk/bin/cdk")
    command = [str(node_binary()), str(program), "diff", "--app", str(assembly), "--fail", "--no-notices", "--no-color"]
    # A change set would be a change of the stack that other tests share.
    command.append("--method=template")
    environment = {
        **scenario.cloud.environment,
        "HOME": str(assembly.parent),
        "CDK_DISABLE_CLI_TELEMETRY": "true",
        "CDK_DISABLE_VERSION_CHECK": "true",
    }
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=assembly.parent)


def test_diff_finds_nothing_in_what_is_deployed_and_names_what_is_not(scenario: Scenario, tmp_path: Path) -> None:
    # Given an app with the settings of the deployed stack.
    assembly = synth(e2e_settings(), tmp_path / "cdk.out")
    # Then there is no difference.
    unchanged = diff(scenario, assembly)
    assert unchanged.returncode == 0, unchanged.stdout + unchanged.stderr
    assert "Number of stacks with differences: 0" in unchanged.stdout + unchanged.stderr
    # When one function of the app has another timeout.
    file = next(assembly.glob("*.template.json"))
    template = json.loads(file.read_text(encoding="utf-8"))
    function = next(body for body in template["Resources"].values() if body["Type"] == "AWS::Lambda::Function")
    function["Properties"]["Timeout"] = 17
    file.write_text(json.dumps(template), encoding="utf-8")
    # Then it is named, and nothing else.
    changed = diff(scenario, assembly)
    printed = changed.stdout + changed.stderr
    assert changed.returncode == 1, printed
    assert re.findall(r"^\[[-+~]\] (AWS::\S+)", printed, re.MULTILINE) == ["AWS::Lambda::Function"], printed
    assert re.search(r"\[~\] Timeout\n.*\n.*\[\+\] 17$", printed, re.MULTILINE), printed
    assert "Number of stacks with differences: 1" in printed
