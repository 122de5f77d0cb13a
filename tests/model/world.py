"""One deployment in memory, the actors' clients, and the events of the environment."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from lake.ledger import Ledger, State
from lake.manifest import Lane, ObjectVersion
from lake.partition import Partition
from lake.resource_names import ResourceNames
from lake.settings import parse_settings
from router.services import Services as RouterServices
from tests.model.fake_dynamodb import FakeDynamoDB
from tests.model.fake_s3 import FakeS3
from tests.model.scheduler import Actor, Scheduler, is_read
from transform.context import JobServices

if TYPE_CHECKING:
    from collections.abc import Callable

START = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)
PARTITION = Partition("orders", "2026-11-20", 9)
RESOURCES = ResourceNames("input", "lake", "quarantine", "control", "ledger", "stream-job", "batch-job", "catalog")
SETTINGS = parse_settings(
    {
        "stage": "model",
        "batch": {"max_attempts": 12, "lease_seconds": 600},
        "stream": {"max_attempts": 12},
        "convert": {"target_file_bytes": 20},
        "sweep": {"listing_hours": 0, "missed_minutes": 10},
    }
)
LEASE = timedelta(seconds=SETTINGS.batch.lease_seconds)
FILE_BYTES = 100


class FakeGlue:
    """Glue's job runs, which are the actors: terminal once the actor ends, or once Glue reports it as stopped."""

    class exceptions:  # noqa: N801
        class ConcurrentRunsExceededException(Exception):  # noqa: N818
            pass

    def __init__(self, world: World) -> None:
        self._world = world

    def get_job_run(self, *, JobName: str, RunId: str) -> dict[str, Any]:  # noqa: N803
        terminal = self._world.run_is_terminal(RunId)
        return {"JobRun": {"Id": RunId, "JobRunState": "STOPPED" if terminal else "RUNNING"}}

    def start_job_run(self, *, JobName: str) -> dict[str, str]:  # noqa: N803
        return {"JobRunId": "started"}


