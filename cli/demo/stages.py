"""The demo's stages on a deployed stack: upload, wait, run the state machines, copy the output."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cli.demo.console import DemoConsole
from cli.demo.files import DemoCase, DemoFile
from cli.deployed_stack import DeployedStack
from cli.inspect.trace import Trace, trace_arrival
from lake.errors import TerminalError
from lake.layout import list_objects, parse_generation
from lake.ledger import State
from lake.manifest import ObjectVersion

POLL_SECONDS = 0.5
STAGE_TIMEOUT_SECONDS = 900
GRACEFUL_STOP_SECONDS = 120
"""After this time the stream's run is killed."""
FINAL_STATES = (State.DONE, State.FAILED)
"""States in which a current manifest stays; a superseded one is never current."""


class DemoError(TerminalError):
    """A stage of the demo failed or took too long."""


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file that the demo put into the input bucket."""

    file: DemoFile
    object: ObjectVersion
    sent_at: float
    """Seconds since the epoch."""


def send_files(stack: DeployedStack, files: Sequence[DemoFile], console: DemoConsole, title: str) -> list[SentFile]:
    """Put the files into the input bucket."""
    bucket = stack.resources.input_bucket
    sent_files = []
    with console.stage(title, len(files)) as report:
        for number, file in enumerate(files, start=1):
            stack.s3.upload_file(str(file.path), bucket, file.key)
            head = stack.s3.head_object(Bucket=bucket, Key=file.key)
            version = ObjectVersion(bucket, file.key, head["ETag"].strip('"'), file.size, "", head.get("VersionId"))
            sent_files.append(SentFile(file, version, time.time()))
            report(number, file.key)
    return sent_files


def send_duplicate_event(stack: DeployedStack, sent_file: SentFile) -> None:
    """Send the file's ``ObjectCreated`` event a second time: S3 delivers events at least once."""
    record = created_record(sent_file.object, stack.s3.meta.region_name)
    stack.sqs.send_message(QueueUrl=stack.outputs.arrivals_queue, MessageBody=json.dumps({"Records": [record]}))


def created_record(file: ObjectVersion, region: str) -> dict[str, Any]:
    """The record of an ``ObjectCreated`` event of now, as S3 sends it for a file whose key needs no escapes."""
    return {
        "eventVersion": "2.1",
        "eventSource": "aws:s3",
        "awsRegion": region,
        "eventTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        "eventName": "ObjectCreated:Put",
        "s3": {
            "bucket": {"name": file.bucket, "arn": f"arn:aws:s3:::{file.bucket}"},
            "object": {"key": file.key, "size": file.size, "eTag": file.etag, "versionId": file.version_id},
        },
    }


def wait_recorded(stack: DeployedStack, sent_files: Sequence[SentFile], console: DemoConsole) -> None:
    """Wait until ``route`` has recorded every arrival in the ledger, with its lane."""
    arrivals = stack.ledger.arrivals
    _wait(
        console,
        "route: lane decided, ledger written",
        sent_files,
        lambda item: arrivals.get(item.object) is not None,
    )


def wait_published(stack: DeployedStack, sent_files: Sequence[SentFile], console: DemoConsole, title: str) -> None:
    """Wait until the manifests of all these files are DONE or FAILED."""
    _wait(console, title, sent_files, lambda item: _is_final(trace_sent_file(stack, item)))


def trace_sent_file(stack: DeployedStack, sent_file: SentFile) -> Trace | None:
    """The trace of a sent file; None while ``route`` has not recorded it."""
    arrival = stack.ledger.arrivals.get(sent_file.object)
    return None if arrival is None else trace_arrival(stack.s3, stack.ledger, stack.resources, arrival)


def is_done(stack: DeployedStack, sent_file: SentFile) -> bool:
    """Whether the file is published."""
    trace = trace_sent_file(stack, sent_file)
    return trace is not None and trace.state == State.DONE


def run_machine(
    stack: DeployedStack,
    machine: str,
    request: dict[str, Any],
    sent_files: Sequence[SentFile],
    console: DemoConsole,
    title: str,
) -> dict[str, Any]:
    """Start a state machine and show the progress of the files that it converts; returns its output."""
    arn = stack.sfn.start_execution(stateMachineArn=machine, input=json.dumps(request))["executionArn"]
    deadline = time.monotonic() + STAGE_TIMEOUT_SECONDS
    with console.stage(title, len(sent_files)) as report:
        while True:
            execution = stack.sfn.describe_execution(executionArn=arn)
            done = sum(_is_final(trace_sent_file(stack, item)) for item in sent_files)
            report(done, execution["status"].lower())
            if execution["status"] != "RUNNING":
                break
            if time.monotonic() > deadline:
                raise DemoError(f"{title} took longer than {STAGE_TIMEOUT_SECONDS} s: see the logs")
            time.sleep(POLL_SECONDS)
    if execution["status"] != "SUCCEEDED":
        raise DemoError(f"{title} ended {execution['status']}: {execution.get('cause') or execution.get('error')}")
    output: dict[str, Any] = json.loads(execution["output"])
    return output


