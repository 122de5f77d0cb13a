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


def test_limits_of_a_job_come_through_cloudformation(cloud, tmp_path):
    command = {"Name": "glueetl", "ScriptLocation": "s3://code/job.py"}
    own = {"limited": {"ExecutionProperty": {"MaxConcurrentRuns": 2}, "Timeout": 240}, "plain": {}}
    jobs = {
        name: {"Type": "AWS::Glue::Job", "Properties": {"Name": name, "Role": "role", "Command": command, **limits}}
        for name, limits in own.items()
    }
    cloud.deploy(_assembly(tmp_path / "out", "Limited", {"Resources": jobs}))
    limited, plain = (cloud.client("glue").get_job(JobName=name)["Job"] for name in own)
    assert (limited["ExecutionProperty"], limited["Timeout"]) == ({"MaxConcurrentRuns": 2}, 240)
    assert (plain["ExecutionProperty"], plain.get("Timeout")) == ({"MaxConcurrentRuns": 1}, None)


def test_failed_stack_names_the_resource_and_the_reason(cloud, tmp_path):
    template = {"Resources": {"Thing": {"Type": "AWS::Nothing::Thing", "Properties": {}}}}
    with pytest.raises(LocalCloudError, match="AWS::Nothing::Thing"):
        cloud.deploy(_assembly(tmp_path / "out", "Failing", template))
