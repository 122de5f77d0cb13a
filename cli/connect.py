"""Finds a deployed stack by its stage: on AWS, or in the local cloud by the file that ``local up`` writes."""

from __future__ import annotations

import json
from pathlib import Path

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from cli.deployed_stack import DeployedStack
from infra.names import stack_name
from lake.errors import InvalidInputError
from local import isolation

LOCAL_STATE = Path(".cache") / "local"


def connect_to_stage(stage: str, local: bool) -> DeployedStack:
    """The stack of a stage, on AWS or (``local``) on this machine.

    Raises
    ------
    InvalidInputError
        There is no such stack, or the request to AWS failed; the message says what to run.
    """
    if local:
        state = LOCAL_STATE / f"{stage}.json"
        if not state.is_file():
            raise InvalidInputError(
                f"no local cloud of stage {stage} is running on this machine: run 'hybrid-router local up'"
            )
        cloud = json.loads(state.read_text(encoding="utf-8"))
        session = isolation.session(isolation.AccessKey(**cloud["access_key"]))
        return DeployedStack.connect(cloud["outputs"], session, cloud["endpoint"], isolation.client_config())
    session = boto3.Session()
    try:
        stacks = session.client("cloudformation").describe_stacks(StackName=stack_name(stage))["Stacks"]
    except (BotoCoreError, ClientError) as error:
        raise InvalidInputError(
            f"no stack {stack_name(stage)} in this account and region ({error}): run 'cdk deploy -c stage={stage}', "
            "or add --local for the cloud on this machine"
        ) from error
    outputs = {item["OutputKey"]: item["OutputValue"] for item in stacks[0].get("Outputs", [])}
    return DeployedStack.connect(outputs, session)
