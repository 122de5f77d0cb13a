"""One deployment in memory, the actors' clients, and what the environment can do to it."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from lake.ledger import Ledger, State
from lake.manifest import Lane, Manifest, ObjectVersion, write_manifest
from lake.partition import Partition
from lake.resource_names import ResourceNames
from lake.settings import parse_settings
from router.services import Services as RouterServices
from tests.model.fake_dynamodb import FakeDynamoDB
from tests.model.fake_s3 import FakeS3
from tests.model.scheduler import Actor, Baton, is_read
from transform.services import Services as TransformServices

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
    """Runs of actors: terminal once the actor is gone, or once somebody declared it stopped."""

    class exceptions:  # noqa: N801
        class ConcurrentRunsExceededException(Exception):  # noqa: N818
            pass

    def __init__(self, world: World) -> None:
        self._world = world

    def get_job_run(self, *, JobName: str, RunId: str) -> dict[str, Any]:  # noqa: N803
        over = self._world.run_is_terminal(RunId)
        return {"JobRun": {"Id": RunId, "JobRunState": "STOPPED" if over else "RUNNING"}}

    def start_job_run(self, *, JobName: str) -> dict[str, str]:  # noqa: N803
        return {"JobRunId": "started"}


@dataclass
class World:
    """State of the services, and the clock that they and all actors share."""

    s3: FakeS3 = field(default_factory=lambda: FakeS3(START))
    dynamodb: FakeDynamoDB = field(default_factory=FakeDynamoDB)
    now: datetime = START
    baton: Baton | None = None
    stopped_runs: set[str] = field(default_factory=set)
    """Runs that Glue calls terminal although they may live on as zombies."""
    poisonous: frozenset[str] = frozenset()
    """Keys of files that kill every job that reads them."""
    unreadable: frozenset[str] = frozenset()
    """Keys of files that cannot be read to their end."""
    slow: bool = False
    """Every task takes longer than half of a lease."""
    arrived: list[ObjectVersion] = field(default_factory=list)
    acknowledged: set[ObjectVersion] = field(default_factory=set)
    seen_pointers: set[str] = field(default_factory=set)
    """The stream's checkpoint."""
    events: list[str] = field(default_factory=list)
    """What the environment did."""
    issued_at: datetime = START
    """When the request that is being applied was made; its sender may have stalled since."""
    look: Callable[[], None] = lambda: None
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

    def issue(self, instant: datetime) -> None:
        """The request that is applied next was made then."""
        self.issued_at = instant

    def token(self, size: int) -> str:
        """In the place of random names: unique, and the same in every replay."""
        return f"{next(self.numbers):0{2 * size}x}"

    def arrive(self, *names: str) -> list[ObjectVersion]:
        """Objects in the input bucket, of which somebody should be told."""
        files = []
        for name in names:
            key = f"orders/{name}.ndjson"
            etag = self.s3.put_object(Bucket="input", Key=key, Body=name.encode().ljust(FILE_BYTES))["ETag"].strip('"')
            files.append(ObjectVersion("input", key, etag, FILE_BYTES, self.now.isoformat()))
        self.arrived += files
        return files

    def queued(self, *names: str, lane: Lane = Lane.BATCH) -> str:
        """A manifest of its own for these files, owned as by a perfect ``route``; its id."""
        from router.ownership.draft import RoutedArrival
        from router.ownership.own import own

        files = self.arrive(*names)
        routed = [RoutedArrival(file, PARTITION, lane, "model") for file in files]
        (manifest,) = own(self.router(None), routed, {}).manifests
        self.acknowledged.update(files)
        return manifest.id

    def router(self, actor: Actor | None) -> RouterServices:
        """The control plane as an actor sees it; None: nothing ever happens to its calls."""
        s3, dynamodb, glue = (self._client(actor, client) for client in (self.s3, self.dynamodb, FakeGlue(self)))
        return RouterServices(SETTINGS, RESOURCES, Ledger.over(dynamodb, "ledger"), s3, glue, self.clock)

    def transform(self, actor: Actor | None) -> TransformServices:
        """The data plane as an actor sees it."""
        s3, dynamodb = (self._client(actor, client) for client in (self.s3, self.dynamodb))
        return TransformServices(s3, Ledger.over(dynamodb, "ledger"), RESOURCES, SETTINGS)

    def run_is_terminal(self, run: str) -> bool:
        """What Glue says of a run; the runs are named after their actors."""
        actor = None if self.baton is None else self.baton.actors.get(run)
        return run in self.stopped_runs or actor is None or actor.over or actor.dead

    def happen(self, event: str, actor: Actor) -> None:
        """An event of the environment."""
        ledger = self.router(None).ledger
        self.events.append(event)
        if event == "expire":
            self.wait(LEASE + timedelta(seconds=1))
        elif event == "hours":
            self.wait(timedelta(hours=2))
        elif event == "declare":
            self.stopped_runs.add(actor.name)
        elif event == "checkpoint":
            self.seen_pointers.clear()
        elif event == "force":
            for item in list(self.dynamodb.items.values()):
                if item.get("state") in (State.DONE, State.FAILED):
                    row = ledger.manifests.get(item["id"])
                    assert row is not None
                    ledger.manifests.force(row, self.now)
        elif event == "tamper":
            for row in self.rows().values():
                if row["state"] == State.PUBLISHING:
                    self.s3.put_object(Bucket="control", Key=row["document_key"], Body=b"{}")
        elif event == "vanish":
            for identity in self.s3.open_uploads()[:1]:
                self.s3.uploads[identity].state = "aborted"
        else:
            raise AssertionError(event)

    def rows(self) -> dict[str, dict[str, Any]]:
        """The ledger's manifests, raw."""
        return {
            pk.removeprefix("manifest#"): item for (pk, _), item in self.dynamodb.items.items() if "manifest#" in pk
        }

    def document(self, key: str) -> dict[str, Any] | None:
        """A JSON document of the control bucket."""
        item = self.s3.buckets["control"].get(key)
        return None if item is None else dict(json.loads(item.body))

    def _client(self, actor: Actor | None, client: Any) -> Any:
        return _Client(self, actor, client)


class _Client:
    """An actor's client: each call is a step of the history. Without an actor nothing ever happens to a call."""

    def __init__(self, world: World, actor: Actor | None, client: Any) -> None:
        self._world, self._actor, self._target = world, actor, client
        self.exceptions = client.exceptions

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        if operation == "get_paginator":
            return lambda name: _Paginator(getattr(self, name))
        baton, actor, method = self._world.baton, self._actor, getattr(self._target, operation)
        self._world.wait(timedelta(milliseconds=1))
        if actor is None or baton is None:
            return lambda **request: self._quiet(operation, method, request)
        return lambda **request: baton.call(actor, self._target, operation, request)

    def _quiet(self, operation: str, method: Callable[..., Any], request: dict[str, Any]) -> Any:
        answer = method(**request)
        if not is_read(operation):
            self._world.issued_at = self._world.now
            self._world.look()
        return answer


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


def successor(manifest: Manifest, identity: str, lane: Lane) -> Manifest:
    """The same files under a fresh id."""
    return replace(manifest, id=identity, lane=lane)


__all__ = ["LEASE", "PARTITION", "RESOURCES", "START", "World", "successor", "write_manifest"]