@dataclass
class World:
    """The state of the services, and the clock that they and all actors share."""

    s3: FakeS3 = field(default_factory=lambda: FakeS3(START))
    dynamodb: FakeDynamoDB = field(default_factory=FakeDynamoDB)
    now: datetime = START
    scheduler: Scheduler | None = None
    stopped_runs: set[str] = field(default_factory=set)
    """Runs that Glue reports as stopped, although they may still run as zombies."""
    poisonous: frozenset[str] = frozenset()
    """Keys of files that kill every job that reads them."""
    unreadable: frozenset[str] = frozenset()
    """Keys of files that cannot be read completely."""
    slow: bool = False
    """Every task takes longer than half of a lease."""
    arrived: list[ObjectVersion] = field(default_factory=list)
    acknowledged: set[ObjectVersion] = field(default_factory=set)
    seen_pointers: set[str] = field(default_factory=set)
    """The stream's checkpoint."""
    events: list[str] = field(default_factory=list)
    """The environment's events so far."""
    issued_at: datetime = START
    """When the request that is being applied was sent; its sender may have stalled since."""
    after_write: Callable[[], None] = lambda: None
    """Called after every write."""
    numbers: Any = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        for bucket in ("input", "lake", "quarantine", "control"):
            self.s3.create_bucket(Bucket=bucket)
        self.s3.now = self.now

    def clock(self) -> datetime:
        return self.now

    def wait(self, span: timedelta) -> None:
        self.now += span
        self.s3.now = self.now

    def set_issued_at(self, time: datetime) -> None:
        """Record when the request that is applied next was sent."""
        self.issued_at = time

    def token(self, size: int) -> str:
        """In place of ``secrets.token_hex``: unique, and the same in every replay."""
        return f"{next(self.numbers):0{2 * size}x}"

    def arrive(self, *names: str) -> list[ObjectVersion]:
        """Put objects into the input bucket; their events are not delivered yet."""
        files = []
        for name in names:
            key = f"orders/{name}.ndjson"
            etag = self.s3.put_object(Bucket="input", Key=key, Body=name.encode().ljust(FILE_BYTES))["ETag"].strip('"')
            files.append(ObjectVersion("input", key, etag, FILE_BYTES, self.now.isoformat()))
        self.arrived += files
        return files

    def queued(self, *names: str, lane: Lane = Lane.BATCH) -> str:
        """Put files and route them, without faults, into one manifest; its id."""
        from router.ownership import RoutedArrival, take_ownership

        files = self.arrive(*names)
        routed = [RoutedArrival(file, PARTITION, lane, "model") for file in files]
        (manifest,) = take_ownership(self.router(None), routed, {}).manifests
        self.acknowledged.update(files)
        return manifest.id

    def router(self, actor: Actor | None) -> RouterServices:
        """The control plane as an actor sees it; None: its calls meet no faults."""
        s3, dynamodb, glue = (self._client(actor, client) for client in (self.s3, self.dynamodb, FakeGlue(self)))
        return RouterServices(SETTINGS, RESOURCES, Ledger.over(dynamodb, "ledger"), s3, glue, self.clock)

    def transform(self, actor: Actor | None) -> JobServices:
        """The data plane as an actor sees it."""
        s3, dynamodb = (self._client(actor, client) for client in (self.s3, self.dynamodb))
        return JobServices(s3, Ledger.over(dynamodb, "ledger"), RESOURCES, SETTINGS)

    def run_is_terminal(self, run: str) -> bool:
        """Whether Glue reports a run as ended; runs have the names of their actors."""
        actor = None if self.scheduler is None else self.scheduler.actors.get(run)
        return run in self.stopped_runs or actor is None or actor.ended or actor.dead

    def apply_event(self, event: str, actor: Actor) -> None:
        """Apply an event of the environment at a request of the actor."""
        ledger = self.router(None).ledger
        self.events.append(event)
        if event == "expire_lease":
            self.wait(LEASE + timedelta(seconds=1))
        elif event == "advance_hours":
            self.wait(timedelta(hours=2))
        elif event == "report_stopped":
            self.stopped_runs.add(actor.name)
        elif event == "lose_checkpoint":
            self.seen_pointers.clear()
        elif event == "force":
            for item in list(self.dynamodb.items.values()):
                if item.get("state") in (State.DONE, State.FAILED):
                    row = ledger.manifests.get(item["id"])
                    assert row is not None
                    ledger.manifests.force(row, self.now)
        elif event == "change_document":
            for item in self.rows().values():
                if item["state"] == State.PUBLISHING:
                    self.s3.put_object(Bucket="control", Key=item["document_key"], Body=b"{}")
        elif event == "lose_upload":
            for identity in self.s3.open_uploads()[:1]:
                self.s3.uploads[identity].state = "aborted"
        else:
            raise AssertionError(event)

    def rows(self) -> dict[str, dict[str, Any]]:
        """The raw items of the ledger's manifests, by id."""
        return {
            pk.removeprefix("manifest#"): item for (pk, _), item in self.dynamodb.items.items() if "manifest#" in pk
        }

    def document(self, key: str) -> dict[str, Any] | None:
        """A JSON document of the control bucket; None: it does not exist."""
        item = self.s3.buckets["control"].get(key)
        return None if item is None else dict(json.loads(item.body))

    def _client(self, actor: Actor | None, client: Any) -> Any:
        return _Client(self, actor, client)


class _Client:
    """An actor's client: each call is a step of the history. Without an actor, calls meet no faults."""

    def __init__(self, world: World, actor: Actor | None, client: Any) -> None:
        self._world, self._actor, self._target = world, actor, client
        self.exceptions = client.exceptions

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        if operation == "get_paginator":
            return lambda name: _Paginator(getattr(self, name))
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


@dataclass(frozen=True)
class _Paginator:
    call: Callable[..., Any]

    def paginate(self, **request: Any) -> Any:
        while True:
            page = self.call(**request)
            yield page
            if not page["IsTruncated"]:
                return
            if "Uploads" in page:
                request |= {"KeyMarker": page["NextKeyMarker"], "UploadIdMarker": page["NextUploadIdMarker"]}
            else:
                request["StartAfter"] = page["Contents"][-1]["Key"]
