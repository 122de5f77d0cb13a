"""What manifests add up to: by lane, by dataset, by reason. Pure."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from lake.ledger import ManifestCounts, ManifestRow, PublishedTotals, State
from lake.manifest import Lane
from report.over_time import BacklogOverTime, LatencyOverTime, Percentiles, percentiles, three_digits

MAX_NAMED_MANIFESTS = 100
"""Maximum number of manifests that are not DONE that a report names; all of them are counted."""
OLD_AFTER = timedelta(days=3)
"""Files that had waited for longer when the period began (a backfill's) would hide all others in a chart of time."""


@dataclass(slots=True, kw_only=True)
class Counts(ManifestCounts):
    """Manifests by their current state, their files, and what readers see of them."""

    files: int = 0
    bytes: int = 0

    @property
    def manifests(self) -> int:
        return self.done + self.failed + self.open

    def add(self, row: ManifestRow, totals: PublishedTotals | None) -> None:
        self.count_state(row)
        self.files += row.files
        self.bytes += row.bytes
        if totals is not None:
            self.count_totals(totals)


@dataclass(slots=True)
class LaneFigures:
    counts: Counts = field(default_factory=Counts)
    latency: LatencyOverTime = field(default_factory=LatencyOverTime)
    backlog: BacklogOverTime = field(default_factory=BacklogOverTime)
    old_files: int = 0
    """Files that are in no chart: they came long before the period."""
    again: int = 0
    """Manifests that were converted again, on request: their files have waited for no one."""


@dataclass(slots=True)
class TableFigures:
    """What the Iceberg table of a dataset shows of the published manifests."""

    batches: set[int] = field(default_factory=set)
    """Commits that brought them in; at most one a minute."""
    shown: int = 0
    waiting: int = 0
    """Published, and not in the table yet."""
    waiting_since: str | None = None
    """ISO 8601, UTC: when the oldest one of these was published."""
    _lags: Counter[float] = field(default_factory=Counter)
    """Manifests by the seconds from their publication to the table."""

    @property
    def lag(self) -> Percentiles | None:
        """Seconds from publication to the table; None: the table shows none of them."""
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
    """Adds up current rows, one after the other; a row that is not a result (SUPERSEDED, ABANDONED) counts nothing.

    Its size depends on datasets, reasons and commits of tables, not on the number of rows. ``begin``: of the period;
    aware.
    """

    def __init__(self, begin: datetime) -> None:
        self._oldest = (begin - OLD_AFTER).timestamp()
        self.total = Counts()
        self.lanes = {lane: LaneFigures() for lane in Lane}
        self.datasets: dict[str, Counts] = {}
        self.tables: dict[str, TableFigures] = {}
        """By dataset; one without batches has no Iceberg table, or none of these manifests is in it yet."""
        self.unfinished: list[ManifestRow] = []

    def add(self, row: ManifestRow, arrived: Mapping[float, int] | None = None) -> None:
        """Add the current row of a manifest.

        ``arrived`` has the number of its files by their arrival, in seconds since the epoch; None: ``arrival_of`` says
        it.
        """
        if row.state not in (State.DONE, State.FAILED) and not row.open:
            return
        # What an earlier generation has published stays visible until the next one is DONE.
        totals = None if row.published is None else row.published.totals
        lane = self.lanes[row.lane]
        for counts in (self.total, lane.counts, self.datasets.setdefault(row.partition.dataset, Counts())):
            counts.add(row, totals)
        if totals is not None:
            self.tables.setdefault(row.partition.dataset, TableFigures()).add(row)
        if row.state != State.DONE and len(self.unfinished) < MAX_NAMED_MANIFESTS:
            self.unfinished.append(row)
        self._add_times(lane, row, arrived or {arrival_of(row): row.files})

    def _add_times(self, lane: LaneFigures, row: ManifestRow, arrived: Mapping[float, int]) -> None:
        if row.generation > 1:
            lane.again += 1
            return
        finished = None if row.finished_at is None else datetime.fromisoformat(row.finished_at).timestamp()
        for instant, files in arrived.items():
            if instant < self._oldest:
                lane.old_files += files
                continue
            size = row.bytes * files // max(row.files, 1)
            lane.backlog.add(instant, files, size)
            if finished is not None:
                lane.backlog.add(finished, -files, -size)
                if row.state == State.DONE:
                    lane.latency.add(instant, finished - instant, files)


def arrival_of(row: ManifestRow) -> float:
    """When the files of a manifest arrived, in seconds since the epoch, as far as its row says it.

    That is when the manifest was made, or the oldest of the parts that it comes from, if it was in the hour of its
    files; else, after a backfill, the start of that hour: up to an hour too early.
    """
    if row.created_at[:13] == row.partition.stamp:
        return datetime.fromisoformat(row.created_at).timestamp()
    return datetime.fromisoformat(f"{row.partition.stamp}:00:00+00:00").timestamp()
