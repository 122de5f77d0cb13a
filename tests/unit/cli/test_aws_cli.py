"""Printed commands of the AWS command line reach the stack that the person has asked about."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import boto3
import pytest

from cli.aws_cli import LOCAL_PROFILE, aws_on_aws, aws_on_local_cloud, local_config
from local.isolation import REGION, AccessKey

if TYPE_CHECKING:
    from pathlib import Path

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


@pytest.mark.parametrize(
    ("profile", "region", "words"),
    [
        (None, None, "aws"),
        ("prod", None, "aws --profile prod"),
        ("my prod", "eu-central-1", "aws --profile 'my prod' --region eu-central-1"),
    ],
)
def test_on_aws_the_profile_and_region_of_the_person_are_passed_on(
    profile: str | None, region: str | None, words: str
) -> None:
    assert aws_on_aws(profile, region) == words
