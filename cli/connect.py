"""Finds a deployed stack: on AWS by its stage, on this machine by what ``local up`` wrote down."""

from __future__ import annotations

import json
from pathlib import Path

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from cli.deployed_stack import Deployment
from lake.errors import InvalidInputError
from local import isolation

LOCAL_STATE = Path(".cache") / "local"


def stack_name(stage: str) -> str:
    """CloudFormation's name of a stage's stack."""
    return f"hybrid-router-{stage.replace('_', '-')}"


def connect(stage: str, local: bool) -> Deployment:
    """The deployment of a stage.

    Raises
    ------
    InvalidInputError
        There is none; the message says what to type.
    """
    if local:
        state = LOCAL_STATE / f"{stage}.json"
        if not state.is_file():
            raise InvalidInputError(f"no local cloud of stage {stage} runs here: type 'hybrid-router local up'")
        known = json.loads(state.read_text(encoding="utf-8"))
        return Deployment.connect(known["outputs"], isolation.session(), known["endpoint"], isolation.client_config())
    session = boto3.Session()
    try:
        stacks = session.client("cloudformation").describe_stacks(StackName=stack_name(stage))["Stacks"]
    except (BotoCoreError, ClientError) as error:
        raise InvalidInputError(
            f"no stack {stack_name(stage)} in this account and region ({error}): type 'cdk deploy -c stage={stage}', "
            "or add --local for the cloud on this machine"
        ) from error
    outputs = {item["OutputKey"]: item["OutputValue"] for item in stacks[0].get("Outputs", [])}
    return Deployment.connect(outputs, session)
