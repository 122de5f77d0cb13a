"""Cloud assemblies are deployed unchanged; deployments can be repeated."""

import json
from pathlib import Path
from typing import Any

import pytest

from local.errors import LocalCloudError


def _assembly(folder: Path, name: str, template: dict[str, Any]) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "template.json").write_text(json.dumps(template))
    stack = {"type": "aws:cloudformation:stack", "properties": {"templateFile": "template.json"}}
    (folder / "manifest.json").write_text(json.dumps({"artifacts": {name: stack}}))
    return folder


def test_second_deployment_of_the_same_assembly_changes_nothing(probe, probe_assembly):
    assert probe.cloud.deploy(probe_assembly) == probe.outputs


def test_changed_template_updates_the_stack_and_its_outputs(probe, tmp_path):
    for value in ("old", "new"):
        parameter = {"Type": "String", "Name": "/changing", "Value": value}
        resources = {"P": {"Type": "AWS::SSM::Parameter", "Properties": parameter}}
        template = {"Resources": resources, "Outputs": {"Value": {"Value": value}}}
        outputs = probe.cloud.deploy(_assembly(tmp_path / "out", "Changing", template))
        assert outputs == {"Value": value}
        assert probe.client("ssm").get_parameter(Name="/changing")["Parameter"]["Value"] == value


def test_failed_stack_names_the_resource_and_the_reason(probe, tmp_path):
    template = {"Resources": {"Thing": {"Type": "AWS::Nothing::Thing", "Properties": {}}}}
    with pytest.raises(LocalCloudError, match="AWS::Nothing::Thing"):
        probe.cloud.deploy(_assembly(tmp_path / "out", "Failing", template))


def test_folder_without_an_assembly_is_refused_with_advice(probe, tmp_path):
    with pytest.raises(LocalCloudError, match=r"has no manifest\.json: run the CDK app"):
        probe.cloud.deploy(tmp_path)
