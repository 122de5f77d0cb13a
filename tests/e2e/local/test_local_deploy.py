"""Cloud assemblies are deployed unchanged; deployments can be repeated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from local.errors import LocalCloudError


def _assembly(folder: Path, stacks: dict[str, Any], needs: dict[str, list[str]] | None = None) -> Path:
    folder.mkdir(exist_ok=True)
    artifacts = {}
    for name, template in stacks.items():
        (folder / f"{name}.template.json").write_text(json.dumps(template))
        properties = {"templateFile": f"{name}.template.json"}
        dependencies = (needs or {}).get(name, [])
        artifacts[name] = {"type": "aws:cloudformation:stack", "properties": properties, "dependencies": dependencies}
    (folder / "manifest.json").write_text(json.dumps({"artifacts": artifacts}))
    return folder


def _parameter(name: str, value: Any) -> dict[str, Any]:
    return {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Name": name, "Value": value}}


def test_second_deployment_of_the_same_assembly_changes_nothing(probe, probe_assembly):
    assert probe.cloud.deploy(probe_assembly) == probe.outputs


def test_changed_template_updates_the_stack_and_its_outputs(probe, tmp_path):
    for value in ("old", "new"):
        template = {"Resources": {"P": _parameter("/changing", value)}, "Outputs": {"Value": {"Value": value}}}
        outputs = probe.cloud.deploy(_assembly(tmp_path / "out", {"Changing": template}))
        assert outputs == {"Value": value}
        assert probe.client("ssm").get_parameter(Name="/changing")["Parameter"]["Value"] == value


def test_template_too_large_for_a_request_is_deployed(probe, tmp_path):
    template = {"Metadata": {"Padding": "x" * 60_000}, "Resources": {"P": _parameter("/large", "there")}}
    probe.cloud.deploy(_assembly(tmp_path / "out", {"Large": template}))
    assert probe.client("ssm").get_parameter(Name="/large")["Parameter"]["Value"] == "there"


def test_stacks_are_deployed_after_those_they_need(probe, tmp_path):
    first = {
        "Resources": {"P": _parameter("/first", "from first")},
        "Outputs": {"Out": {"Value": "from first", "Export": {"Name": "first-value"}}},
    }
    second = {"Resources": {"P": _parameter("/second", {"Fn::ImportValue": "first-value"})}}
    probe.cloud.deploy(_assembly(tmp_path / "out", {"Later": second, "Earlier": first}, {"Later": ["Earlier"]}))
    assert probe.client("ssm").get_parameter(Name="/second")["Parameter"]["Value"] == "from first"


def test_failed_stack_names_the_resource_and_the_reason(probe, tmp_path):
    template = {"Resources": {"Thing": {"Type": "AWS::Nothing::Thing", "Properties": {}}}}
    with pytest.raises(LocalCloudError, match="AWS::Nothing::Thing"):
        probe.cloud.deploy(_assembly(tmp_path / "out", {"Failing": template}))


def test_folder_without_an_assembly_is_refused_with_advice(probe, tmp_path):
    with pytest.raises(LocalCloudError, match=r"has no manifest\.json: run the CDK app"):
        probe.cloud.deploy(tmp_path)
