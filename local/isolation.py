"""The environment and the clients of the local cloud: they can reach the emulator on loopback and nothing else.

The emulator answers programs that name it, and no web page that a browser has open.
"""

import json
import os
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import boto3
import botocore.session
from botocore.config import Config

from lake.aws_types import CreateBucketConfigurationTypeDef

ACCOUNT = "111122223333"
REGION: Final = "eu-central-1"
"""Not us-east-1: many programs fall back to it, so a missing region would not be noticed."""

BUCKET_PLACE: CreateBucketConfigurationTypeDef = {"LocationConstraint": REGION}
"""``CreateBucketConfiguration`` of CreateBucket, which every region but us-east-1 demands."""

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


@dataclass(frozen=True, slots=True)
class AccessKey:
    """Credentials of one identity of a local cloud."""

    id: str
    secret: str
    session_token: str | None = None

    @classmethod
    def random(cls, prefix: str = "AKIA") -> "AccessKey":
        """A key that cannot be guessed; ``prefix`` is AWS's for its kind (ASIA: temporary)."""
        token = secrets.token_urlsafe(48) if prefix == "ASIA" else None
        return cls(prefix + secrets.token_hex(8).upper(), secrets.token_urlsafe(30), token)

    @property
    def environment(self) -> dict[str, str]:
        token = {} if self.session_token is None else {"AWS_SESSION_TOKEN": self.session_token}
        return {"AWS_ACCESS_KEY_ID": self.id, "AWS_SECRET_ACCESS_KEY": self.secret, **token}


def kept_environment() -> dict[str, str]:
    """The environment variables that programs need to start, without the person's Spark, Python or AWS."""
    return {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}


def isolated_environment(endpoint: str, key: AccessKey) -> dict[str, str]:
    """The whole environment of a child process that may use ``endpoint`` only, as the identity of ``key``.

    From the environment of this process it keeps only what programs need to start.
    """
    return environment_without_region(endpoint, key) | {"AWS_REGION": REGION, "AWS_DEFAULT_REGION": REGION}


def environment_without_region(endpoint: str, key: AccessKey) -> dict[str, str]:
    """Return the environment of a process without its region: Glue documents no variable for it."""
    return kept_environment() | {
        **key.environment,
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


def session(key: AccessKey) -> boto3.Session:
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
        aws_access_key_id=key.id,
        aws_secret_access_key=key.secret,
        aws_session_token=key.session_token,
        region_name=REGION,
        botocore_session=core,
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


def client(service: str, endpoint: str, key: AccessKey) -> AwsClient:
    """A new boto3 client of ``service`` that uses ``endpoint`` as the identity of ``key``, without a proxy."""
    connect: Any = session(key).client
    return connect(service, endpoint_url=endpoint, config=client_config(), verify=True)


Event = Any
App = Callable[[Event, Event, Event], Awaitable[None]]

_OPEN_PATHS = ("/_ministack/health", "/_ministack/cfn-response/", "/_ministack/cfn-signal/")
"""Paths that need no access key: the start of the cloud, and answers of CloudFormation, whose paths hold a token."""


def only_own_requests(app: App, port: int) -> App:
    """Wrap ``app`` with a check of each request's Host, Origin and path.

    A page of another site can send requests to loopback, and read the answers by a name that resolves to 127.0.0.1.
    These headers show both: a browser sets them, and no script can.
    """
    hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}

    async def checked(scope: Event, receive: Event, send: Event) -> None:
        reason = _refusal(scope, hosts) if scope["type"] in ("http", "websocket") else None
        if reason is None:
            await app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            body = json.dumps({"__type": "AccessDeniedException", "message": reason}).encode()
            headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
            await send({"type": "http.response.start", "status": 403, "headers": headers})
            await send({"type": "http.response.body", "body": body})

    return checked


def _refusal(scope: Mapping[str, Any], hosts: set[str]) -> str | None:
    headers = [(name.lower(), value.decode("latin-1")) for name, value in scope.get("headers", ())]
    named = [value for name, value in headers if name == b"host"]
    if len(named) != 1 or named[0] not in hosts:
        return "The Host header names another server than this local cloud."
    if any(name == b"origin" for name, _ in headers):
        return "Requests of web pages are refused."
    path = str(scope.get("path", ""))
    if path.startswith(("/_ministack", "/_localstack")) and not path.startswith(_OPEN_PATHS):
        return "The emulator's own interface is closed."
    return None
