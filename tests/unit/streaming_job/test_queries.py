"""One query over the inbox follows another: no manifest is lost, none is converted twice, whatever fails between."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError

from lake.layout import INBOX, pointer_key
from lake.ledger import State
from lake.manifest import Lane
from streaming_job import stream
from streaming_job.stream import InboxStream
from tests.unit.lake.faults import Crash
from tests.unit.lake.world import World, new_world
from tests.unit.streaming_job.test_stream import PATIENCE_SECONDS, context_of

MANIFESTS = 3
PER_TRIGGER = 1
PER_CHECKPOINT = 2
MAX_QUERIES = 200
"""Maximum number in a test: many more than any of them needs."""


@dataclass
class FakeLane:
    """A stream lane whose queries are played by ``FakeQuery``, and whose conversion is one update of the ledger."""

    world: World
    handed_over: Counter[str] = field(default_factory=Counter)
    """How often each manifest was given to the conversion."""
    converted: Counter[str] = field(default_factory=Counter)
    lines: list[str] = field(default_factory=list)
    queries: list[FakeQuery] = field(default_factory=list)
    manifests: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    """Manifests whose pointers arrive during the next micro-batch."""
    gate: threading.Event | None = None
    """Until the manifest that is read last is handed over, the conversion of the others waits."""

    def queue(self) -> None:
        """Manifests that wait, the last one without a pointer yet."""
        self.handed_over.clear()
        self.converted.clear()
        self.manifests = [self.world.queued(f"{number}.ndjson", lane=Lane.STREAM).id for number in range(MANIFESTS)]
        *arrived, last = self.manifests
        self.late = [last]
        for manifest in arrived:
            self.put_pointer(manifest)

    def put_pointer(self, manifest: str) -> None:
        self.world.raw_s3.put_object(Bucket="control", Key=pointer_key(manifest, "n", urgent=False), Body=b"")

    def convert(self, _context: object, manifests: Iterable[str], **_: object) -> list[Any]:
        while self.late:
            self.put_pointer(self.late.pop())
        for manifest in manifests:
            self.handed_over[manifest] += 1
            if self.gate and manifest == max(self.manifests):
                self.gate.set()
            assert self.gate is None or self.gate.wait(PATIENCE_SECONDS)
            row = self.world.row(manifest)
            if row.open and self.world.ledger.manifests.fail(row, "it stands for any end", self.world.now):
                self.converted[manifest] += 1
        return []

    def run(self) -> None:
        """One run of the job, until it is idle."""
        context = context_of(self.world)
        s3: Any = SimpleNamespace(
            delete_object=self.world.s3.delete_object,
            list_objects_v2=self.world.raw_s3.list_objects_v2,
            get_paginator=self.world.raw_s3.get_paginator,
        )
        settings = context.services.settings
        object.__setattr__(settings.stream, "trigger_seconds", 0)
        object.__setattr__(settings.stream, "idle_minutes", 0)
        services = replace(context.services, s3=s3, settings=settings)
        inbox = InboxStream(replace(context, services=services, log=self.lines.append))

        def start(_checkpoint: str) -> FakeQuery:
            assert len(self.queries) < MAX_QUERIES, "queries follow each other without end"
            self.queries.append(FakeQuery(self.world, inbox))
            return self.queries[-1]

        inbox._start = start  # type: ignore[method-assign,assignment]
        inbox.run()

    def check_all_converted_once(self) -> None:
        assert {self.world.row(manifest).state for manifest in self.manifests} == {State.FAILED}
        assert set(self.converted.values()) <= {1}
        assert self.world.keys("control", INBOX) == []


class FakeQuery:
    """Plays all micro-batches at its start, one after the other; it remembers what it has read, as Spark does."""

    def __init__(self, world: World, inbox: InboxStream) -> None:
        self.read: list[str] = []
        self.isActive = True
        while new := [key for key in world.keys("control", INBOX) if key not in self.read][:PER_TRIGGER]:
            rows = [(f"s3a://control/{key}",) for key in new]
            batch: Any = SimpleNamespace(collect=lambda rows=rows: rows)
            try:
                inbox._run_micro_batch(batch, 0)
            except BaseException:
                # Spark ends the query, and the product looks at its own error.
                self.isActive = False
                return
            self.read += new

    def stop(self) -> None:
        self.isActive = False


@pytest.fixture
def lane(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLane]:
    monkeypatch.setattr(stream, "MAX_POINTERS_PER_CHECKPOINT", PER_CHECKPOINT)
    with new_world() as world:
        lane = FakeLane(world)
        monkeypatch.setattr(stream, "convert_manifests", lane.convert)
        lane.queue()
        yield lane


def test_a_new_query_goes_past_pointers_whose_manifests_are_being_converted(
    lane: FakeLane, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given slow manifests, as many as a query reads pointers, and micro-batches that do not wait for them
    monkeypatch.setattr(stream, "PATIENCE_SHARE", 0)
    lane.gate = threading.Event()
    lane.put_pointer(lane.late.pop())
    # When
    lane.run()
    # Then the second query reads their pointers again, and then the next one
    assert [len(query.read) for query in lane.queries] == [PER_CHECKPOINT, MANIFESTS]
    assert set(lane.handed_over.values()) == {1}
    lane.check_all_converted_once()


@pytest.mark.parametrize("fault", ["crash_before", "drop"])
def test_a_fault_at_any_write_loses_no_pointer(lane: FakeLane, fault: str) -> None:
    # Given the writes of a run
    lane.run()
    writes = len(lane.world.faults.writes)
    assert lane.world.faults.writes.count("delete_object") == MANIFESTS

    for number in range(1, writes + 1):
        # Given the same work, and a fault at one of them
        lane.queue()
        lane.world.faults.reset()
        setattr(lane.world.faults, fault, number)
        # When the run ends or dies, and another one follows
        with suppress(Crash, Exception):
            lane.run()
        lane.world.faults.reset()
        lane.run()
        # Then
        lane.check_all_converted_once()


def test_pointers_that_cannot_be_deleted_are_not_read_again_by_a_new_query(
    lane: FakeLane, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given an inbox that denies deletions
    denied: Any = {"Error": {"Code": "AccessDenied", "Message": ""}, "ResponseMetadata": {"HTTPStatusCode": 403}}

    monkeypatch.setattr(lane.world.raw_s3, "delete_object", Mock(side_effect=ClientError(denied, "DeleteObject")))
    # When
    lane.run()
    # Then one query reads them all, and each micro-batch raises the alarm with the permission
    assert [len(query.read) for query in lane.queries] == [MANIFESTS]
    alarms = [line for line in lane.lines if line.startswith("ALARM")]
    assert len(alarms) == MANIFESTS
    assert "1 pointer that was read stays in the inbox: s3:DeleteObject is denied" in alarms[-1]
    # When it is granted / Then the next run deletes them, and converts nothing twice
    monkeypatch.undo()
    monkeypatch.setattr(stream, "convert_manifests", lane.convert)
    lane.run()
    assert set(lane.handed_over.values()) == {2}
    lane.check_all_converted_once()
