"""The batch lane in virtual time: the backlog is planned by the product, and its runs take their time."""

from __future__ import annotations

import heapq
from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from lake.engines.workers import DPUS
from lake.ledger import DatasetSpeed
from lake.time import next_local_time
from router.estimate.night import RunWork, run_dollars, run_seconds
from router.estimate.offer import offers
from router.estimate.speed import Speeds
from router.plan.glue_room import configured_room
from router.plan.night import PlannedNight, plan_night
from sizing.arrivals import DAY_SECONDS
from sizing.assumptions import FAILED_WORK, PLAN_SECONDS, SETTLE_SECONDS
from sizing.histogram import Latencies, Timeline

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from lake.ledger import ManifestRow
    from lake.partition import Partition
    from lake.settings import BatchSettings, PriceSettings, Settings
    from router.estimate.offer import Offer
    from router.plan.pack import PlannedRun
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
class Backlog:
    """What a night has to convert."""

    items: dict[str, BacklogItem]


@dataclass(frozen=True, slots=True)
class SimulatedNight:
    """A night and its outcome."""

    planned: PlannedNight
    start: datetime
    end: datetime
    """When the verdict is there."""
    deadline: datetime
    dollars: float
    """Billed time of its runs, those that failed included."""
    repeated_runs: int
    latencies: Latencies
    dpus: Timeline
    """DPUs in use; of EMR Serverless four vCPUs count as one."""
    published: tuple[tuple[float, int], ...]
    """Time and bytes of each manifest."""


def collect_backlog(manifests: Iterable[SimulatedManifest], settings: Settings) -> Backlog:
    """The manifests into which collections are divided: what invocations have received of an hour and a dataset."""
    received: defaultdict[Partition, list[BacklogItem]] = defaultdict(list)
    for found in manifests:
        work, row = found.work, found.row
        arrived = ((found.arrived, row.files),)
        received[row.partition].append(
            BacklogItem(row, work.core_seconds, work.compressed_seconds, work.longest_seconds, arrived)
        )
    items = {}
    for found_items in received.values():
        for group in _groups(found_items, settings.batch):
            item = _merge(group)
            items[item.row.id] = item
    return Backlog(items)


def _groups(items: Iterable[BacklogItem], limits: BatchSettings) -> Iterator[list[BacklogItem]]:
    group: list[BacklogItem] = []
    size = files = 0
    for item in items:
        fits = size + item.row.bytes <= limits.manifest_bytes and files + item.row.files <= limits.manifest_files
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
    backlog: Backlog, settings: Settings, night: datetime, failing_share: float
) -> SimulatedNight | None:
    """The night that begins at ``night`` (aware), by the product's plan; None: there is nothing to convert."""
    if not backlog.items:
        return None
    start = night + timedelta(seconds=PLAN_SECONDS)
    deadline = next_local_time(settings.schedule.deadline, settings.time_zone, start)
    rows = [item.row for item in backlog.items.values()]
    planned = plan_night(rows, settings, _speeds(backlog, settings.price), configured_room(settings), start, deadline)
    (offer,) = (offer for offer in offers(settings) if offer.engine == planned.night.engine)
    runs = _Runs(backlog, planned, offer, DAY_SECONDS + (start - night).total_seconds(), failing_share)
    end = start + timedelta(seconds=runs.seconds + SETTLE_SECONDS)
    return SimulatedNight(
        planned,
        start,
        end,
        deadline,
        runs.dollars,
        runs.repeated,
        runs.latencies,
        runs.dpus,
        tuple(sorted(runs.published)),
    )


def _speeds(backlog: Backlog, price: PriceSettings) -> Speeds:
    """What earlier nights have measured."""
    sums: dict[str, list[float]] = {}
    for item in backlog.items.values():
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

    def __init__(
        self, backlog: Backlog, planned: PlannedNight, offer: Offer, first: float, failing_share: float
    ) -> None:
        self._items, self._workers, self._offer = backlog.items, planned.night.workers, offer
        self.dollars, self.repeated = 0.0, 0
        self.latencies, self.dpus = Latencies(), Timeline()
        self.published: list[tuple[float, int]] = []
        free = [first] * max(min(planned.night.concurrency, len(planned.runs)), 1)
        failing = 0.0
        for run in planned.runs:
            failing += failing_share
            fails = failing >= 1
            failing -= fails
            heapq.heapreplace(free, self._convert(run, free[0], fails=fails))
        self.seconds = max(free) - first

    def _convert(self, run: PlannedRun, start: float, *, fails: bool) -> float:
        """The time at which its place is free again."""
        if fails:
            wasted = FAILED_WORK * sum(self._items[row.id].core_seconds for row in run.manifests)
            start = self._bill(start, wasted, 0.0)
            self.repeated += 1
        work = sum(self._items[row.id].core_seconds for row in run.manifests)
        longest = max(self._items[row.id].longest_seconds for row in run.manifests)
        end = self._bill(start, work, longest)
        begin = start + self._offer.wait_seconds + self._offer.start_seconds
        busy = end - self._offer.times.poll_delay(end - start) - begin
        done = 0.0
        for row in run.manifests:
            item = self._items[row.id]
            done += item.core_seconds
            published = begin + busy * done / work if work else end
            self.published.append((published, row.bytes))
            for arrived, files in item.arrived:
                self.latencies.add(published - arrived, files)
        return end

    def _bill(self, start: float, work: float, longest: float) -> float:
        """Of a job run: its end."""
        found = RunWork(work, longest)
        end = start + run_seconds(found, self._workers, self._offer)
        self.dollars += run_dollars(found, self._workers, self._offer)
        dpus = self._workers * DPUS[self._offer.worker_type]
        self.dpus.add(start + self._offer.wait_seconds, end, dpus)
        return end
