"""The streaming job tells how long it is at its micro-batch."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from lake.errors import TransientError
from lake.layout import pointer_key
from lake.manifest import Lane
from lake.settings import parse_settings
from streaming_job import main, stream
from streaming_job.stream import InboxStream
from tests.unit.lake.world import new_world
from transform.context import ConversionContext, JobServices

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.unit.lake.world import World


@pytest.fixture
def world() -> Iterator[World]:
    with new_world() as world:
        yield world


def context_of(world: World, run: str = "jr_1") -> ConversionContext:
    workers = SimpleNamespace(size=lambda: 1)
    executors = SimpleNamespace(getExecutorMemoryStatus=lambda: workers)
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: executors)))
    settings = parse_settings({"stage": "test"})
    services = JobServices(world.raw_s3, world.ledger, world.resources, settings, "eu-central-1")
    return ConversionContext(spark, services, run, world.clock, bool, lambda _: None)


BATCH: Any = SimpleNamespace(collect=lambda: [('{"manifest":"m"}', "s3a://control/inbox/m-1.json")])


def test_the_row_has_the_begin_of_the_micro_batch_until_its_end(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given what the row says while manifests are converted
    seen = []

    def convert(*_: object, **__: object) -> list[Any]:
        seen.append(world.ledger.stream.get().micro_batch_since)
        return []

    monkeypatch.setattr(stream, "convert_pointers", convert)
    # When
    InboxStream(context_of(world))._run_micro_batch(BATCH, 0)
    # Then
    assert seen == [world.now.isoformat(timespec="milliseconds")]
    assert world.ledger.stream.get().micro_batch_since is None


def test_the_micro_batch_of_a_run_that_failed_is_not_that_of_the_next_run(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a run that ends in the middle of a micro-batch
    def fail(*_: object, **__: object) -> list[Any]:
        raise TransientError("no answer")

    monkeypatch.setattr(stream, "convert_pointers", fail)
    with pytest.raises(TransientError):
        InboxStream(context_of(world))._run_micro_batch(BATCH, 0)
    assert world.ledger.stream.get().micro_batch_since is not None
    # When the next one begins
    monkeypatch.setattr(main, "InboxStream", lambda _: SimpleNamespace(run=lambda: None))
    main.run(context_of(world, "jr_2"), {})
    # Then
    row = world.ledger.stream.get()
    assert (row.run, row.micro_batch_since) == ("jr_2", None)


def test_a_run_ends_only_while_no_urgent_manifest_is_converted(world: World) -> None:
    # Given a run outside its window that was idle for long, but converts an urgent manifest
    found = InboxStream(context_of(world))
    world.wait(timedelta(hours=1))
    found._urgent._portions = 1
    # When, Then it goes on, and urgent manifests begin
    assert not found._may_end()
    assert not found._urgent._closed
    # When it is told to stop, Then none begins, and it ends after this one
    world.ledger.stream.request_stop(True)
    assert not found._may_end()
    assert found._urgent._closed
    found._urgent._portions = 0
    assert found._may_end()


def test_an_urgent_pointer_that_came_at_the_last_moment_keeps_the_run_going(world: World) -> None:
    # Given
    found = InboxStream(context_of(world))
    world.wait(timedelta(hours=1))
    row = world.queued("a.json", lane=Lane.STREAM)
    world.raw_s3.put_object(Bucket="control", Key=pointer_key(row.id, "n", urgent=True), Body=b"")
    # When, Then
    assert not found._may_end()
    assert not found._urgent._closed
