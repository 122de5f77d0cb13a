"""Settings, resource names, clients and the clock of a function; built once per container."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config

from lake.ledger import Ledger
from lake.resource_names import ResourceNames
from lake.settings import Settings, load_settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_boto3_glue import GlueClient
    from mypy_boto3_s3 import S3Client

    from lake.job_runs import EmrServerlessClient

PARALLEL_REQUESTS = 32
"""Threads, and HTTP connections per client, of one invocation."""
CLIENT_CONFIG = Config(max_pool_connections=PARALLEL_REQUESTS, retries={"mode": "standard", "max_attempts": 5})
ASSET_ROOT = Path(__file__).resolve().parents[1]
"""Folder of the Lambda's code."""


@dataclass(frozen=True, slots=True)
class Services:
    """One deployment, as a function sees it; tests pass their own clients and clock."""

    settings: Settings
    resources: ResourceNames
    ledger: Ledger
    s3: S3Client
    glue: GlueClient
    clock: Callable[[], datetime]
    """Returns the current time: aware, UTC."""
    emr: EmrServerlessClient | None = None
    """None: no run of the stage is on EMR Serverless."""


@cache
def container_services() -> Services:
    """The services of the Lambda's environment; parsed and connected at the first call only.

    ``SETTINGS_FILE`` (default ``settings.json``) is relative to the root of the Lambda's asset.

    Raises
    ------
    InvalidInputError
        An environment variable is missing.
    InvalidSettingsError
        The settings file is missing or not valid.
    """
    resources = ResourceNames.from_environment(os.environ)
    settings = load_settings(ASSET_ROOT / os.environ.get("SETTINGS_FILE", "settings.json"))
    dynamodb = boto3.resource("dynamodb", config=CLIENT_CONFIG)
    return Services(
        settings=settings,
        resources=resources,
        ledger=Ledger.over(dynamodb.meta.client, resources.ledger_table),
        s3=boto3.client("s3", config=CLIENT_CONFIG),
        glue=boto3.client("glue", config=CLIENT_CONFIG),
        clock=lambda: datetime.now(UTC),
        emr=boto3.client("emr-serverless", config=CLIENT_CONFIG) if settings.batch.uses_emr else None,
    )
