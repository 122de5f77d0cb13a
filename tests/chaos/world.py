"""One deployment of a history on the emulator: the product's own functions run as processes that faults can end."""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from random import Random
from typing import Any

from aws_lambda_powertools.utilities.data_classes import SQSEvent
from botocore.exceptions import BotoCoreError, ClientError
from pyiceberg.table import StaticTable
from pyspark.errors import PySparkException

import batch_job.main
from lake.errors import HybridRouterError
from lake.layout import manifest_of_pointer
from lake.ledger import Ledger
from lake.resource_names import ResourceNames
from lake.settings import Settings
from local.isolation import REGION
from router.executions.run_status import run_status
from router.plan.handler import plan
from router.requests.promote import promote
from router.requests.reprocess import reprocess
from router.route.handler import route
from router.services import Services as RouterServices
from router.sweep.handler import sweep
from router.tables.handler import commit_tables
from streaming_job.micro_batch import convert_portion, raise_unanswered
from tests.chaos.checker import Checker
from tests.chaos.injection import Actor, Fault, Killed, acting_as
from tests.chaos.inline_spark import InlineSpark
from tests.chaos.inputs import WITH_TABLE, Input
from tests.ledger_table import create_stage
from tests.unit.router.event_bridge import FakeEventBridge
from tests.unit.router.events import message, s3_record
from tests.unit.router.glue import FakeGlue
from transform.clients import dynamodb_client, s3_client
from transform.task_model import ConversionContext

EXPECTED_ERRORS = (HybridRouterError, BotoCoreError, ClientError, PySparkException)
"""Errors that may end a process of the product: they are not a violation, because a later process continues."""


@dataclass(frozen=True, slots=True)
class Clients:
    """Created once per process and shared by all deployments."""

    s3: Any
    dynamodb: Any
    events: FakeEventBridge


@cache
def clients() -> Clients:
    """Configured like those of every process of the product."""
    return Clients(s3_client(REGION), dynamodb_client(REGION), FakeEventBridge())


class Process(Actor):
    """A Lambda invocation or a job run."""

    def __init__(self, world: "World", name: str) -> None:
        super().__init__(name, tuple(world.faults), world.counts)
        self._world = world

    def stall(self) -> None:
        self._world.stall_past_the_lease(self.name)

    def fired(self, fault: Fault) -> bool:
        return self._world.record(fault)


