"""The local cloud: the AWS services that the product uses, on loopback only, and a deployment to it."""

import fcntl
import http.client
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from botocore.exceptions import ClientError, WaiterError

from local import isolation
from local.emulator_patches import check_version
from local.errors import LocalCloudError
from local.isolation import ACCOUNT, BUCKET_PLACE, REGION, AwsClient
from local.limits import Limits
from local.processes import end_session

_CHECKOUT = Path(__file__).resolve().parents[1]
_STATE_FOLDERS = ("s3", "runs", "tmp", "emulator", "lambda-runtime")
_MAX_START_SECONDS = 60
_MAX_STOP_SECONDS = 10
_MAX_LOG_CHARACTERS = 4000

_POLL_SECONDS = 0.2
_MAX_STACK_SECONDS = 120
_BOOTSTRAP_VERSION = "30"
_ASSETS_BUCKET = f"cdk-hnb659fds-assets-{ACCOUNT}-{REGION}"


class LocalCloud:
    """A running local cloud: :meth:`start` it; it ends with its ``with`` block or by :meth:`close`.

    If the process that started it ends, even by SIGKILL, everything that the cloud started ends as well.
    """

    def __init__(
        self,
        state_dir: Path,
        port: int,
        access_key: isolation.AccessKey,
        process: subprocess.Popen[bytes],
        resources: ExitStack,
    ) -> None:
        self.state_dir = state_dir
        self.access_key = access_key
        """Key of the account's root user, who may do everything."""
        self.logs_dir = state_dir / "logs"
        self.endpoint = f"http://127.0.0.1:{port}"
        self.environment = isolation.isolated_environment(self.endpoint, access_key)
        """The whole environment for a process that uses only this cloud."""
        self._port = port
        self._process = process
        self._resources = resources
        self._clients: dict[str, isolation.AwsClient] = {}
        self._clients_lock = threading.Lock()

    @classmethod
    def start(cls, state_dir: Path, *, log: Callable[[str], None] = lambda _: None) -> "LocalCloud":
        """Start an empty local cloud on a free port, with its files under ``state_dir``.

        ``state_dir``: a folder for this cloud alone. Files of an earlier cloud are removed, except the logs. ``log``:
        called with one line for each step. Raises ``LocalCloudError`` if another local cloud uses ``state_dir``, or the
        emulator did not start within 60 seconds; the message ends with the end of its log.
        """
        check_version()
        state_dir = state_dir.resolve()
        with ExitStack() as resources:
            lock = resources.enter_context(_claim(state_dir))
            for name in _STATE_FOLDERS:
                if (state_dir / name).exists():
                    shutil.rmtree(state_dir / name)
                (state_dir / name).mkdir()
            (state_dir / "logs").mkdir(exist_ok=True)
            listener = resources.enter_context(closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)))
            listener.bind(("127.0.0.1", 0))
            port = int(listener.getsockname()[1])
            log(f"starting the local cloud on 127.0.0.1:{port}")
            Limits().write(state_dir)
            key = isolation.AccessKey.random()
            process = _spawn(listener.fileno(), port, state_dir, key, lock)
            cloud = cls(state_dir, port, key, process, resources.pop_all())
        try:
            cloud._wait_until_healthy()
        except BaseException:
            cloud.close()
            raise
        listener.close()
        return cloud

    def client(self, service: str) -> isolation.AwsClient:
        """This cloud's boto3 client for ``service``, independent of the user's AWS profile and environment.

        Every call returns the same client, which threads may share, so its exception classes are the same everywhere.
        """
        with self._clients_lock:
            if service not in self._clients:
                self._clients[service] = isolation.client(service, self.endpoint, self.access_key)
            return self._clients[service]

    def limit(self, limits: Limits) -> None:
        limits.write(self.state_dir)

    def deploy(self, cdk_out: Path) -> dict[str, str]:
        """Create or update the stack of the cloud assembly in ``cdk_out``, and return its outputs by key.

        Repeating a deployment changes nothing. Raises ``LocalCloudError`` if the stack failed or did not end within 120
        seconds; the message names the resource and the reason.
        """
        s3 = self.client("s3")
        with suppress(s3.exceptions.BucketAlreadyOwnedByYou):
            s3.create_bucket(Bucket=_ASSETS_BUCKET, CreateBucketConfiguration=BUCKET_PLACE)
        artifacts = json.loads((cdk_out / "manifest.json").read_text())["artifacts"]
        for artifact in artifacts.values():
            if artifact["type"] == "cdk:asset-manifest":
                _upload_assets(s3, cdk_out, artifact["properties"]["file"])
        ((name, stack),) = (item for item in artifacts.items() if item[1]["type"] == "aws:cloudformation:stack")
        properties = stack["properties"]
        return self._deploy_stack(properties.get("stackName", name), cdk_out / properties["templateFile"])

    def wait(self) -> int:
        """Block until the emulator ends, and return its exit code."""
        return self._process.wait()

    def close(self) -> None:
        """End every process that this cloud started, and no other; idempotent.

        On return these processes have ended, so the folder can be removed.
        """
        if self._process.stdin is not None and not self._process.stdin.closed:
            self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_MAX_STOP_SECONDS)
        end_session(self._process.pid)
        self._process.wait()
        self._resources.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _wait_until_healthy(self) -> None:
        deadline = time.monotonic() + _MAX_START_SECONDS
        while not _healthy(self._port):
            if self._process.poll() is not None or time.monotonic() > deadline:
                log_file = self.logs_dir / "emulator.log"
                tail = log_file.read_text(errors="replace")[-_MAX_LOG_CHARACTERS:]
                raise LocalCloudError(f"The local cloud did not start. The end of {log_file}:\n{tail}")
            time.sleep(0.05)

    def _deploy_stack(self, name: str, template_file: Path) -> dict[str, str]:
        cloudformation, s3 = self.client("cloudformation"), self.client("s3")
        template = template_file.read_text()
        version = json.loads(template).get("Parameters", {}).get("BootstrapVersion", {}).get("Default")
        if version:
            self.client("ssm").put_parameter(Name=version, Value=_BOOTSTRAP_VERSION, Type="String", Overwrite=True)
        key = f"{name}.template.json"
        s3.put_object(Bucket=_ASSETS_BUCKET, Key=key, Body=template.encode())
        exists = any(stack["StackName"] == name for stack in cloudformation.describe_stacks()["Stacks"])
        change = "update" if exists else "create"
        try:
            getattr(cloudformation, f"{change}_stack")(
                StackName=name,
                TemplateURL=f"{s3.meta.endpoint_url}/{_ASSETS_BUCKET}/{key}",
                Capabilities=["CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"],
            )
            polls = {"Delay": _POLL_SECONDS, "MaxAttempts": int(_MAX_STACK_SECONDS / _POLL_SECONDS)}
            cloudformation.get_waiter(f"stack_{change}_complete").wait(StackName=name, WaiterConfig=polls)
        except WaiterError as error:
            raise LocalCloudError(f"Stack {name} failed: {_first_failure(cloudformation, name)}") from error
        except ClientError as error:
            if "No updates are to be performed" not in str(error):
                raise LocalCloudError(f"Stack {name} was rejected: {error.response['Error']['Message']}") from error
        (stack,) = cloudformation.describe_stacks(StackName=name)["Stacks"]
        return {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}


