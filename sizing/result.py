"""A simulation as a JSON document, and as a table and sentences for people."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from lake.speed import FAST, SLOW
from lake.texts import format_count, format_dollars, format_duration, format_size
from sizing.assumptions import Assumption

ROUNDING = 1e-6
"""Files, by which the shares of a file may miss one."""


class Latencies:
    """Seconds from arrival to publication, counted by tenths of a second."""

    def __init__(self) -> None:
        self.files = 0
        """Number of files."""
        self._shares: defaultdict[int, float] = defaultdict(float)
        """Files by tenths of a second; a file whose latency is only known within limits has a share of each second."""

    def add(self, seconds: float, files: int, spread: float = 0.0) -> None:
        """Count ``files`` whose latencies are ``seconds`` on average, evenly from half of ``spread`` less to as much
        more, by whole seconds.
        """
        self.files += files
        parts = max(round(spread), 1)
        for part in range(parts):
            offset = spread * ((part + 0.5) / parts - 0.5)
            self._shares[round(10 * (seconds + offset))] += files / parts

    def percentile(self, share: float) -> float | None:
        """Smallest number of seconds in which this share (0 to 1) of the files was published; None: there are none."""
        left, found = share * self.files - ROUNDING, None
        for tenths in sorted(self._shares):
            found = tenths / 10
            left -= self._shares[tenths]
            if left <= 0:
                break
        return found


@dataclass(frozen=True, slots=True)
class LatencySeconds:
    """From the arrival of a file until its rows can be read; None: the lane had no files."""

    p50: float | None
    p95: float | None
    p99: float | None


@dataclass(frozen=True, slots=True)
class LaneResult:
    """One lane over the day and the night after it."""

    files: int
    bytes: int
    manifests: int
    """As routed."""
    latency_seconds: LatencySeconds
    urgent_seconds: LatencySeconds
    """The same of urgent files alone."""


@dataclass(frozen=True, slots=True)
class NightResult:
    """The night after the day."""

    start: str
    end: str
    deadline: str
    fits: bool
    """Whether it ends before its deadline."""
    end_low: str
    """Its end if S3 is read faster than assumed ..."""
    end_high: str
    """... or slower."""
    late_minutes: float
    runs: int
    concurrency: int
    """Runs side by side."""
    workers: int
    """Workers of each run, the driver's included."""
    worker_type: str
    manifests: int
    """Those that the night converts."""
    forecast_minutes: float
    """What the plan says before the night."""
    forecast_dollars: float


@dataclass(frozen=True, slots=True)
class Dollars:
    """US dollars of a day."""

    stream: float
    """Billed time of the streaming job."""
    night: float
    """Billed time of the night's runs."""
    other: float
    """Requests, ledger and functions (router/estimate/other_costs.py)."""
    total: float
    low: float
    """The total if S3 is read ``FAST`` times as fast as assumed ..."""
    high: float
    """... or ``SLOW`` times; both are the total where the ledger has measured every dataset."""
    month: float
    """30 such days."""
    month_low: float
    month_high: float
    per_terabyte: float
    storage_month: float
    """For a month in which what one day has written is kept."""


@dataclass(frozen=True, slots=True)
class OptionResult:
    """One way to route the day's files."""

    routing: str
    """``all-stream``, ``all-batch`` or ``hybrid``."""
    engine: str
    """The engine that the plan takes for the night; empty: there is no night."""
    changes: tuple[str, ...]
    """Settings that differ from the file's."""
    stream: LaneResult
    batch: LaneResult
    spilled_files: int
    ignored_files: int
    peak_backlog_bytes: int
    """Maximum of the open manifests of the stream lane ..."""
    peak_backlog_at: str | None
    """... and the end of the window in which it was reached; None: there was no backlog."""
    night: NightResult | None
    dollars: Dollars


@dataclass(frozen=True, slots=True)
class Simulation:
    """All options of one day, and what they rest on."""

    files: int
    bytes: int
    options: tuple[OptionResult, ...]
    assumptions: tuple[Assumption, ...]
    as_gzip: OptionResult | None = None
    """All files overnight, if whoever writes them compresses them; None: they do, or that night ends too late."""


