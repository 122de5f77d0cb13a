"""Finds a deployed stack by its stage, on AWS or in the local cloud; how the AWS command line is called for it."""

import json
import shlex
import socket
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from cli.commands import account_options, cdk_command
from cli.deployed_stack import DeployedStack
from cli.errors import NotReachableError, advise
from cli.local_clouds import LocalStage, local_state
from infra.names import stack_name
from lake.faults import error_code
from local import isolation
from local.isolation import REGION, AccessKey

LOCAL_PROFILE = "hybrid-router-local"


def aws_on_local_cloud(config: Path) -> str:
    """The command with the file of ``local_config``: the key stays out of the terminal's history."""
    return f"AWS_CONFIG_FILE={shlex.quote(str(config.absolute()))} aws --profile {LOCAL_PROFILE}"


def local_config(endpoint: str, key: AccessKey) -> str:
    """The content of a configuration file with one profile (AWS CLI User Guide, "Configuration and credential file
    settings"): endpoint, region and key of a local cloud.
    """
    lines = {
        "region": REGION,
        "endpoint_url": endpoint,
        "aws_access_key_id": key.id,
        "aws_secret_access_key": key.secret,
        "s3": "\n  addressing_style = path",
    }
    return f"[profile {LOCAL_PROFILE}]\n" + "".join(f"{name} = {value}\n" for name, value in lines.items())


CONNECT_SECONDS = 1
"""Timeout of a connection to a server on this machine."""


def connect_to_stage(
    stage: str, *, local: bool, profile: str | None = None, region: str | None = None
) -> DeployedStack:
    if local:
        cloud = read_local_state(stage)
        session = isolation.session(isolation.AccessKey(**cloud["access_key"]))
        endpoint, config = cloud["endpoint"], isolation.client_config()
        outputs = _read_outputs(session, stage, endpoint, config)
        stack = DeployedStack.connect(outputs, session, endpoint, config, cloud.get("logs"))
        return replace(stack, aws=aws_on_local_cloud(LocalStage(local_state(), stage).aws_config))
    try:
        session = boto3.Session(profile_name=profile, region_name=region)
        outputs = _read_outputs(session, stage)
    except (BotoCoreError, ClientError) as error:
        raise NotReachableError(_no_stack(error, stage, cdk_command(profile, region))) from error
    options = account_options(profile, region)
    return replace(DeployedStack.connect(outputs, session), aws=f"aws{options}", account_options=options)


def _read_outputs(
    session: boto3.Session, stage: str, endpoint: str | None = None, config: Config | None = None
) -> dict[str, str]:
    client = session.client("cloudformation", endpoint_url=endpoint, config=config)
    (stack,) = client.describe_stacks(StackName=stack_name(stage))["Stacks"]
    return {item["OutputKey"]: item["OutputValue"] for item in stack.get("Outputs", [])}


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


def _no_stack(error: BotoCoreError | ClientError, stage: str, cdk: str) -> str:
    local = "or add --local for the cloud on this machine"
    # What DescribeStacks answers for a name that does not exist.
    if isinstance(error, ClientError) and error_code(error) == "ValidationError":
        return (
            f"there is no stack {stack_name(stage)} in this account and region: pass --stage, --profile or --region of "
            f"the one that you mean, or run '{cdk} deploy -c stage={stage}', {local}"
        )
    return f"{advise(error)}, {local}"
