"""The demo's stages, each on a running deployment: upload, wait, run the machines, take the output home."""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from cli.trace import Trace, trace
from lake.errors import HybridRouterError, TerminalError
from lake.ledger import State
from lake.manifest import ObjectVersion

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from cli.demo.console import DemoConsole
    from cli.demo.files import DemoFile, Way
    from cli.deployed_stack import Deployment

POLL_SECONDS = 0.5
PATIENCE_SECONDS = 900
OVER = (State.DONE, State.FAILED)


class DemoError(TerminalError):
    """A stage of the demo did not come to its end."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A file that was uploaded."""

    file: DemoFile
    object: ObjectVersion
    sent_at: float
    """Seconds since the epoch."""


def upload(deployment: Deployment, files: Sequence[DemoFile], console: DemoConsole, title: str) -> list[Sent]:
    """Put the files into the input bucket, over HTTP."""
    bucket = deployment.resources.input_bucket
    sent = []
    with console.stage(title, len(files)) as report:
        for number, file in enumerate(files, start=1):
            deployment.s3.upload_file(str(file.path), bucket, file.key)
            head = deployment.s3.head_object(Bucket=bucket, Key=file.key)
            version = ObjectVersion(bucket, file.key, head["ETag"].strip('"'), file.size, "", head.get("VersionId"))
            sent.append(Sent(file, version, time.time()))
            report(number, file.key)
    return sent


def send_duplicate_event(deployment: Deployment, sent: Sent) -> None:
    """The same ``ObjectCreated`` once more, as S3 may do it."""
    item = sent.object
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    record = {
        "eventVersion": "2.1",
        "eventSource": "aws:s3",
        "awsRegion": "us-east-1",
        "eventTime": now,
        "eventName": "ObjectCreated:Put",
        "s3": {
            "bucket": {"name": item.bucket, "arn": f"arn:aws:s3:::{item.bucket}"},
            "object": {"key": item.key, "size": item.size, "eTag": item.etag, "versionId": item.version_id},
        },
    }
    deployment.sqs.send_message(
        QueueUrl=deployment.outputs.arrivals_queue, MessageBody=json.dumps({"Records": [record]})
    )


def wait_recorded(deployment: Deployment, sent: Sequence[Sent], console: DemoConsole) -> None:
    """Until ``route`` has every arrival in the ledger, with its lane."""
    arrivals = deployment.ledger.arrivals
    _wait(
        console,
        "route: lane decided, ledger written",
        sent,
        lambda item: arrivals.get(item.object) is not None,
    )


def wait_published(deployment: Deployment, sent: Sequence[Sent], console: DemoConsole, title: str) -> None:
    """Until the manifests of all these files have ended."""
    _wait(console, title, sent, lambda item: (view := follow(deployment, item)) is not None and view.state in OVER)


def follow(deployment: Deployment, sent: Sent) -> Trace | None:
    """What the ledger says of a sent file; None while it is not recorded."""
    arrival = deployment.ledger.arrivals.get(sent.object)
    return None if arrival is None else trace(deployment.s3, deployment.ledger, deployment.resources, arrival)


def run_machine(
    deployment: Deployment,
    machine: str,
    request: dict[str, Any],
    sent: Sequence[Sent],
    console: DemoConsole,
    title: str,
) -> dict[str, Any]:
    """Start a state machine as from the console and watch the files it converts; its output."""
    arn = deployment.sfn.start_execution(stateMachineArn=machine, input=json.dumps(request))["executionArn"]
    deadline = time.monotonic() + PATIENCE_SECONDS
    with console.stage(title, len(sent)) as report:
        while True:
            execution = deployment.sfn.describe_execution(executionArn=arn)
            views = [follow(deployment, item) for item in sent]
            report(sum(view is not None and view.state in OVER for view in views), execution["status"].lower())
            if execution["status"] != "RUNNING":
                break
            if time.monotonic() > deadline:
                raise DemoError(f"{title} took longer than {PATIENCE_SECONDS} s: see the logs")
            time.sleep(POLL_SECONDS)
    if execution["status"] != "SUCCEEDED":
        raise DemoError(f"{title} ended {execution['status']}: {execution.get('cause') or execution.get('error')}")
    output: dict[str, Any] = json.loads(execution["output"])
    return output


