"""What waits in the lanes: open manifests, and the shards of the stream lane with their runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice

from cli.deployed_stack import DeployedStack
from cli.documents import Backlog, Collected
from lake.engines import ENGINES
from lake.ledger import Failure, Ledger, ManifestRow, State, StreamRow
from lake.ledger.manifest_row import OPEN_STATES
from lake.manifest import Lane
from lake.texts import read_instant

LISTS = tuple((lane, state) for lane in Lane for state in (*OPEN_STATES, *Failure))


@dataclass(frozen=True, slots=True)
class Open:
    """What is open and what did not get through, as the index has it."""

    backlogs: tuple[Backlog, ...]
    """By lane and dataset."""
    collected: Collected
    failed: int
    """Manifests."""
    unreadable: int
    """DONE manifests with files that could not be read."""
    complete: bool
    """False: a list is longer than the limit, so that every number is a lower bound."""


def read_open(ledger: Ledger, limit: int, now: datetime) -> Open:
    """Count what the index lists, at most ``limit`` manifests of each state and lane; the lists in parallel."""
    with ThreadPoolExecutor(len(LISTS) + 1) as pool:
        collected = pool.submit(_collected, ledger)
        pages = list(pool.map(lambda item: list(islice(_rows(ledger, *item), limit + 1)), LISTS))
    opened: dict[tuple[Lane, str], list[ManifestRow]] = {}
    failures = dict.fromkeys(Failure, 0)
    for (lane, state), rows in zip(LISTS, pages, strict=True):
        if isinstance(state, Failure):
            failures[state] += len(rows[:limit])
            continue
        for row in rows[:limit]:
            opened.setdefault((lane, row.partition.dataset), []).append(row)
    return Open(
        tuple(_backlog(lane, dataset, rows, now) for (lane, dataset), rows in sorted(opened.items())),
        collected.result(),
        failures[Failure.FAILED],
        failures[Failure.UNREADABLE],
        all(len(rows) <= limit for rows in pages),
    )


def _collected(ledger: Ledger) -> Collected:
    rows = [row for row in ledger.collections.open() if row.parts]
    hours = [row.id.hour for row in rows]
    return Collected(sum(row.files for row in rows), sum(row.bytes for row in rows), min(hours, default=None))


def _rows(ledger: Ledger, lane: Lane, state: State | Failure) -> Iterator[ManifestRow]:
    if isinstance(state, Failure):
        return ledger.manifests.failures(lane, state)
    return ledger.manifests.open(lane, state)


def _backlog(lane: Lane, dataset: str, rows: Sequence[ManifestRow], now: datetime) -> Backlog:
    oldest = min(row.created_at for row in rows)
    return Backlog(
        lane=lane.value,
        dataset=dataset,
        manifests=len(rows),
        files=sum(row.files for row in rows),
        bytes=sum(row.bytes for row in rows),
        oldest=oldest,
        oldest_seconds=round((now - read_instant(oldest)).total_seconds()),
        states={state.value: sum(row.state == state for row in rows) for state in OPEN_STATES},
        blocked=sum(row.state == State.QUEUED and row.reason is not None for row in rows),
    )


@dataclass(frozen=True, slots=True)
class ShardState:
    """One shard now."""

    shard: str
    runs: tuple[str, ...]
    """Ids of the runs of its streaming job that are alive."""
    row: StreamRow


def read_shards(stack: DeployedStack) -> list[ShardState]:
    """Every shard of the stack, the first one first."""
    states = []
    for shard in stack.outputs.shards.names:
        row = stack.ledger.stream.of(shard).get()
        if row.start_failure:
            row = replace(row, start_failure=stack.runnable(row.start_failure))
        states.append(ShardState(shard, tuple(_live_runs(stack, shard)), row))
    return states


def _live_runs(stack: DeployedStack, shard: str) -> list[str]:
    engine, job = ENGINES[stack.outputs.stream_engine], stack.resources.stream_job_of(shard)
    return engine.live_stream_runs(stack.stream_client, job, stack.outputs.stream_application)
