"""The streaming job tells how long it is at its micro-batch."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from lake.errors import TransientError
from lake.settings import parse_settings
from streaming_job import main, stream
from streaming_job.stream import InboxStream
from tests.unit.lake.world import new_world

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.unit.lake.world import World


@pytest.fixture
def world() -> Iterator[World]:
    with new_world() as world:
        yield world


def context_of(world: World, run: str = "jr_1") -> Any:
    workers = SimpleNamespace(size=lambda: 1)
    executors = SimpleNamespace(getExecutorMemoryStatus=lambda: workers)
    return SimpleNamespace(
        services=SimpleNamespace(
            s3=world.s3,
            ledger=world.ledger,
            resources=world.resources,
            settings=parse_settings({"stage": "test"}),
        ),
        spark=SimpleNamespace(sparkContext=SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: executors))),
        run=run,
        clock=world.clock,
        log=lambda _: None,
    )


BATCH: Any = SimpleNamespace(collect=lambda: [('{"manifest":"m"}', "m-1.json")])


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
