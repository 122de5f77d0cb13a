"""AWS clients of drivers and tasks: endpoint, region and credentials come from the environment."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config
from obstore.auth.boto3 import Boto3CredentialProvider
from obstore.store import S3Store

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

MAX_CONNECTIONS = 128
"""The driver's threads can use this number at once while they publish (DRIVER_THREADS x PARALLEL_REQUESTS)."""
JOB_CLIENT_CONFIG = Config(
    max_pool_connections=MAX_CONNECTIONS,
    retries={"mode": "standard", "total_max_attempts": 8},
    # Every upload has its MD5; the checksum that botocore would add costs a second pass over the bytes.
    request_checksum_calculation="when_required",
    response_checksum_validation="when_required",
)


def s3_client() -> S3Client:
    """A thread-safe boto3 client."""
    return boto3.Session().client("s3", config=JOB_CLIENT_CONFIG)


def object_store(bucket: str) -> S3Store:
    """A reader of one bucket that releases the interpreter's lock; the same endpoint and credentials as boto3."""
    session = boto3.Session()
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    region = session.region_name or "us-east-1"
    credentials = Boto3CredentialProvider(session)
    if endpoint is None:
        return S3Store(bucket, region=region, credential_provider=credentials)
    return S3Store(
        bucket,
        region=region,
        credential_provider=credentials,
        endpoint=endpoint,
        virtual_hosted_style_request=False,
        client_options={"allow_http": endpoint.startswith("http://")},
    )
