"""The JSON document of a simulation. Times are ISO 8601 in UTC, sizes bytes as stored."""

from __future__ import annotations

from dataclasses import dataclass

from sizing.assumptions import Assumption


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
