"""The environment and the clients of the local cloud: they can reach the emulator on loopback and nothing else.

A child process gets an environment of a few harmless variables, never the user's own environment. So no profile,
credential, endpoint, proxy, Spark or Java setting of the user can direct a request to another machine.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import boto3
import botocore.session
from botocore.config import Config

if TYPE_CHECKING:
    from collections.abc import Mapping

ACCOUNT = "000000000000"
REGION = "us-east-1"
ACCESS_KEY = "test"
SECRET_KEY = "test"  # noqa: S105  (not a secret: the emulator accepts every key)

# boto3 creates the methods of its clients at run time.
AwsClient = Any

_KEPT_VARIABLES = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "JAVA_HOME",
    "LD_LIBRARY_PATH",
    # Set by coverage.py for the processes that a measured one starts.
    "COVERAGE_PROCESS_CONFIG",
)
_NOWHERE = os.devnull


def isolated_environment(endpoint: str, base: Mapping[str, str] | None = None) -> dict[str, str]:
    """The whole environment of a child process that may use ``endpoint`` only.

    From ``base`` (default: the environment of this process) it keeps only what programs need to start.
    """
    source = os.environ if base is None else base
    return {name: source[name] for name in _KEPT_VARIABLES if name in source} | {
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_CONFIG_FILE": _NOWHERE,
        "AWS_SHARED_CREDENTIALS_FILE": _NOWHERE,
        "AWS_EC2_METADATA_DISABLED": "true",
        "BOTO_CONFIG": _NOWHERE,
        "NO_PROXY": "127.0.0.1,localhost",
        "no_proxy": "127.0.0.1,localhost",
        "TZ": "UTC",
        "PYTHONUTF8": "1",
        "PYTHONUNBUFFERED": "1",
    }


def session() -> boto3.Session:
    """A boto3 session that reads no file and no variable of the user; use it with an explicit endpoint."""
    core = botocore.session.Session(
        session_vars={
            "profile": (None, None, None, None),
            "config_file": (None, None, _NOWHERE, None),
            "credentials_file": (None, None, _NOWHERE, None),
            "ca_bundle": (None, None, None, None),
        }
    )
    return boto3.Session(
        aws_access_key_id=ACCESS_KEY, aws_secret_access_key=SECRET_KEY, region_name=REGION, botocore_session=core
    )


def client_config() -> Config:
    """The configuration of every client of the local cloud: no proxy, path-style addresses, three attempts."""
    return Config(
        proxies={},
        use_fips_endpoint=False,
        use_dualstack_endpoint=False,
        inject_host_prefix=False,
        retries={"mode": "standard", "total_max_attempts": 3},
        s3={"addressing_style": "path", "use_accelerate_endpoint": False},
        max_pool_connections=32,
    )


def client(service: str, endpoint: str) -> AwsClient:
    """A new boto3 client of ``service`` that uses ``endpoint`` with fake credentials and without a proxy."""
    connect: Any = session().client
    return connect(service, endpoint_url=endpoint, config=client_config(), verify=True)
