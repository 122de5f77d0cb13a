"""Decides which peak files spill to the batch lane, because the largest cluster cannot convert them within the goal."""

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta

from lake.ledger import ManifestRow
from lake.ledger.stream import Stream, StreamRow
from lake.manifest import ObjectVersion
from lake.settings import StreamSettings
from lake.speed import Speeds
from router.services import Services

LOW_MARK = 0.25
"""Share of the latency goal below which the lane is no longer reported as spilling."""

ADMITTED_SHARE = 0.5
"""Share of the latency goal for which files may wait for cores. The rest is for event window, trigger, conversion and
publishing. With far more files of 4 GB than ten workers convert, the simulated p95 is 262 s for a goal of 300."""

MEASURED_FOR = timedelta(hours=2)
"""Time after which, without a watch, a backlog no longer counts as measured, such as after the watching execution was
stopped. It is longer than the interval between two watches (``schedule.watch_seconds``: at most an hour)."""

TASK_SECONDS = 0.25
"""Time of a task in addition to its bytes: its requests, and its start in Spark. Measured on the local cloud, with
25 ms more for each read and 40 ms more for each write: 0.2 to 0.3, and 0.1 without the added time (docs/sizing.md)."""


def goal_core_seconds(settings: StreamSettings) -> float:
    """Work, in seconds of one core, that all cores convert within ``stream.latency_goal_seconds``. Pure."""
    return settings.latency_goal_seconds * settings.cores


def is_spilling(settings: StreamSettings, backlog_core_seconds: float, before: bool) -> bool:
    """Whether the lane is reported as spilling: above the goal, and then until below ``LOW_MARK`` of it. Pure."""
    goal = goal_core_seconds(settings)
    return backlog_core_seconds > goal or (before and backlog_core_seconds >= LOW_MARK * goal)


def room_core_seconds(settings: StreamSettings, waiting: float) -> float:
    """Work that may be admitted in addition to ``waiting``; negative or 0 if none may. Pure."""
    return ADMITTED_SHARE * goal_core_seconds(settings) - waiting


def waiting_core_seconds(settings: StreamSettings, backlog: float, elapsed: float, *, watched: bool) -> float:
    """The rest of a backlog after ``elapsed`` seconds in which all cores convert. Pure.

    All of it, if it exceeds the goal and is ``watched``: it was measured then, so the lane is slower than assumed or
    does not work, and no file is admitted before the next measurement. Outside the stream window nothing measures it.
    """
    if watched and backlog > goal_core_seconds(settings):
        return backlog
    return max(backlog - settings.cores * elapsed, 0.0)


def admit_peak_files(services: Services, files: Iterable[ObjectVersion]) -> Collection[ObjectVersion]:
    """The files that the stream lane can convert within its latency goal, oldest first.

    They count as backlog at once, until the next watch replaces the sum by its measurement. Another invocation can use
    the same room only between a read and a write.
    """
    settings, shards = services.settings, services.settings.shards.names
    streams = [services.ledger.stream.of(shard) for shard in shards]
    rows, now = [stream.get() for stream in streams], services.clock()
    # Any shard may get a file, and which one is unknown before its manifest exists.
    max_waiting = max(_waiting(settings.stream, row, now) for row in rows)
    room = room_core_seconds(settings.stream, max_waiting) * len(shards)
    speeds, seconds, admitted, spilled = Speeds({}, settings), 0.0, set(), False
    for file in sorted(files, key=lambda file: file.arrived_at):
        needed = speeds.file_seconds(file)
        if seconds + needed <= room:
            seconds += needed
            admitted.add(file)
        else:
            spilled = True
    for stream, row in zip(streams, rows, strict=True):
        _count(services, stream, row, seconds / len(shards), spilled=spilled)
    return admitted


def _waiting(settings: StreamSettings, row: StreamRow, now: datetime) -> float:
    if row.backlog_at is None:
        return 0.0
    begun = datetime.fromisoformat(row.backlog_at)
    elapsed = max((now - begun).total_seconds(), 0.0)
    watched = row.window_until is not None and min(datetime.fromisoformat(row.window_until), begun + MEASURED_FOR) > now
    return waiting_core_seconds(settings, row.backlog_milliseconds / 1000, elapsed, watched=watched)


def _count(services: Services, stream: Stream, row: StreamRow, seconds: float, *, spilled: bool) -> None:
    """Add admitted work to the backlog of a shard, and record that files have spilled."""
    while seconds or (spilled and not row.spilling):
        now = services.clock()
        milliseconds = round((_waiting(services.settings.stream, row, now) + seconds) * 1000)
        if stream.admit(row, milliseconds, now, spilling=spilled or row.spilling):
            return
        row = stream.get()


def read_core_seconds(services: Services, backlog: Collection[ManifestRow]) -> float:
    """Time of one core of the streaming jobs' engine for the backlog, at each dataset's measured speed, else at the
    assumed one. Each manifest is at least one task; a measured speed includes the requests of tasks.

    It takes one read for each hundred datasets of the backlog.
    """
    names = sorted({row.partition.dataset for row in backlog})
    speeds = Speeds(services.ledger.datasets.speeds(names), services.settings)
    return sum(max(speeds.core_seconds(row), TASK_SECONDS) for row in backlog)