def _claim(state_dir: Path) -> IO[str]:
    state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Its files contain keys with which code can be run as this user.
    state_dir.chmod(0o700)
    lock = (state_dir / "lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise LocalCloudError(
            f"Another local cloud is running in {state_dir}: stop it, or use another folder."
        ) from None
    return lock


def _spawn(
    listener: int, port: int, state_dir: Path, key: isolation.AccessKey, lock: IO[str]
) -> subprocess.Popen[bytes]:
    with (state_dir / "logs" / "emulator.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "local.emulator_process", *map(str, (listener, port, state_dir))],
            cwd=_CHECKOUT,
            env=_emulator_environment(port, key, state_dir),
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            # With the lock: if the owner is killed, the folder stays claimed until the emulator has ended as well.
            pass_fds=(listener, lock.fileno()),
            start_new_session=True,
        )


def _emulator_environment(port: int, key: isolation.AccessKey, state: Path) -> dict[str, str]:
    """The whole environment of the emulator: isolated, with its files under ``state`` and one listening port.

    ``key`` is the root user's; every other identity gets its keys from the emulator.
    """
    return isolation.isolated_environment(f"http://127.0.0.1:{port}", key) | {
        "AUTH": "true",
        "GATEWAY_PORT": str(port),
        "BIND_HOST": "127.0.0.1",
        "MINISTACK_HOST": "127.0.0.1",
        "MINISTACK_REGION": isolation.REGION,
        "MINISTACK_ACCOUNT_ID": isolation.ACCOUNT,
        "S3_PERSIST": "1",
        "S3_DATA_DIR": str(state / "s3"),
        "STATE_DIR": str(state / "emulator"),
        "TMPDIR": str(state / "tmp"),
        "SFTP_ENABLED": "0",
        "IOT_MTLS_ENABLED": "0",
        # The emulator removes containers at start; it must not find this machine's containers.
        "DOCKER_HOST": f"unix://{state}/no-docker",
        "LOG_LEVEL": "INFO",
    }


def _healthy(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    with closing(connection), suppress(OSError, http.client.HTTPException):
        connection.request("GET", "/_ministack/health")
        return connection.getresponse().status == http.client.OK
    return False


def _upload_assets(s3: AwsClient, cdk_out: Path, manifest: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for asset in json.loads((cdk_out / manifest).read_text())["files"].values():
            path = cdk_out / asset["source"]["path"]
            if asset["source"].get("packaging") == "zip":
                path = Path(shutil.make_archive(f"{folder}/asset", "zip", path))
            for destination in asset["destinations"].values():
                bucket = _resolve_placeholders(destination["bucketName"])
                key = _resolve_placeholders(destination["objectKey"])
                s3.put_object(Bucket=bucket, Key=key, Body=path.read_bytes())


def _resolve_placeholders(text: str) -> str:
    return (
        text.replace("${AWS::AccountId}", ACCOUNT).replace("${AWS::Region}", REGION).replace("${AWS::Partition}", "aws")
    )


def _first_failure(cloudformation: AwsClient, name: str) -> str:
    pages = cloudformation.get_paginator("describe_stack_events").paginate(StackName=name)
    failed = [event for page in pages for event in page["StackEvents"] if event["ResourceStatus"].endswith("_FAILED")]
    if not failed:
        return "no resource reported a reason: read the emulator's log."
    # Events are listed newest first.
    first = failed[-1]
    return f"{first['LogicalResourceId']} ({first['ResourceType']}): {first.get('ResourceStatusReason', '')}"
