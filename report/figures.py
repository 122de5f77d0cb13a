"""The figures of a report: sums over manifests, also over time in a limited number of intervals, and costs. Pure."""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Any, NamedTuple

from lake.engines.description import MICRO
from lake.ledger import CostRow, CostShare, ManifestCounts, ManifestRow, State
from lake.manifest import Lane
from lake.texts import format_instant

MAX_NAMED_MANIFESTS = 100
"""Maximum number of unfinished manifests that are named; all are counted."""
OLD_AFTER = timedelta(days=3)
"""Files that had waited longer at the start of the period, as in a backfill, would hide all others in a chart."""

STEPS = (1, 5, 15, 60, 300, 900, 3600, 21_600, 86_400)
"""Lengths of an interval in seconds; each is a multiple of the one before, so that intervals can be joined."""
MAX_INTERVALS = 120
"""Maximum intervals by arrival of files; if there are more, they are joined into longer ones."""
MAX_CHANGES = 1500
"""Maximum intervals of the backlog. Changes within one interval are not visible; the intervals of a day are minutes."""

GIGABYTE = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Percentiles of a duration for files or manifests, in seconds, with three significant digits."""

    files: int
    p50: float
    p90: float
    p99: float
    longest: float


class BacklogPoint(NamedTuple):
    instant: int
    """Seconds since the epoch."""
    files: int
    """Number of files that waited at this instant."""
    bytes: int


class OverTime:
    """Counters by interval. If there are too many intervals, they are joined into longer ones."""

    def __init__(self, max_intervals: int) -> None:
        self._max_intervals, self._step = max_intervals, 0
        self._intervals: dict[int, Counter[Any]] = {}

    def add(self, instant: float, counts: Mapping[Any, int]) -> None:
        """Add counts to the interval of an instant, in seconds since the epoch."""
        length = STEPS[self._step]
        self._intervals.setdefault(int(instant // length) * length, Counter()).update(counts)
        while len(self._intervals) > self._max_intervals and self._step < len(STEPS) - 1:
            self._step += 1
            shorter, self._intervals = self._intervals, {}
            for start, found in shorter.items():
                self.add(start, found)

    def intervals(self) -> list[tuple[int, int, Counter[Any]]]:
        """Start and end of each interval with its counters, in order."""
        return [(start, start + STEPS[self._step], counts) for start, counts in sorted(self._intervals.items())]


def three_digits(seconds: float) -> float:
    """Seconds with three digits, for counting; a negative value, from the clocks of two machines, becomes 0."""
    return float(f"{max(seconds, 0.0):.3g}")


def percentiles(counts: Mapping[float, int]) -> Percentiles | None:
    """Percentiles, by nearest rank, of files counted by their latency in seconds; None without files."""
    order = sorted(counts)
    ranks = list(accumulate(counts[seconds] for seconds in order))
    if not any(ranks):
        return None
    p50, p90, p99, longest = (order[bisect_left(ranks, -(-ranks[-1] * share // 100))] for share in (50, 90, 99, 100))
    return Percentiles(ranks[-1], p50, p90, p99, longest)


@dataclass(slots=True)
class LaneFigures:
    counts: ManifestCounts = field(default_factory=ManifestCounts)
    latency: OverTime = field(default_factory=lambda: OverTime(MAX_INTERVALS))
    """Number of files by the seconds from arrival to publication, by interval of their arrival."""
    backlog: OverTime = field(default_factory=lambda: OverTime(MAX_CHANGES))
    """Change of the waiting files and bytes, by interval."""
    old_files: int = 0
    """Files that arrived long before the period and are in no chart."""
    again: int = 0
    """Manifests that a person had converted again: the waiting time of their files says nothing."""

    def latencies(self) -> list[tuple[int, Percentiles]]:
        """The start of each interval, in seconds since the epoch, and the percentiles of its arrived files."""
        found = ((start, percentiles(counts)) for start, _, counts in self.latency.intervals())
        return [(start, figures) for start, figures in found if figures is not None]

    def total_latency(self) -> Percentiles | None:
        """The percentiles of all files; None without files."""
        return percentiles(sum((counts for *_, counts in self.latency.intervals()), Counter()))

    def backlogs(self) -> list[BacklogPoint]:
        """The files and bytes that waited at the end of each interval with a change, after a zero at the start."""
        intervals = self.backlog.intervals()
        points = [BacklogPoint(start, 0, 0) for start, *_ in intervals[:1]]
        for _, end, change in intervals:
            points.append(BacklogPoint(end, points[-1].files + change["files"], points[-1].bytes + change["bytes"]))
        return points


@dataclass(slots=True)
class TableFigures:
    """What the Iceberg table of a dataset shows of the published manifests."""

    batches: set[int] = field(default_factory=set)
    """Numbers of the batches that brought manifests in."""
    shown: int = 0
    waiting: int = 0
    """Number of published manifests that are not in the table yet."""
    waiting_since: str | None = None
    """ISO 8601, UTC: when the oldest of these was published."""
    _lags: Counter[float] = field(default_factory=Counter)
    """Numbers of manifests by the seconds from publication to the table."""

    @property
    def lag(self) -> Percentiles | None:
        """Seconds from publication to the table; None if the table shows no manifest."""
        return percentiles(self._lags)

    def add(self, row: ManifestRow) -> None:
        if row.tabled is not None:
            self.batches.add(row.tabled.batch)
        if row.tabled is not None and row.is_tabled:
            self.shown += 1
            if row.finished_at is not None:
                lag = datetime.fromisoformat(row.tabled.since) - datetime.fromisoformat(row.finished_at)
                self._lags[three_digits(lag.total_seconds())] += 1
        elif row.finished_at is not None:
            self.waiting += 1
            self.waiting_since = min(row.finished_at, self.waiting_since or row.finished_at)


class ManifestFigures:
    """Sums current rows one by one. A row without a result of its own (SUPERSEDED, ABANDONED) is not counted.

    Its size depends on datasets, reasons and batches of tables, not on the number of rows. ``begin`` is the start of
    the period; aware.
    """

    def __init__(self, begin: datetime) -> None:
        self._oldest = (begin - OLD_AFTER).timestamp()
        self.total = ManifestCounts()
        self.lanes = {lane: LaneFigures() for lane in Lane}
        self.datasets: dict[str, ManifestCounts] = {}
        self.tables: dict[str, TableFigures] = {}
        """By dataset. Without batches, the dataset has no Iceberg table, or none of these manifests is in it yet."""
        self.unfinished: list[ManifestRow] = []

    def add(self, row: ManifestRow) -> None:
        """Add the current row of a manifest."""
        if row.state not in (State.DONE, State.FAILED) and not row.open:
            return
        lane, dataset = self.lanes[row.lane], row.partition.dataset
        for counts in (self.total, lane.counts, self.datasets.setdefault(dataset, ManifestCounts())):
            counts.count_state(row)
            # The rows of an earlier generation stay visible until the next one is DONE.
            counts.count_files(row)
        if row.published is not None:
            self.tables.setdefault(dataset, TableFigures()).add(row)
        if row.state != State.DONE and len(self.unfinished) < MAX_NAMED_MANIFESTS:
            self.unfinished.append(row)
        arrived = arrival_of(row)
        if row.generation > 1:
            lane.again += 1
        elif arrived < self._oldest:
            lane.old_files += row.files
        else:
            lane.backlog.add(arrived, {"files": row.files, "bytes": row.bytes})
            if row.finished_at is not None:
                finished = datetime.fromisoformat(row.finished_at).timestamp()
                lane.backlog.add(finished, {"files": -row.files, "bytes": -row.bytes})
                if row.state == State.DONE:
                    lane.latency.add(arrived, {three_digits(finished - arrived): row.files})


def arrival_of(row: ManifestRow) -> float:
    """Arrival of a manifest's files by its row alone, in seconds since the epoch.

    If the manifest, or the oldest of its parts, was made in the hour of its files, it is this time. Otherwise, as after
    a backfill, it is the start of the hour: up to an hour too early.
    """
    if row.created_at[:13] == row.partition.stamp:
        return datetime.fromisoformat(row.created_at).timestamp()
    return datetime.fromisoformat(f"{row.partition.stamp}:00:00+00:00").timestamp()


@dataclass(slots=True)
class CostPart:
    micro_dollars: int = 0
    files: int = 0
    bytes: int = 0

    def add(self, share: CostShare) -> None:
        self.micro_dollars += share.micro_dollars
        self.files += share.files
        self.bytes += share.bytes

    @property
    def dollars(self) -> float:
        return self.micro_dollars / MICRO

    @property
    def dollars_per_gb(self) -> float | None:
        """Dollars for one GB of input; None if nothing was converted."""
        return self.dollars / (self.bytes / GIGABYTE) if self.bytes else None


@dataclass(frozen=True, slots=True)
class CostFigures:
    groups: dict[Any, CostPart]
    """Most expensive first; by lane and dataset by default."""
    job_runs: tuple[CostRow, ...]
    """In the order of their start; each has a single share."""
    total: CostPart


def by_lane_and_dataset(run: CostRow, share: CostShare) -> tuple[str, str]:
    """The group of a share; the dataset is empty if the job run held no manifest."""
    return run.lane, share.dataset


def cost_figures(
    rows: Iterable[CostRow], group: Callable[[CostRow, CostShare], Any] = by_lane_and_dataset
) -> CostFigures:
    """Sums by group. It keeps only the sum of each row's shares: a stream of 10,000 datasets has a million a day."""
    runs: list[CostRow] = []
    parts: defaultdict[Any, CostPart] = defaultdict(CostPart)
    total = CostPart()
    for run in rows:
        for share in run.shares:
            for part in (parts[group(run, share)], total):
                part.add(share)
        runs.append(run.summed())
    runs.sort(key=lambda run: (run.start, run.id))
    by_dollars = dict(sorted(parts.items(), key=lambda item: (-item[1].micro_dollars, item[0])))
    return CostFigures(by_dollars, tuple(runs), total)


