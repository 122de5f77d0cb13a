# ruff: noqa: N803 (the names are boto3's)
"""One deployment in memory, the clock that its services and all actors share, and the clients of an actor."""

import itertools
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from lake.ledger import ArrivalRow, Ledger
from lake.manifest import Lane, ObjectVersion, Partition
from lake.resource_names import ResourceNames
from lake.settings import Settings, parse_settings
from lake.time import iso_utc
from router.services import Services as RouterServices
from tests.model.fake_dynamodb import FakeDynamoDB
from tests.model.fake_s3 import FakeS3, Paginator
from tests.model.scheduler import Actor, Scheduler, is_read
from tests.unit.router.event_bridge import FakeEventBridge
from tests.unit.router.events import message, s3_record
from tests.unit.router.glue import glue_client

START = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)
PARTITION = Partition("orders", "2026-11-20", 9)
RESOURCES = ResourceNames("input", "lake", "quarantine", "control", "ledger", "stream-job", "batch-job", "catalog")
SETTINGS = parse_settings(
    {
        "stage": "model",
        "urgent": {"keys": ["orders/urgent*"]},
        "peak": {"hours": []},
        "batch": {"max_attempts": 12, "lease_seconds": 600},
        "convert": {"target_file_bytes": 20},
        "sweep": {"listing_hours": 0, "missed_minutes": 10, "grace_minutes": 60},
    }
)
LEASE = timedelta(seconds=SETTINGS.batch.lease_seconds)
GRACE = timedelta(minutes=60)
"""The grace period, not read from the settings: the checks share nothing with the product."""
OWNER_DIED = timedelta(minutes=10)
"""Time without a write after which an owner is presumed dead."""
FILE_BYTES = 100
LONG_AGO = timedelta(days=60)
"""Longer than the window of the listing of the sweep."""