def start_stream(deployment: Deployment, console: DemoConsole) -> None:
    """Start the streaming job and wait for its first heartbeat."""
    deployment.control_stream("start")
    with console.stage("stream lane: job starts", 1) as report:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while deployment.ledger.stream.get().heartbeat_at is None:
            _fail_if_dead(deployment)
            if time.monotonic() > deadline:
                raise DemoError("the streaming job gave no sign of life: see its log")
            time.sleep(POLL_SECONDS)
        report(1, "")


def stop_stream(deployment: Deployment, console: DemoConsole) -> None:
    """Set the stop flag and wait until the run has ended by itself."""
    deployment.control_stream("stop")
    with console.stage("stream lane: graceful stop", 1) as report:
        deadline = time.monotonic() + 120
        while _stream_runs(deployment)[0]["JobRunState"] in ("STARTING", "RUNNING", "STOPPING"):
            if time.monotonic() > deadline:
                deployment.control_stream("kill")
            time.sleep(POLL_SECONDS)
        report(1, _stream_runs(deployment)[0]["JobRunState"])


def export(deployment: Deployment, output: Path, console: DemoConsole) -> None:
    """Copy lake and quarantine to plain files."""
    for name, bucket in zip(("lake", "quarantine"), deployment.resources.output_buckets, strict=True):
        folder = output / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        pages = deployment.s3.get_paginator("list_objects_v2").paginate(Bucket=bucket)
        keys = [item["Key"] for page in pages for item in page.get("Contents", [])]
        with console.stage(f"copy the {name} to plain files", len(keys)) as report:
            for number, key in enumerate(keys, start=1):
                path = folder / key
                path.parent.mkdir(parents=True, exist_ok=True)
                deployment.s3.download_file(bucket, key, str(path))
                report(number, "")


class NotificationsPaused:
    """While this holds, the input bucket tells nobody what lands in it: its files are found by ``backfill``."""

    def __init__(self, deployment: Deployment) -> None:
        self._s3: Any = deployment.s3
        self._bucket = deployment.resources.input_bucket
        self._standing: dict[str, Any] = {}

    def __enter__(self) -> None:
        self._standing = self._s3.get_bucket_notification_configuration(Bucket=self._bucket)
        self._standing.pop("ResponseMetadata", None)
        self._s3.put_bucket_notification_configuration(Bucket=self._bucket, NotificationConfiguration={})

    def __exit__(self, *_: object) -> None:
        self._s3.put_bucket_notification_configuration(Bucket=self._bucket, NotificationConfiguration=self._standing)


def of_way(sent: Sequence[Sent], *ways: Way) -> list[Sent]:
    """Those meant to go one of these ways."""
    return [item for item in sent if item.file.way in ways]


def _wait(console: DemoConsole, title: str, sent: Sequence[Sent], over: Callable[[Sent], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    waiting = list(sent)
    with console.stage(title, len(sent)) as report:
        while waiting:
            waiting = [item for item in waiting if not over(item)]
            report(len(sent) - len(waiting), "")
            if waiting and time.monotonic() > deadline:
                raise DemoError(f"{title}: {waiting[0].file.key} took over {PATIENCE_SECONDS} s: see the logs")
            if waiting:
                time.sleep(POLL_SECONDS)


def _stream_runs(deployment: Deployment) -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = deployment.glue.get_job_runs(JobName=deployment.resources.stream_job)["JobRuns"]
    return sorted(runs, key=lambda run: run["StartedOn"], reverse=True)


def _fail_if_dead(deployment: Deployment) -> None:
    runs = _stream_runs(deployment)
    if runs and runs[0]["JobRunState"] in ("FAILED", "TIMEOUT", "ERROR"):
        raise HybridRouterError(f"the streaming job ended {runs[0]['JobRunState']}: {runs[0].get('ErrorMessage')}")
