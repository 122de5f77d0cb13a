"""The environment and the clients of the local cloud: they can reach the emulator on loopback and nothing else.

Children get an environment built from a short list of harmless variables, never the person's own one, so no profile,
credential, endpoint, proxy, Spark or Java setting of the person can lead out of the machine.
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
SECRET_KEY = "test"  # noqa: S105  (a fake one: the emulator accepts any)

# boto3 makes the methods of its clients at run time.
AwsClient = Any

_KEPT = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "JAVA_HOME", "LD_LIBRARY_PATH")
_NOWHERE = os.devnull


def isolated_environment(endpoint: str, person: Mapping[str, str] | None = None) -> dict[str, str]:
    """The whole environment of a child process that may talk to ``endpoint`` only.

    ``person`` is the environment to start from (default: this process's own); of it only what programs need to start
    at all is kept.
    """
    source = os.environ if person is None else person
    return {name: source[name] for name in _KEPT if name in source} | {
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
    """A boto3 session that reads no file and no variable of the person; pair it with an explicit endpoint."""
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
    """How every client of the local cloud talks: through no proxy, path style, three tries."""
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
    """A boto3 client of ``service`` that talks to ``endpoint`` with fake credentials and through no proxy."""
    connect: Any = session().client
    return connect(service, endpoint_url=endpoint, config=client_config(), verify=True)
