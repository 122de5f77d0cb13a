"""Files that are too slow for the stream lane: they wait for the batch lane, their neighbours are published."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from lake.manifest import Lane
from tests.chaos.inline_spark import InlineSpark
from transform import run_task
from transform.file_deadline import SplitDeadline

if TYPE_CHECKING:
    from tests.integration.conversion_world import ConversionWorld


@dataclass
class Processor:
    """The processor time of the tasks, which run in this process: reading a slow file costs 400 seconds."""

    seconds: float = 0.0
    reads: int = 0

    def read(self, key: str) -> None:
        if "slow" in key:
            self.seconds += 400
            self.reads += 1


@pytest.fixture
def processor(monkeypatch: pytest.MonkeyPatch) -> Processor:
    processor = Processor()

    class Deadline(SplitDeadline):
        def add(self, piece: memoryview) -> None:
            processor.read(self._split.file.key)
            super().add(piece)

    monkeypatch.setattr(run_task, "SplitDeadline", Deadline)
    monkeypatch.setattr(run_task, "thread_time", lambda: processor.seconds)
    return processor


def enqueue(world: ConversionWorld, *names: str, lane: Lane = Lane.STREAM, urgent: bool = False) -> str:
    files = [world.put(f"orders/{name}.json", b'{"a":"%s"}\n' % name.encode()) for name in names]
    return world.enqueue(files, lane, urgent=urgent)


def inline_spark() -> Any:
    return InlineSpark(Random(1))


def test_a_slow_file_leaves_the_stream_and_its_neighbours_are_published(
    world: ConversionWorld, processor: Processor
) -> None:
    # Given a manifest of the stream lane that may be tried once, with slow files
    world.configure("batch", max_attempts=1)
    mixed = enqueue(world, "a", "slow-1", "slow-2", "slow-3", "slow-4", "slow-5", urgent=True)

    # When
    outcomes = world.convert([mixed], inline_spark())

    # Then the slow ones are a manifest of the batch lane with all its tries, and this run has published the other
    source = world.row(mixed)
    slow, rest = source.superseded_by
    assert [(item.manifest, item.state) for item in outcomes] == [(mixed, "SUPERSEDED"), (rest, "DONE")]
    assert "stream.latency_goal_seconds" in str(source.reason)
    row = world.row(slow)
    assert (row.state, row.lane, row.files, row.tries, row.urgent) == ("QUEUED", Lane.BATCH, 5, 0, False)
    assert world.row(rest).urgent
    assert world.lake() == [{"a": "a"}]
    assert world.unfinished_uploads() == []

    # And five slow files took no longer than two: the others were not even read
    assert processor.reads == 2

    # When a run of the batch lane has time for them, Then they are published
    world.configure("convert", min_bytes_per_second=0)
    world.convert([slow], inline_spark(), "run-2")
    assert len(world.lake()) == 6
    assert world.quarantine() == []


def test_a_manifest_of_slow_files_alone_goes_to_the_batch_lane_as_it_is(
    world: ConversionWorld, processor: Processor
) -> None:
    manifest = enqueue(world, "slow-1")
    (outcome,) = world.convert([manifest], inline_spark())
    (successor,) = world.row(manifest).superseded_by
    assert (outcome.state, world.row(successor).lane, world.row(successor).tries) == ("SUPERSEDED", Lane.BATCH, 0)
    assert processor.reads == 1
