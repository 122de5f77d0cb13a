"""How a person calls the AWS command line for a stack, so that a printed command works when it is copied."""

from __future__ import annotations

import shlex
from pathlib import Path

from local.isolation import REGION, AccessKey

LOCAL_PROFILE = "hybrid-router-local"


def account_options(profile: str | None, region: str | None) -> str:
    """The profile and the region that the person has named for the stack, with a space before each of them.

    They are the same for the AWS command line and for ``hybrid-router``.
    """
    options = (("--profile", profile), ("--region", region))
    return "".join(f" {option} {shlex.quote(value)}" for option, value in options if value is not None)


def aws_on_local_cloud(config: Path) -> str:
    """With the file of ``local_config``: the key stays out of the command, and so of the terminal's history."""
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