@dataclass
class World:
    """The state of the services, and the clock that they and all actors share."""

    s3: FakeS3 = field(default_factory=lambda: FakeS3(START))
    dynamodb: FakeDynamoDB = field(default_factory=FakeDynamoDB)
    now: datetime = START
    settings: Settings = SETTINGS
    """Settings of every process that starts from now on."""
    suffixes: tuple[str, ...] = (".ndjson",)
    """Endings of the files that a rule routes, not read from the settings."""
    versions: bool = False
    """Whether the input bucket has versions."""
    scheduler: Scheduler | None = None
    stopped_runs: set[str] = field(default_factory=set)
    """Runs that Glue reports as stopped, although they may still run as zombies."""
    run_documents: dict[str, str] = field(default_factory=dict)
    """Job run of an execution -> URI of the run document that it was started for."""
    poisonous: frozenset[str] = frozenset()
    """Keys of files that kill every job that reads them."""
    unreadable: frozenset[str] = frozenset()
    """Keys of files that cannot be read completely."""
    announces_hours: bool = False
    """Whether messages to readers about an hour are checked: no process outlives a Lambda function."""
    slow: bool = False
    """Every task takes longer than half of a lease."""
    arrived: list[ObjectVersion] = field(default_factory=list)
    once_missing: set[str] = field(default_factory=set)
    """Names (``name_of``) of the files that could not be read at some time."""
    inputs_expired: bool = False
    """Files of a complete hour are gone for ever, and its manifests were reprocessed."""
    acknowledged: set[ObjectVersion] = field(default_factory=set)
    queue: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Events that the SQS queue still delivers, by message id."""
    damaged_parts: dict[str, bytes] = field(default_factory=dict)
    """The recorded bytes of documents of parts that are damaged, by key."""
    causes: set[tuple[str, int]] = field(default_factory=set)
    """Manifest and generation of each publish that an event has made impossible."""
    issued_at: datetime = START
    """When the request that is being applied was sent; its sender may have stalled since."""
    after_write: Callable[[], None] = lambda: None
    """Called after every write."""
    bodies: dict[tuple[str, str], bytes] = field(default_factory=dict)
    """What was put into the input bucket, by key and ETag."""
    numbers: Any = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        for bucket in ("input", "lake", "quarantine", "control"):
            self.s3.create_bucket(Bucket=bucket)
        # No code may mistake an ETag for an MD5; apart from that, a bucket without a key is the same.
        self.s3.with_kms_key |= {"lake", "quarantine"}
        if self.versions:
            self.s3.versions["input"] = {}
        self.s3.now = self.now
        # The dataset of the model has room; tests/unit/router/test_dataset_limit.py admits datasets.
        client: Any = self.dynamodb
        Ledger.over(client, "ledger").datasets.admit({PARTITION.dataset: PARTITION.dataset}, 1)

    def clock(self) -> datetime:
        return self.now

    def wait(self, span: timedelta) -> None:
        self.now += span
        self.s3.now = self.now

    def set_issued_at(self, time: datetime) -> None:
        """Record the sending time of the next applied request."""
        self.issued_at = time

    def token(self, size: int) -> str:
        """A substitute for ``secrets.token_hex``: unique, and the same in every replay."""
        return f"{next(self.numbers):0{2 * size}x}"

    def arrive(self, *names: str) -> list[ObjectVersion]:
        """Put objects into the input bucket; ``.ndjson`` is added to a name without suffix. Their events are not sent.

        An earlier name is overwritten with other content.
        """
        files = []
        for name in names:
            key = f"orders/{name}" if "." in name else f"orders/{name}.ndjson"
            body = f"{name} {len(self.arrived)}".encode().ljust(FILE_BYTES)
            response = self.s3.put_object(Bucket="input", Key=key, Body=body)
            self.bodies[key, response["ETag"].strip('"')] = body
            version = response.get("VersionId")
            files.append(ObjectVersion.of("input", key, response["ETag"], FILE_BYTES, self.now, version))
        self.arrived += files
        return files

    def remove(self, file: ObjectVersion) -> None:
        """Delete an object; in a bucket with versions this version can still be read."""
        self.s3.delete_object(Bucket=file.bucket, Key=file.key)
        if not self.s3.has(file):
            self.once_missing.add(name_of(file))

    def send_events(self, files: Iterable[ObjectVersion]) -> None:
        """The queue gets one event for each file."""
        for file in files:
            time = self.now.isoformat(timespec="milliseconds")
            record = s3_record(file.key, size=file.size, eTag=file.etag, versionId=file.version_id, time=time)
            name = f"message-{next(self.numbers)}"
            self.queue[name] = message(name, record)

    def queued(self, *names: str, lane: Lane = Lane.BATCH) -> str:
        """Put files and route them, without faults, into one manifest; return its id."""
        from router.divide import divide

        if (manifest := self.collected(*names, lane=lane)) is not None:
            return manifest
        services = self.router(None)
        (manifest,) = divide(services, services.ledger.collections.of_hour(PARTITION.stamp)[-1].id)
        return manifest

    def collected(self, *names: str, lane: Lane = Lane.BATCH) -> str | None:
        """Put files and route them, without faults; return the id of their stream lane manifest, or of their part."""
        from router.ownership.owner import RoutedArrival
        from router.ownership.take import take_ownership

        files = self.arrive(*names)
        routed = [RoutedArrival(file, PARTITION, lane, "model") for file in files]
        manifests = take_ownership(self.router(None), routed, {}).manifests
        self.acknowledged.update(files)
        return manifests[0].id if manifests else None

    def arrive_in_hour(self, *names: str) -> None:
        """Put files whose events report an arrival at the start of the world."""
        now, self.now, self.s3.now = self.now, START, START
        self.arrive(*names)
        self.now, self.s3.now = now, now

    def damage_part(self, key: str) -> None:
        """Overwrite the document of the part that has a file; ``restore_parts`` puts the recorded bytes back."""
        part = next(
            str(item["manifest"]) for item in self.dynamodb.items.values() if item.get("file", [""] * 2)[1] == key
        )
        document = f"parts/{part[:8]}/{part}.json"
        self.damaged_parts[document] = self.s3.buckets["control"][document].body
        self.after_write()
        self.s3.put_object(Bucket="control", Key=document, Body=b"{}")

    def restore_parts(self) -> None:
        for document, body in self.damaged_parts.items():
            self.s3.put_object(Bucket="control", Key=document, Body=body)
        self.damaged_parts.clear()

    def orphan(self, *names: str) -> None:
        """Put files, and their arrival rows: their owner died before it wrote the row of its manifest."""
        owner, arrivals = f"20261120T000000{self.token(10)}", self.router(None).ledger.arrivals
        for file in self.arrive(*names):
            arrivals.put(ArrivalRow(file, owner, PARTITION, Lane.BATCH, "model", iso_utc(self.now)))

    def router(self, actor: Actor | None) -> RouterServices:
        """The control plane as an actor sees it; with None its calls meet no faults."""
        s3, dynamodb, glue = (self._client(actor, client) for client in (self.s3, self.dynamodb, FakeGlue(self)))
        ledger = Ledger.over(dynamodb, "ledger")
        return RouterServices(self.settings, RESOURCES, ledger, s3, glue, self.clock, events=FakeEventBridge())

    def run_is_terminal(self, run: str) -> bool:
        """Whether Glue reports a run as ended. A run has the name of its actor, and a number after ``/`` if the actor
        starts several."""
        actor = None if self.scheduler is None else self.scheduler.actors.get(run.partition("/")[0])
        return run in self.stopped_runs or actor is None or actor.ended or actor.dead

    def rows(self) -> dict[str, dict[str, Any]]:
        """The raw items of the ledger's manifests, by id."""
        return {
            pk.removeprefix("manifest#"): item for (pk, _), item in self.dynamodb.items.items() if "manifest#" in pk
        }

    def arrival(self, file: ObjectVersion) -> dict[str, Any] | None:
        """The raw item of an arrival; None if the ledger does not know it."""
        items = self.dynamodb.items.items()
        return next(
            (item for (_, sk), item in items if item.get("file", [""] * 2)[1] == file.key and sk == file.version), None
        )

    def document(self, key: str) -> dict[str, Any] | None:
        """A JSON document of the control bucket; None if it does not exist."""
        item = self.s3.buckets["control"].get(key)
        return None if item is None else dict(json.loads(item.body))

    def _client(self, actor: Actor | None, client: Any) -> Any:
        return ActorClient(self, actor, client)