NOTHING = "-"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows below their headers."""

    title: str
    names: Sequence[str]
    """Headers of the first columns."""
    numbers: Sequence[str]
    """Headers of the last columns, which are aligned right."""
    rows: Sequence[Sequence[str]]


def options_table(found: Simulation, time_zone: str) -> Table:
    """What each routing comes to: input and latency by lane, the end of the night, dollars."""
    zone = ZoneInfo(time_zone)
    title = f"{format_count(found.files, 'file')}, {format_size(found.bytes)} a day; times in {time_zone}"
    names = ("routing", "engine of the night", "in the stream", "p50, p95", "urgent p95", "overnight", "p50, p95")
    numbers = ("night ends", "$ a day", "of it requests", "$ a month", "low to high")
    return Table(title, names, numbers, [_option_row(option, zone) for option in found.options])


def assumptions_table(found: Simulation) -> Table:
    """Every value that the figures rest on, how it is known, and where it comes from."""
    rows = [
        (f"{item.value:g} {item.unit}".strip(), item.name, item.basis.value, item.source) for item in found.assumptions
    ]
    return Table("Assumptions", ("value", "what", "known", "source"), (), rows)


def notes(found: Simulation, time_zone: str) -> Iterator[str]:
    """Sentences on storage, the range, gzip, and each routing: its night, its own settings, its largest backlog."""
    zone = ZoneInfo(time_zone)
    yield (
        f"what a day has written costs {format_dollars(max(item.dollars.storage_month for item in found.options))} for "
        "each month that it is kept; that is in no other figure"
    )
    if any(option.dollars.high > option.dollars.low for option in found.options):
        yield (
            f"low to high: S3 read {FAST:g} to {SLOW:g} times as fast as assumed. No one has measured it: the first "
            "night replaces it (simulate --from-ledger)"
        )
    if found.as_gzip:
        gzip = found.as_gzip
        plain = next(option.dollars.month for option in found.options if option.routing == gzip.routing)
        yield (
            f"as gzip files from whoever writes them, {gzip.routing} on {gzip.engine} takes ${gzip.dollars.month:,.0f} "
            f"a month, not ${plain:,.0f}, and input takes {format_size(gzip.batch.bytes)}"
        )
    for option in found.options:
        if option.changes:
            yield f"{option.routing} differs from the settings: {', '.join(option.changes)}"
        if option.night:
            yield f"{option.routing}: {_night(option.night, zone)}"
        if option.peak_backlog_at:
            spilled = f"; spilled: {format_count(option.spilled_files, 'file')}" if option.spilled_files else ""
            backlog, at = format_size(option.peak_backlog_bytes), _clock(option.peak_backlog_at, zone)
            yield f"{option.routing}: largest backlog of the stream lane {backlog}, {at}{spilled}"
    if ignored := found.options[0].ignored_files:
        yield f"ignored, because no rule of the settings takes them: {format_count(ignored, 'file')}"


def _night(night: NightResult, zone: ZoneInfo) -> str:
    low, high = (_clock(end, zone) for end in (night.end_low, night.end_high))
    return (
        f"{format_count(night.runs, 'run')}, {night.concurrency} side by side, of {night.workers} workers "
        f"{night.worker_type}; the night ends {low if low == high else f'from {low} to {high}'}; its plan says "
        f"{format_duration(60 * night.forecast_minutes)} and {format_dollars(night.forecast_dollars)}"
    )


def _clock(instant: str, zone: ZoneInfo) -> str:
    return f"{datetime.fromisoformat(instant).astimezone(zone):%a %H:%M}"


def _option_row(option: OptionResult, zone: ZoneInfo) -> tuple[str, ...]:
    dollars, end, urgent = option.dollars, NOTHING, option.stream.urgent_seconds.p95
    if option.night:
        late = "" if option.night.fits else f", {format_duration(60 * option.night.late_minutes)} late"
        end = f"{datetime.fromisoformat(option.night.end).astimezone(zone):%H:%M}{late}"
    return (
        option.routing,
        option.engine or NOTHING,
        *_lane_cells(option.stream),
        NOTHING if urgent is None else format_duration(urgent),
        *_lane_cells(option.batch),
        end,
        f"{dollars.total:,.2f}",
        f"{dollars.other:,.2f}",
        f"{dollars.month:,.0f}",
        f"{dollars.month_low:,.0f} to {dollars.month_high:,.0f}",
    )


def _lane_cells(lane: LaneResult) -> tuple[str, str]:
    latency = (lane.latency_seconds.p50, lane.latency_seconds.p95)
    if not lane.files:
        return NOTHING, NOTHING
    return format_size(lane.bytes), ", ".join(format_duration(seconds or 0.0) for seconds in latency)
