"""AWS clients of drivers and tasks: credentials and endpoint come from the environment, the region from the caller.

Glue documents no environment variable with the region for a job's processes, and S3 clients default to us-east-1: boto3
then follows a redirect for each bucket, and obstore fails. So every client here uses the job argument ``--region``.
"""

import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import NoCredentialsError
from obstore.auth.boto3 import Boto3CredentialProvider
from obstore.store import S3Store

from lake.aws_types import Buffer, DynamoDBClient, S3Client
from lake.commit import PendingObject
from lake.engines import ENGINES
from lake.faults import refuse_proxies
from lake.manifest import ObjectVersion

MAX_CONNECTIONS = 128
"""Connections that the driver's threads can use at once while they publish (DRIVER_THREADS x PARALLEL_REQUESTS)."""
JOB_CLIENT_CONFIG = Config(
    max_pool_connections=MAX_CONNECTIONS,
    retries={"mode": "standard", "total_max_attempts": 8},
    # Every upload has its checksum; botocore's own would cost a second pass over the bytes.
    request_checksum_calculation="when_required",
    response_checksum_validation="when_required",
)
SHORT_CLIENT_CONFIG = Config(connect_timeout=5, read_timeout=10, retries={"mode": "standard", "total_max_attempts": 2})
"""For a service that a job's machines may be unable to reach: a claim must not wait long for it."""
METADATA_SERVICE = {"AWS_METADATA_SERVICE_TIMEOUT": "2", "AWS_METADATA_SERVICE_NUM_ATTEMPTS": "5"}
"""Environment variables of botocore, in seconds and tries, if they are not set.

botocore's defaults are one try of one second, but all tasks of a worker query the service when they start.
"""
CREDENTIALS_KEPT = timedelta(minutes=8)
"""Time for which a reader uses credentials before it gets them from the session again.

botocore returns credentials that are valid for at least 10 minutes (its mandatory refresh). obstore's default of 30
minutes would use them after their end.
"""
_SESSION_LOCK = threading.Lock()
"""Creating clients from a session is not thread-safe
(https://boto3.amazonaws.com/v1/documentation/api/latest/guide/session.html)."""


@cache
def session(region: str) -> boto3.Session:
    """The session of this process. Its clients and readers share credentials, which one of them renews for all.

    ``region`` is the region of the deployment; a process uses only one.
    """
    for name, value in METADATA_SERVICE.items():
        os.environ.setdefault(name, value)
    return refuse_proxies(boto3.Session(region_name=region))


def s3_client(region: str) -> S3Client:
    with _SESSION_LOCK:
        return session(region).client("s3", config=JOB_CLIENT_CONFIG)


def dynamodb_client(region: str) -> DynamoDBClient:
    """A thread-safe boto3 client that takes and returns plain Python values, like a resource's client."""
    with _SESSION_LOCK:
        return session(region).resource("dynamodb", config=JOB_CLIENT_CONFIG).meta.client


def engine_clients(region: str, engines: Iterable[str]) -> dict[str, Any]:
    """Thread-safe boto3 clients by service, for the services that run jobs on these engines."""
    configs = {
        ENGINES[name].service: JOB_CLIENT_CONFIG if ENGINES[name].reached_by_jobs else SHORT_CLIENT_CONFIG
        for name in engines
    }
    with _SESSION_LOCK:
        open_client: Any = session(region).client
        return {service: open_client(service, config=config) for service, config in configs.items()}


def object_store(region: str, bucket: str) -> S3Store:
    """A reader of one bucket that releases the interpreter's lock, with the endpoint and credentials of boto3.

    Raises ``NoCredentialsError`` if no credentials were found; a later call looks for them again.
    """
    with _SESSION_LOCK:
        current = session(region)
        if current.get_credentials() is None:
            raise NoCredentialsError
        credentials = Boto3CredentialProvider(current, ttl=CREDENTIALS_KEPT)
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    options: dict[str, Any] = {}
    if endpoint is not None:
        http = {"allow_http": endpoint.startswith("http://")}
        options = {"endpoint": endpoint, "virtual_hosted_style_request": False, "client_options": http}
    return S3Store(bucket, region=region, credential_provider=credentials, **options)


Fetch = Callable[[ObjectVersion, int, int], Buffer]
"""Returns the bytes [start, end) of exactly this version; thread-safe. Raises ``UnreadableFileError`` if they can never
be read, otherwise ``TransientError``."""
AddFile = Callable[[Path, str, str, int], Future[PendingObject]]
"""Takes over a written file with rows, given its bucket and final key; no reader can see it yet."""
