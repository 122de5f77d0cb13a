"""The batch lane in virtual time: collected files are divided as the sweep does, and planned by the product."""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from lake.ledger import ManifestRow
from lake.manifest import Partition, has_compressed_name
from lake.settings import BatchSettings, Settings
from lake.speed import Speeds
from lake.time import next_local_time
from router.estimate.night import RunWork, offers, poll_delay, run_seconds
from router.plan.glue_room import configured_room
from router.plan.night import PlannedNight, equal_rows, plan_night
from sizing.arrivals import DAY_SECONDS
from sizing.result import Latencies
from sizing.routing import Collected

PLAN_SECONDS = 30.0
"""Assumed time from the schedule until the first runs are started."""


@dataclass(frozen=True, slots=True)
class BacklogItem:
    row: ManifestRow
    arrived: Mapping[float, float]
    """Time of arrival to the minute, in seconds from the start of the day -> number of files."""


def divide_collections(collected: Mapping[Partition, Sequence[Collected]], limits: BatchSettings) -> list[BacklogItem]:
    return [
        item
        for partition, found in collected.items()
        for number, piece in enumerate(_cut(found, limits, found[0].group.datasets))
        for item in _of_each_dataset(f"{partition}#{number}", partition, piece)
    ]


def _cut(collected: Iterable[Collected], limits: BatchSettings, datasets: int) -> Iterator[list[Collected]]:
    """Divide the files in order as the product's ``cut`` does, without a value for each file."""
    piece: list[Collected] = []
    size = files = 0
    for group, arrived in collected:
        left = group.count
        while left:
            room = (limits.manifest_bytes * datasets - size) // max(group.bytes, 1)
            room = min(room, limits.manifest_files * datasets - files)
            if piece and room < 1:
                yield piece
                piece, size, files = [], 0, 0
                continue
            taken = min(left, max(room, 1))
            piece.append(Collected(replace(group, count=taken), arrived))
            size, files, left = size + taken * group.bytes, files + taken, left - taken
    if piece:
        yield piece


def _of_each_dataset(name: str, partition: Partition, piece: Sequence[Collected]) -> Iterator[BacklogItem]:
    """Return the manifests of all represented datasets, each with its share of the files."""
    files = sum(group.count for group, _ in piece)
    size = sum(group.count * group.bytes for group, _ in piece)
    compressed = sum(group.count * group.bytes for group, _ in piece if has_compressed_name(group.key))
    number = min(piece[0].group.datasets, files)
    arrived: defaultdict[float, float] = defaultdict(float)
    for group, instant in piece:
        arrived[instant // 60 * 60 + 30] += group.count / number
    for row in equal_rows(name, partition, number, size, files, compressed):
        yield BacklogItem(row, arrived)


def simulate_night(
    backlog: Sequence[BacklogItem],
    settings: Settings,
    speeds: Speeds,
    night: datetime,
    waits: Mapping[str, float] | None = None,
) -> tuple[PlannedNight, Latencies] | None:
    """The plan of the night that begins at ``night`` (aware), and its files' latencies; None if nothing is to do.

    ``waits``: argument of ``offers``.
    """
    if not backlog:
        return None
    start = night + timedelta(seconds=PLAN_SECONDS)
    deadline = next_local_time(settings.schedule.deadline, settings.time_zone, start)
    rows, room = [item.row for item in backlog], configured_room(settings)
    planned = plan_night(rows, settings, speeds, room, start, deadline, waits)
    (offer,) = (offer for offer in offers(settings, waits) if offer.engine == planned.night.engine)
    arrived, latencies = {item.row.id: item.arrived for item in backlog}, Latencies()
    free = [DAY_SECONDS + PLAN_SECONDS] * max(min(planned.night.concurrency, len(planned.runs)), 1)
    for run in planned.runs:
        work = RunWork(run.seconds, max(map(speeds.longest_seconds, run.manifests)))
        end = free[0] + run_seconds(work, planned.night.workers, offer)
        begin = free[0] + offer.wait_seconds + offer.start_seconds
        busy = end - poll_delay(end - free[0]) - begin
        done = 0.0
        for row in run.manifests:
            done += speeds.core_seconds(row)
            for instant, files in arrived[row.id].items():
                latencies.add(begin + busy * done / run.seconds - instant, files)
        heapq.heapreplace(free, end)
    return planned, latencies