def name_of(file: ObjectVersion) -> str:
    """Key and version, as the rows and records of the model name their file."""
    return f"{file.key} {file.version}"


def with_attempts(number: int) -> Settings:
    """The model's settings with this number of attempts."""
    return replace(SETTINGS, batch=replace(SETTINGS.batch, max_attempts=number))


class ActorClient:
    """One service as one actor sees it."""

    def __init__(self, world: World, actor: Actor | None, client: Any) -> None:
        self._world, self._actor, self._target = world, actor, client
        self.exceptions = getattr(client, "exceptions", None)

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        if operation == "get_paginator":
            return lambda name: Paginator(getattr(self, name))
        scheduler, actor, method = self._world.scheduler, self._actor, getattr(self._target, operation)
        self._world.wait(timedelta(milliseconds=1))
        if actor is None or scheduler is None:
            return lambda **request: self._call_without_faults(operation, method, request)
        return lambda **request: scheduler.call(actor, self._target, operation, request)

    def _call_without_faults(self, operation: str, method: Callable[..., Any], request: dict[str, Any]) -> Any:
        response = method(**request)
        if not is_read(operation):
            self._world.issued_at = self._world.now
            self._world.after_write()
        return response


USED = {
    "StartedOn": datetime(2026, 11, 20, 22, tzinfo=UTC),
    "CompletedOn": datetime(2026, 11, 20, 23, tzinfo=UTC),
    "ExecutionTime": 3600,
    "DPUSeconds": 7201.5,
}
"""What every job run of an execution has used."""


class FakeGlue:
    """Job runs are the actors: terminal once the actor ends, or once Glue reports it as stopped.

    A started run is an actor that the history already has.
    """

    ERRORS = (("OperationTimeoutException", 400), ("InternalServiceException", 500))
    """AWS Glue Web API Reference, "Exceptions"."""

    def __init__(self, world: World) -> None:
        self.exceptions = glue_client().exceptions
        self._world = world

    def get_job_run(self, *, JobName: str, RunId: str) -> dict[str, Any]:
        return {"JobRun": self._run(RunId)}

    def get_job_runs(self, *, JobName: str, MaxResults: int) -> dict[str, Any]:
        actors = {} if self._world.scheduler is None else self._world.scheduler.actors
        return {"JobRuns": [self._run(name) for name in actors if name.rstrip("0123456789") == "stream"]}

    def start_job_run(self, *, JobName: str) -> dict[str, str]:
        return {"JobRunId": "started"}

    def _run(self, run: str) -> dict[str, Any]:
        if not self._world.run_is_terminal(run):
            return {"Id": run, "JobRunState": "RUNNING"}
        ended = {"Id": run, "JobRunState": "STOPPED"}
        document = self._world.run_documents.get(run)
        return ended if document is None else {**ended, **USED, "Arguments": {"--run": document}}