def wait_for_stream(stack: DeployedStack, console: DemoConsole) -> None:
    """Wait until the streaming job, which has been started, sends its first heartbeat."""
    with console.stage("stream lane: job starts", 1) as report:
        deadline = time.monotonic() + STAGE_TIMEOUT_SECONDS
        while stack.ledger.stream.get().heartbeat_at is None:
            _raise_if_failed(stack)
            if time.monotonic() > deadline:
                raise DemoError(f"the streaming job sent no heartbeat for {STAGE_TIMEOUT_SECONDS} s: see its log")
            time.sleep(POLL_SECONDS)
        report(1, "")


def stop_stream(stack: DeployedStack, console: DemoConsole) -> None:
    """Set the stop flag and wait until the run has ended; kill a run that does not end."""
    stack.control_stream("stop")
    with console.stage("stream lane: graceful stop", 1) as report:
        deadline = time.monotonic() + GRACEFUL_STOP_SECONDS
        while _stream_runs(stack)[0]["JobRunState"] in ("STARTING", "RUNNING", "STOPPING"):
            if time.monotonic() > deadline:
                stack.control_stream("kill")
            time.sleep(POLL_SECONDS)
        report(1, _stream_runs(stack)[0]["JobRunState"])


def export(stack: DeployedStack, output: Path, console: DemoConsole) -> None:
    """Copy the lake and the quarantine to ``output/lake`` and ``output/quarantine``, which are replaced.

    Left out are objects of a generation that another one has replaced.
    """
    for name, bucket in zip(("lake", "quarantine"), stack.resources.output_buckets, strict=True):
        folder = output / name
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
        keys = [item["Key"] for item in list_objects(stack.s3, bucket) if not _is_replaced(stack, item["Key"])]
        with console.stage(f"copy the {name} to plain files", len(keys)) as report:
            for number, key in enumerate(keys, start=1):
                path = folder / key
                path.parent.mkdir(parents=True, exist_ok=True)
                stack.s3.download_file(bucket, key, str(path))
                report(number, "")


def _is_replaced(stack: DeployedStack, key: str) -> bool:
    if (parsed := parse_generation(key)) is None:
        return False
    row = stack.ledger.manifests.get(parsed[0])
    return row is not None and row.published is not None and row.published.generation > parsed[1]


class NotificationsPaused:
    """Inside this block the input bucket sends no events, so only ``backfill`` and ``sweep`` find new files."""

    def __init__(self, stack: DeployedStack) -> None:
        self._s3: Any = stack.s3
        self._bucket = stack.resources.input_bucket
        self._original: dict[str, Any] = {}

    def __enter__(self) -> None:
        self._original = self._s3.get_bucket_notification_configuration(Bucket=self._bucket)
        self._original.pop("ResponseMetadata", None)
        self._s3.put_bucket_notification_configuration(Bucket=self._bucket, NotificationConfiguration={})

    def __exit__(self, *_: object) -> None:
        self._s3.put_bucket_notification_configuration(Bucket=self._bucket, NotificationConfiguration=self._original)


def of_cases(sent_files: Sequence[SentFile], *cases: DemoCase) -> list[SentFile]:
    """The sent_files that show one of these cases."""
    return [item for item in sent_files if item.file.case in cases]


def _is_final(trace: Trace | None) -> bool:
    return trace is not None and trace.state in FINAL_STATES


def _wait(console: DemoConsole, title: str, sent_files: Sequence[SentFile], done: Callable[[SentFile], bool]) -> None:
    deadline = time.monotonic() + STAGE_TIMEOUT_SECONDS
    waiting = list(sent_files)
    with console.stage(title, len(sent_files)) as report:
        while waiting:
            waiting = [item for item in waiting if not done(item)]
            report(len(sent_files) - len(waiting), "")
            if waiting and time.monotonic() > deadline:
                raise DemoError(f"{title}: {waiting[0].file.key} took over {STAGE_TIMEOUT_SECONDS} s: see the logs")
            if waiting:
                time.sleep(POLL_SECONDS)


def _stream_runs(stack: DeployedStack) -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = stack.glue.get_job_runs(JobName=stack.resources.stream_job)["JobRuns"]
    return sorted(runs, key=lambda run: run["StartedOn"], reverse=True)


def _raise_if_failed(stack: DeployedStack) -> None:
    runs = _stream_runs(stack)
    if runs and runs[0]["JobRunState"] in ("FAILED", "TIMEOUT", "ERROR"):
        raise DemoError(f"the streaming job ended {runs[0]['JobRunState']}: {runs[0].get('ErrorMessage')}")
