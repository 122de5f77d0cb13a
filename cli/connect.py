"""Finds a deployed stack by its stage: on AWS, or in the local cloud by the file that ``local up`` writes."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from cli.aws_cli import account_options, aws_on_local_cloud
from cli.aws_errors import NotReachableError, advise
from cli.deployed_stack import DeployedStack
from cli.local_stage.local_clouds import LocalStage, local_state
from infra.names import stack_name
from local import isolation

CONNECT_SECONDS = 1
"""To a server on this machine."""


def connect_to_stage(
    stage: str, *, local: bool, profile: str | None = None, region: str | None = None
) -> DeployedStack:
    """The stack of a stage, on AWS or (``local``) on this machine."""
    if local:
        cloud = read_local_state(stage)
        session = isolation.session(isolation.AccessKey(**cloud["access_key"]))
        return DeployedStack.connect(
            cloud["outputs"],
            session,
            cloud["endpoint"],
            isolation.client_config(),
            cloud.get("logs"),
            aws=aws_on_local_cloud(LocalStage(local_state(), stage).aws_config),
        )
    try:
        session = boto3.Session(profile_name=profile, region_name=region)
        stacks = session.client("cloudformation").describe_stacks(StackName=stack_name(stage))["Stacks"]
    except (BotoCoreError, ClientError) as error:
        raise NotReachableError(_no_stack(error, stage)) from error
    outputs = {item["OutputKey"]: item["OutputValue"] for item in stacks[0].get("Outputs", [])}
    options = account_options(profile, region)
    return DeployedStack.connect(outputs, session, aws=f"aws{options}", account_options=options)


def read_local_state(stage: str) -> Mapping[str, Any]:
    """What ``local up`` has written about the running cloud of this stage."""
    state = LocalStage(local_state(), stage).state_file
    cloud: dict[str, Any] = json.loads(state.read_text(encoding="utf-8")) if state.is_file() else {}
    if not cloud or not _answers(cloud["endpoint"]):
        raise NotReachableError(
            f"no local cloud of stage {stage} is running on this machine: 'hybrid-router local ls' shows those "
            "that are, and 'hybrid-router local up' starts one"
        )
    return cloud


def _answers(endpoint: str) -> bool:
    """Whether a server listens: a cloud that was killed has left its file."""
    place = urlsplit(endpoint)
    try:
        with socket.create_connection((str(place.hostname), place.port or 80), CONNECT_SECONDS):
            return True
    except OSError:
        return False


def _no_stack(error: BotoCoreError | ClientError, stage: str) -> str:
    local = "or add --local for the cloud on this machine"
    # What DescribeStacks answers for a name that does not exist.
    if isinstance(error, ClientError) and error.response.get("Error", {}).get("Code") == "ValidationError":
        return (
            f"there is no stack {stack_name(stage)} in this account and region: pass --stage, --profile or --region of "
            f"the one that you mean, or run 'cdk deploy -c stage={stage}', {local}"
        )
    return f"{advise(error)}, {local}"
