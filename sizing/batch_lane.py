"""The batch lane in virtual time: the backlog is planned by the product, and its runs take their time."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from lake.ledger import DatasetSpeed, ManifestRow
from lake.manifest import Partition
from lake.settings import BatchSettings, PriceSettings, Settings
from lake.speed import Speeds
from lake.time import next_local_time
from router.estimate.night import Offer, RunWork, offers, poll_delay, run_dollars, run_seconds
from router.plan.glue_room import configured_room
from router.plan.night import PlannedNight, plan_night
from sizing.arrivals import DAY_SECONDS
from sizing.assumptions import PLAN_SECONDS, SETTLE_SECONDS
from sizing.result import Latencies
from sizing.routing import SimulatedManifest


@dataclass(frozen=True, slots=True)
class BacklogItem:
    """A manifest of the batch lane, or the part of it that one invocation has received."""

    row: ManifestRow
    core_seconds: float
    compressed_seconds: float
    """The part of ``core_seconds`` for compressed files."""
    longest_seconds: float
    arrived: tuple[tuple[float, int], ...]
    """Time of arrival, in seconds from the start of the day, and number of files."""


@dataclass(frozen=True, slots=True)
class SimulatedNight:
    """A night and its outcome."""

    planned: PlannedNight
    start: datetime
    end: datetime
    """When the verdict is there."""
    deadline: datetime
    dollars: float
    """Billed time of its runs."""
    latencies: Latencies


def collect_backlog(manifests: Iterable[SimulatedManifest], settings: Settings) -> list[BacklogItem]:
    """The manifests into which collections are divided: what invocations have received of an hour and a dataset."""
    received: defaultdict[Partition, list[BacklogItem]] = defaultdict(list)
    datasets: dict[Partition, int] = {}
    for found in manifests:
        work, row = found.work, found.row
        arrived = ((found.arrived, row.files),)
        received[row.partition].append(
            BacklogItem(row, work.core_seconds, work.compressed_seconds, work.longest_seconds, arrived)
        )
        datasets[row.partition] = found.datasets
    return [
        made
        for partition, items in received.items()
        for group in _groups(items, settings.batch, datasets[partition])
        for made in _of_each_dataset(_merge(group), datasets[partition])
    ]


def _of_each_dataset(merged: BacklogItem, datasets: int) -> Iterator[BacklogItem]:
    """The manifests of all datasets that the one stands for, each with its share of the files, as if they had arrived
    in the middle of its time."""
    row, times = merged.row, [arrived for arrived, files in merged.arrived for _ in range(files)]
    number = min(datasets, row.files)
    if number == 1:
        yield merged
        return
    for dataset in range(number):
        own = times[dataset::number]
        share = len(own) / row.files
        yield BacklogItem(
            replace(
                row,
                id=f"{row.id}-{dataset}",
                bytes=round(row.bytes * share),
                files=len(own),
                compressed_bytes=round(row.compressed_bytes * share),
            ),
            merged.core_seconds * share,
            merged.compressed_seconds * share,
            merged.longest_seconds,
            ((sum(own) / len(own), len(own)),),
        )


def _groups(items: Iterable[BacklogItem], limits: BatchSettings, datasets: int) -> Iterator[list[BacklogItem]]:
    max_bytes, max_files = limits.manifest_bytes * datasets, limits.manifest_files * datasets
    group: list[BacklogItem] = []
    size = files = 0
    for item in items:
        fits = size + item.row.bytes <= max_bytes and files + item.row.files <= max_files
        if group and not fits:
            yield group
            group, size, files = [], 0, 0
        group.append(item)
        size += item.row.bytes
        files += item.row.files
    if group:
        yield group


def _merge(sources: Sequence[BacklogItem]) -> BacklogItem:
    row = replace(
        sources[0].row,
        bytes=sum(item.row.bytes for item in sources),
        files=sum(item.row.files for item in sources),
        compressed_bytes=sum(item.row.compressed_bytes for item in sources),
    )
    return BacklogItem(
        row,
        sum(item.core_seconds for item in sources),
        sum(item.compressed_seconds for item in sources),
        max(item.longest_seconds for item in sources),
        tuple(arrival for item in sources for arrival in item.arrived),
    )


def simulate_night(
    backlog: Sequence[BacklogItem], settings: Settings, night: datetime, waits: Mapping[str, float] | None = None
) -> SimulatedNight | None:
    """The night that begins at ``night`` (aware), by the product's plan; None if there is nothing to convert.

    ``waits``: what ``offers`` takes.
    """
    if not backlog:
        return None
    start = night + timedelta(seconds=PLAN_SECONDS)
    deadline = next_local_time(settings.schedule.deadline, settings.time_zone, start)
    rows = [item.row for item in backlog]
    speeds, room = _speeds(backlog, settings.price), configured_room(settings)
    planned = plan_night(rows, settings, speeds, room, start, deadline, waits)
    (offer,) = (offer for offer in offers(settings, waits) if offer.engine == planned.night.engine)
    runs = _Runs(backlog, planned, offer, DAY_SECONDS + (start - night).total_seconds())
    end = start + timedelta(seconds=runs.seconds + SETTLE_SECONDS)
    return SimulatedNight(planned, start, end, deadline, runs.dollars, runs.latencies)


def _speeds(backlog: Sequence[BacklogItem], price: PriceSettings) -> Speeds:
    """What earlier nights have measured."""
    sums: dict[str, list[float]] = {}
    for item in backlog:
        row, compressed = item.row, item.compressed_seconds
        found = sums.setdefault(row.partition.dataset, [0.0] * 4)
        parts = (row.bytes - row.compressed_bytes, item.core_seconds - compressed, row.compressed_bytes, compressed)
        for number, part in enumerate(parts):
            found[number] += part
    measured = {name: DatasetSpeed(_rate(*found[:2]), _rate(*found[2:])) for name, found in sums.items()}
    return Speeds(measured, price)


def _rate(size: float, seconds: float) -> float | None:
    return size / seconds if size and seconds else None


class _Runs:
    """The runs of a plan, in its order, as many side by side as it says."""

    def __init__(self, backlog: Sequence[BacklogItem], planned: PlannedNight, offer: Offer, first: float) -> None:
        self._items = {item.row.id: item for item in backlog}
        self._workers, self._offer = planned.night.workers, offer
        self.dollars, self.latencies = 0.0, Latencies()
        free = [first] * max(min(planned.night.concurrency, len(planned.runs)), 1)
        for run in planned.runs:
            heapq.heapreplace(free, self._convert([self._items[row.id] for row in run.manifests], free[0]))
        self.seconds = max(free) - first

    def _convert(self, items: Sequence[BacklogItem], start: float) -> float:
        """Bill a run; returns the time at which its place is free again."""
        total = sum(item.core_seconds for item in items)
        work = RunWork(total, max(item.longest_seconds for item in items))
        end = start + run_seconds(work, self._workers, self._offer)
        self.dollars += run_dollars(work, self._workers, self._offer)
        begin = start + self._offer.wait_seconds + self._offer.start_seconds
        busy = end - poll_delay(end - start) - begin
        done = 0.0
        for item in items:
            done += item.core_seconds
            published = begin + busy * done / total if total else end
            for arrived, files in item.arrived:
                self.latencies.add(published - arrived, files)
        return end
