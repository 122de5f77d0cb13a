"""Printed commands of the AWS command line reach the stack that the person has asked about."""

from __future__ import annotations

import shlex
from dataclasses import fields
from pathlib import Path
from typing import Any

import boto3
import pytest

from cli.connect import LOCAL_PROFILE, aws_on_local_cloud, connect_to_stage, local_config
from infra.outputs import OPTIONAL, StackOutputs, output_key
from lake.resource_names import ResourceNames
from local.isolation import REGION, AccessKey

ENDPOINT = "http://127.0.0.1:4567"


def test_the_profile_of_a_local_cloud_leads_there_and_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a person who has credentials for AWS
    config = tmp_path / "the clouds" / "dev.aws"
    config.parent.mkdir()
    config.write_text(local_config(ENDPOINT, AccessKey("local-id", "local-secret")), encoding="utf-8")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "of-aws")
    # When the printed words are used as a shell reads them
    assignment, program, option, profile = shlex.split(aws_on_local_cloud(config))
    assert (program, option, profile) == ("aws", "--profile", LOCAL_PROFILE)
    monkeypatch.setenv(*assignment.split("=", 1))
    session = boto3.Session(profile_name=profile)
    # Then: the libraries of the AWS command line read the same file
    client = session.client("sqs")
    credentials = session.get_credentials()
    assert (client.meta.endpoint_url, client.meta.region_name) == (ENDPOINT, REGION)
    assert credentials is not None
    assert (credentials.access_key, credentials.secret_key, credentials.token) == ("local-id", "local-secret", None)
    assert "local-secret" not in aws_on_local_cloud(config)


class FakeSession:
    """A session of boto3 in an account with one stack."""

    def __init__(self, profile_name: str | None, region_name: str | None) -> None:
        self.place = (profile_name, region_name)

    def client(self, _service: str, **_options: object) -> FakeSession:
        return self

    resource = client

    @property
    def meta(self) -> FakeSession:
        return self

    def describe_stacks(self, StackName: str) -> dict[str, Any]:  # noqa: N803
        assert StackName == "hybrid-router-prod-eu"
        names = [item.name for item in (*fields(ResourceNames), *fields(StackOutputs)) if item.name not in OPTIONAL]
        outputs = [{"OutputKey": output_key(name), "OutputValue": "hybrid-router-prod-eu"} for name in names]
        return {"Stacks": [{"Outputs": outputs}]}


@pytest.mark.parametrize(
    ("profile", "region", "options"),
    [
        (None, None, ""),
        ("my prod", "eu-central-1", " --profile 'my prod' --region eu-central-1"),
    ],
)
def test_on_aws_printed_commands_have_the_profile_and_region_of_the_person(
    monkeypatch: pytest.MonkeyPatch, profile: str | None, region: str | None, options: str
) -> None:
    monkeypatch.setattr(boto3, "Session", FakeSession)
    stack = connect_to_stage("prod_eu", local=False, profile=profile, region=region)
    assert stack.aws == f"aws{options}"
    assert stack.options == f" --stage prod_eu{options}"