@dataclass
class World:
    """Buckets, a ledger, a clock, the queue of events, the pointers that were read and the pending faults."""

    clients: Clients
    random: Random
    settings: Settings
    resources: ResourceNames
    versions: bool
    now: datetime = field(default_factory=lambda: datetime.now(UTC).replace(microsecond=0))
    faults: list[Fault] = field(default_factory=list)
    fired: list[Fault] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    queue: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Events that were not acknowledged, by message id."""
    inputs: list[Input] = field(default_factory=list)
    glue: FakeGlue = field(default_factory=FakeGlue)
    while_stalled: Callable[[], None] = lambda: None
    """Work of other processes while one is stalled."""
    before_tasks: Callable[[], None] = lambda: None
    stalled: bool = False
    """Whether a process is stalled at this time."""
    log: list[str] = field(default_factory=list)
    numbers: int = 0

    @classmethod
    def create(cls, clients: Clients, random: Random, settings: Settings, *, versions: bool) -> "World":
        name = f"c{random.getrandbits(40):010x}{datetime.now(UTC):%H%M%S%f}"
        resources = create_stage(clients.s3, clients.dynamodb, name, versions=versions)
        return cls(clients, random, settings, resources, versions)

    @property
    def checker(self) -> Checker:
        return Checker(self.clients.s3, self.clients.dynamodb, self.resources)

    def clock(self) -> datetime:
        return self.now

    def advance(self, **amount: float) -> None:
        self.now += timedelta(**amount)

    def ledger(self) -> Ledger:
        return Ledger.over(self.clients.dynamodb, self.resources.ledger_table)

    def items(self) -> list[dict[str, Any]]:
        pages = self.clients.dynamodb.get_paginator("scan").paginate(TableName=self.resources.ledger_table)
        return [item for page in pages for item in page["Items"]]

    def record(self, fault: Fault) -> bool:
        """Record that a fault is injected now; False if it was injected before, or another process is stalled."""
        if fault not in self.faults or (fault.action == "stall" and self.stalled):
            return False
        self.faults.remove(fault)
        self.fired.append(fault)
        self.log.append(f"fault: {fault}")
        return True

    def put(self, key: str, body: bytes) -> tuple[str, str, dict[str, Any]]:
        """Put a file; return its version, the id of its message, and the message with its event."""
        response = self.clients.s3.put_object(Bucket=self.resources.input_bucket, Key=key, Body=body)
        etag = response["ETag"].strip('"')
        version = response.get("VersionId") if self.versions else None
        self.numbers += 1
        # The emulator stamps the object with the machine's clock: its event must not be older.
        time = max(self.now, datetime.now(UTC)).isoformat(timespec="milliseconds")
        record = s3_record(
            key, size=len(body), eTag=etag, versionId=version, bucket=self.resources.input_bucket, time=time
        )
        return version or f"etag:{etag}", f"m{self.numbers}", message(f"m{self.numbers}", record)

    def run(self, kind: str, work: Callable[[str], Any], job: str | None = None) -> Any:
        """Run ``work`` as a separate process; return its result, or None when it died."""
        self.numbers += 1
        name = f"{kind}-{self.numbers}"
        runs = self.glue.runs.setdefault(job, {}) if job else {}
        runs[name] = "RUNNING"
        state = "FAILED"
        try:
            with acting_as(Process(self, name)):
                result = work(name)
            state = "SUCCEEDED"
        except Killed:
            result = None
        except EXPECTED_ERRORS as error:
            result = None
            self.log.append(f"{name}: {type(error).__name__}: {str(error)[:200]}")
        finally:
            runs[name] = state
        logged = {key: value for key, value in result.items() if value} if isinstance(result, dict) else result
        self.log.append(f"{name}: {state} {'' if kind == 'plan' else logged}")
        return result

    def route(self, messages: Sequence[str]) -> None:
        """One invocation of ``route``; messages that it does not acknowledge stay in the queue."""
        event = SQSEvent({"Records": [self.queue[name] for name in messages]})
        response = self.run("route", lambda _: route(event, self.router()))
        if response is not None:
            failed = {item["itemIdentifier"] for item in response["batchItemFailures"]}
            for name in set(messages) - failed:
                self.queue.pop(name, None)

    def stream(self, max_pointers: int) -> None:
        """A micro-batch over some pointers, which it then deletes."""
        control = self.resources.control_bucket
        page = self.clients.s3.list_objects_v2(Bucket=control, Prefix="inbox/")
        listed = [item["Key"] for item in page.get("Contents", [])]
        self.random.shuffle(listed)
        batch = listed[:max_pointers]
        if not batch:
            return
        manifests = [manifest for key in batch if (manifest := manifest_of_pointer(key)) is not None]

        job = self.resources.stream_job

        def convert(name: str) -> int:
            outcomes = convert_portion(self._context(name), manifests)
            raise_unanswered(outcomes)
            return len(outcomes)

        if self.run("stream", convert, job) is not None:
            for key in batch:
                self.clients.s3.delete_object(Bucket=control, Key=key)

    def plan_runs(self) -> list[str]:
        """The run documents of a new execution; none if its plan died."""
        self.numbers += 1
        execution = f"execution-{self.numbers}"
        planned = self.run("plan", lambda _: plan({"execution": execution}, self.router()))
        if planned is None:
            return []
        index = self.clients.s3.get_object(Bucket=planned["index"]["bucket"], Key=planned["index"]["key"])
        return [entry["run"] for entry in json.loads(index["Body"].read())]

    def execution(self, *, duplicate_runs: bool = False) -> None:
        """One execution of the batch lane: plan, one run per run document (or two), and the status of each."""
        for uri in self.plan_runs():
            for _ in range(2 if duplicate_runs else 1):
                self.batch(uri)
            self.run("status", lambda _, run=uri: run_status({"run": run}, self.router()))  # type: ignore[misc]

    def batch(self, uri: str) -> None:
        job = self.resources.batch_job
        self.run("batch", lambda name: batch_job.main.run(self._context(name), {"run": uri}), job)

    def sweep(self) -> None:
        self.run("sweep", lambda _: sweep(self.router()))

    def tables(self) -> None:
        self.run("tables", lambda _: commit_tables(self.router(), lambda _: None))

    def shown(self) -> set[str]:
        """URIs of all files that the Iceberg table shows."""
        try:
            entry: Any = self.glue.get_table(DatabaseName=self.resources.tables_database, Name=WITH_TABLE)["Table"]
        except self.glue.exceptions.EntityNotFoundException:
            return set()
        properties = {"s3.endpoint": os.environ["AWS_ENDPOINT_URL"], "s3.region": REGION}
        table = StaticTable.from_metadata(entry["Parameters"]["metadata_location"], properties)
        return {task.file.file_path for task in table.scan().plan_files()}

    def promote(self, uris: Sequence[str]) -> None:
        self.run("promote", lambda _: promote({"files": list(uris)}, self.router()))

    def reprocess(self, manifests: Sequence[str]) -> None:
        """A request to convert manifests again; a person repeats it if it ends with an error."""
        self.numbers += 1
        request = {"manifests": list(manifests), "all": True, "request": f"request-{self.numbers}"}
        for _ in range(2):
            if self.run("reprocess", lambda _: reprocess(request, self.router())) is not None:
                return

    def stall_past_the_lease(self, name: str) -> None:
        """Stall a process until its lease expires or Glue reports its run as stopped; others work in between."""
        self.stalled = True
        self.log.append(f"{name} stalls")
        if self.random.random() < 0.5:
            self.advance(seconds=self.settings.batch.lease_seconds + 1)
        else:
            for runs in self.glue.runs.values():
                runs.update({run: "STOPPED" for run in runs if run == name.removesuffix(" worker")})
        with acting_as(None):
            self.while_stalled()
        self.log.append(f"{name} resumes")
        self.stalled = False

    def router(self) -> RouterServices:
        used: Any = (self.ledger(), self.clients.s3, self.glue, self.clock, {}, self.clients.events)
        return RouterServices(self.settings, self.resources, *used)

    def _context(self, run: str) -> ConversionContext:
        spark: Any = InlineSpark(self.random, self.before_tasks)
        clients = (self.clients.s3, self.ledger(), self.resources, self.settings, REGION)
        return ConversionContext(spark, *clients, run, self.clock, self._has_ended, self.log.append, self._pass_time)

    def _has_ended(self, run: str) -> bool:
        return any(runs.get(run) not in (None, "RUNNING") for runs in self.glue.runs.values())

    def _pass_time(self, seconds: float) -> None:
        self.advance(seconds=max(seconds, 60))