NO_DATASET = "(no manifest)"
"""Name for the dataset of a job run that held no manifest, because it failed early or found everything done."""
BY_ENGINES = "billed time of the engines, at price.* of the settings"
"""Source of the costs on AWS."""


FAILED, OPEN, NOT_SETTLED = "FAILED", "OPEN", "not settled"


@dataclass(frozen=True, slots=True)
class ExecutionFacts:
    name: str
    recorded: Mapping[str, Any]
    """The facts of its plan and of its verdict in the ledger, without a part that the ledger does not have."""
    job_runs: tuple[CostRow, ...] = ()
    """All of its job runs, including runs that ended on other days."""

    @property
    def outcome(self) -> str:
        return str(self.recorded.get("outcome", NOT_SETTLED))


@dataclass(frozen=True, slots=True)
class AlarmChange:
    name: str
    at: str
    state: str
    """OK, ALARM or INSUFFICIENT_DATA."""
    reason: str


@dataclass(frozen=True, slots=True)
class Report:
    title: str
    stack: str
    period: str
    """What the figures cover, as a sentence."""
    made_at: str
    figures: ManifestFigures
    costs: CostFigures
    executions: tuple[ExecutionFacts, ...]
    alarms: tuple[AlarmChange, ...] | None
    """Changes within the period, latest first; None if they were not read."""
    message: str = ""
    """The message of the verdict; empty without a verdict."""
    metered: str = BY_ENGINES
    """Source of the costs."""
    options: str = ""
    """The options with which a command finds the stack, after a space."""


def execution_report(
    name: str,
    recorded: Mapping[str, Any],
    figures: ManifestFigures,
    rows: Iterable[CostRow],
    **others: Any,  # noqa: ANN401
) -> Report:
    """The report of a planned execution, by its facts in the ledger and its cost rows; ``others``: further members."""
    costs = cost_figures(rows)
    return Report(
        title=f"Execution of {format_instant(recorded['planned_at'])[:16]}",
        period=f"Execution {name}: files of its plan, by their current state.",
        figures=figures,
        costs=costs,
        executions=(ExecutionFacts(name, recorded, costs.job_runs),),
        message=recorded.get("message", ""),
        **others,
    )
