"""One window of the stream lane on the local cloud, and what it took. Times are seconds since the epoch."""

from __future__ import annotations

import gzip
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from bench.input_files import GZIP_LEVEL, Recipe, generate
from lake.bills import MICRO
from lake.ledger import State
from lake.manifest import Lane
from simulate.routing import POLLERS
from tests.chaos.glue_world import OVER
from tests.chaos.inputs import Body
from tests.load.lanes import put_at_rate
from tests.load.published import published_manifests

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.chaos.glue_world import GlueWorld
    from tests.load.published import PublishedManifest

KB = 1_000
WARM_UP_FILES, WARM_UP_RATE = 24, 2.0
"""The first micro-batches of a run load classes, and start the Python workers."""
NEVER = "2999-01-01T00:00:00+00:00"


@dataclass(frozen=True, slots=True)
class StreamLoad:
    """Files that are put at a steady rate; the sizes and kinds alternate."""

    dataset: str
    files: int
    rate: float
    """Files a second."""
    plain: tuple[int, ...]
    """Bytes of NDJSON in each file."""
    compressed: tuple[int, ...]
    """The same of gzip files."""
    urgent_every: int
    """One of so many files is urgent, the others are peak files."""
    seed: int

    def contents(self) -> list[tuple[str, Body]]:
        """Keys and bodies, in order."""
        bodies = [(".ndjson", generate(Recipe("flat", 1, size, self.seed), 0)) for size in self.plain]
        for size in self.compressed:
            text = generate(Recipe("flat", 1, size, self.seed + 1), 0)
            bodies.append((".ndjson.gz", gzip.compress(text, GZIP_LEVEL, mtime=0)))
        return [self._file(number, *bodies[number % len(bodies)]) for number in range(self.files)]

    def _file(self, number: int, suffix: str, data: bytes) -> tuple[str, Body]:
        folder = "urgent/" if number % self.urgent_every == 0 else ""
        return f"{self.dataset}/{folder}{number:05}{suffix}", Body(data, (), ())


@dataclass(frozen=True, slots=True)
class FileTimes:
    """The way of one file."""

    size: int
    """Bytes as stored."""
    put: float
    window_end: float
    """When its poller ended the window ..."""
    queued: float
    """... and when its manifest was QUEUED, its pointer in the inbox."""
    published: float

    @property
    def latency(self) -> float:
        """Seconds from the upload until the rows could be read."""
        return self.published - self.put


@dataclass(frozen=True, slots=True)
class MeasuredStream:
    """What one run of the streaming job took."""

    files: dict[str, FileTimes]
    """By key."""
    manifests: tuple[PublishedManifest, ...]
    begun: float
    """When the run was metered for the first time ..."""
    ended: float
    """... and for the last time."""
    stop_requested: float
    dollars: float
    """Of the cost rows. On the local cloud the clock stands in for the bill."""

    def latencies(self, *, urgent: bool) -> list[float]:
        """Seconds from the upload of each file until its rows could be read, sorted."""
        return sorted(times.latency for key, times in self.files.items() if is_urgent(key) or not urgent)


def is_urgent(key: str) -> bool:
    """Whether the key is one of an urgent file."""
    return "/urgent/" in key


def run_stream(world: GlueWorld, load: StreamLoad) -> MeasuredStream:
    """Start a run with its stream window open, put files at a steady rate, stop it, and read what it took."""
    stream, job = world.ledger().stream, world.resources.stream_job
    files = load.contents()
    stream.open_window(NEVER)
    run = world.start(job, None)
    world.wait("the first heartbeat", lambda: (row := stream.get()).run == run and row.heartbeat_at is not None)
    warm_up = StreamLoad(f"warm_{load.dataset}", WARM_UP_FILES, WARM_UP_RATE, load.plain, load.compressed, 4, load.seed)
    _put(world, warm_up.contents(), WARM_UP_RATE)
    put, pollers = _put(world, files, load.rate)
    last = time.time() + world.settings.stream.trigger_seconds + world.settings.input.event_window_seconds
    world.wait("a micro-batch without work", lambda: time.time() > last)
    stream.request_stop(True)
    stop_requested = time.time()
    world.wait("the end of the streaming run", lambda: world.state(job, run) in OVER)
    every = published_manifests(world.clients.s3, world.resources.control_bucket)
    manifests = tuple(item for item in every if not put.keys().isdisjoint(item.keys))
    published = {key: item.published for item in manifests for key in item.keys}
    times = {
        key: FileTimes(len(body.data), put[key], *pollers.ends[number], published[key])
        for number, (key, body) in enumerate(files)
    }
    today = datetime.now(UTC).date()
    costs = [row for row in world.ledger().costs.of_days(today - timedelta(days=1), today) if row.id.startswith(run)]
    begun, ended = (
        chosen(datetime.fromisoformat(getattr(row, name)).timestamp() for row in costs)
        for chosen, name in ((min, "started_at"), (max, "ended_at"))
    )
    dollars = sum(row.micro_dollars for row in costs) / MICRO
    return MeasuredStream(times, manifests, begun, ended, stop_requested, dollars)


def _put(world: GlueWorld, files: Sequence[tuple[str, Body]], rate: float) -> tuple[dict[str, float], _Pollers]:
    """Put files and route them, and return when all are published: the time of each upload, and the pollers."""
    put: dict[str, float] = {}
    pollers = _Pollers(world, world.settings.input.event_window_seconds)
    with pollers.polling():
        put_at_rate(world, files, rate, put)
    world.wait("the backlog to be empty", lambda: not _is_open(world))
    return put, pollers


def _is_open(world: GlueWorld) -> bool:
    manifests = world.ledger().manifests
    states = (State.QUEUED, State.RUNNING, State.PUBLISHING)
    return any(True for state in states for _ in manifests.open(Lane.STREAM, state))


@dataclass(slots=True)
class _Pollers:
    """Those of the queue, as Lambda has them: each collects its share of the messages in windows of its own."""

    world: GlueWorld
    window: float
    ends: dict[int, tuple[float, float]] = field(default_factory=dict)
    """End of the window, and of the invocation of ``route``, by the number of the file."""
    _closed: threading.Event = field(default_factory=threading.Event)
    _pause: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def polling(self) -> Iterator[None]:
        """Route until the block has ended and the queue is empty."""
        first = time.time()
        with ThreadPoolExecutor(POLLERS) as pool:
            ended = [pool.submit(self._poll, poller, first) for poller in range(POLLERS)]
            try:
                yield
            finally:
                self._closed.set()
        for poller in ended:
            poller.result()

    def _poll(self, poller: int, first: float) -> None:
        end = first + self.window * (poller + 1) / POLLERS
        while True:
            last = self._closed.is_set()
            self._pause.wait(max(0.0, end - time.time()))
            messages = {name: int(name.rpartition("-")[2]) for name in list(self.world.queue)}
            own = {name: number for name, number in messages.items() if number % POLLERS == poller}
            if own:
                self.world.route(list(own))
                queued = time.time()
                self.ends.update(
                    {number: (end, queued) for name, number in own.items() if name not in self.world.queue}
                )
            elif last:
                return
            end = max(end + self.window, time.time())
