"""What waits in the lanes: open manifests, and the shards of the stream lane with their runs."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, islice

from cli.deployed_stack import DeployedStack
from cli.documents import Backlog, Collected, StreamShard
from lake.engines import ENGINES
from lake.ledger import Failure, Ledger, ManifestRow, State
from lake.ledger.manifest_row import OPEN_STATES
from lake.manifest import Lane
from lake.texts import format_count, format_duration, format_size, read_instant

LISTS = tuple((lane, state) for lane in Lane for state in (*OPEN_STATES, *Failure))


@dataclass(frozen=True, slots=True)
class Open:
    """What is open and what did not get through, as the index has it."""

    backlogs: tuple[Backlog, ...]
    collected: Collected
    failed: int
    unreadable: int
    """DONE manifests with files that could not be read."""
    complete: bool
    """False: a list is longer than the limit, so that every number is a lower bound."""
    stream: tuple[ManifestRow, ...]


def read_open(ledger: Ledger, limit: int) -> Open:
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
        tuple(_backlog(lane, dataset, rows) for (lane, dataset), rows in sorted(opened.items())),
        collected.result(),
        failures[Failure.FAILED],
        failures[Failure.UNREADABLE],
        all(len(rows) <= limit for rows in pages),
        tuple(row for (lane, _), rows in opened.items() if lane is Lane.STREAM for row in rows),
    )


def _collected(ledger: Ledger) -> Collected:
    rows = [row for row in ledger.collections.open() if row.parts]
    hours = [row.id.hour for row in rows]
    return Collected(sum(row.files for row in rows), sum(row.bytes for row in rows), min(hours, default=None))


def _rows(ledger: Ledger, lane: Lane, state: State | Failure) -> Iterator[ManifestRow]:
    if isinstance(state, Failure):
        return ledger.manifests.failures(lane, state)
    return ledger.manifests.open(lane, state)


def _backlog(lane: Lane, dataset: str, rows: Sequence[ManifestRow]) -> Backlog:
    return Backlog(
        lane=lane.value,
        dataset=dataset,
        manifests=len(rows),
        files=sum(row.files for row in rows),
        bytes=sum(row.bytes for row in rows),
        oldest=min(row.queued_at for row in rows),
        states={state.value: sum(row.state == state for row in rows) for state in OPEN_STATES},
        blocked=sum(row.blocked for row in rows),
    )


def read_shards(stack: DeployedStack, rows: Iterable[ManifestRow] | None = None) -> tuple[StreamShard, ...]:
    """Every shard of the stream lane, the first one first. ``rows``: its open manifests; None: they are read."""
    shards = stack.outputs.shards
    opened: dict[str, list[ManifestRow]] = {shard: [] for shard in shards.names}
    if rows is None:
        rows = chain.from_iterable(stack.ledger.manifests.open(Lane.STREAM, state) for state in OPEN_STATES)
    for row in rows:
        opened[shards.of(row.id)].append(row)
    return tuple(_read_shard(stack, shard, rows) for shard, rows in opened.items())


def _read_shard(stack: DeployedStack, shard: str, rows: Sequence[ManifestRow]) -> StreamShard:
    health, runs = stack.ledger.stream.of(shard).get(), live_runs(stack, shard)
    return StreamShard(
        shard=shard,
        runs=tuple(runs),
        heartbeat_at=health.heartbeat_at,
        micro_batch_since=health.micro_batch_since,
        window_until=health.window_until,
        stop_requested=health.stop_requested,
        failed_starts=0 if runs else health.starts,
        start_failure=None if runs or not health.start_failure else stack.runnable(health.start_failure),
        spilling=health.spilling,
        manifests=len(rows),
        files=sum(row.files for row in rows),
        bytes=sum(row.bytes for row in rows),
        oldest=min((row.created_at for row in rows), default=None),
    )


def live_runs(stack: DeployedStack, shard: str) -> list[str]:
    engine, job = ENGINES[stack.outputs.stream_engine], stack.resources.stream_job_of(shard)
    return engine.live_stream_runs(stack.stream_client, job, stack.outputs.stream_application)


def format_shards(shards: Sequence[StreamShard], now: datetime, clock: Callable[[str], str]) -> Iterator[str]:
    for shard in shards:
        name = f"shard {shard.shard}: " if len(shards) > 1 else ""
        yield name + ", ".join(_format_shard(shard, now, clock))


def _format_shard(shard: StreamShard, now: datetime, clock: Callable[[str], str]) -> Iterator[str]:
    if shard.runs:
        yield f"running ({', '.join(shard.runs)})"
        yield f"heartbeat {format_age(shard.heartbeat_at, now)} ago" if shard.heartbeat_at else "no heartbeat"
    else:
        yield "not running"
    if shard.failed_starts:
        why = f": {shard.start_failure}" if shard.start_failure else ""
        yield f"{format_count(shard.failed_starts, 'start')} in succession failed{why}"
    if shard.oldest:
        size = f"{format_count(shard.files, 'file')}, {format_size(shard.bytes)}"
        yield f"{format_count(shard.manifests, 'manifest')} ({size}), the oldest {format_age(shard.oldest, now)} old"
    if shard.window_until and read_instant(shard.window_until) > now:
        yield f"window until {clock(shard.window_until)}"
    if shard.stop_requested:
        yield "stop requested"
    if shard.spilling:
        yield "spilling to the batch lane"


def format_age(instant: str, now: datetime) -> str:
    """The clock that wrote the instant may be ahead, or have written it after ``now`` was read."""
    return format_duration(max((now - read_instant(instant)).total_seconds(), 0))
