"""The result of a simulation: a JSON document."""

from collections import defaultdict
from dataclasses import dataclass
from enum import StrEnum

from router.estimate.night import Night
from router.plan.night import Forecast

ROUNDING = 1e-6
"""Tolerance, in files: the shares of a file may not add up to exactly one."""


class Latencies:
    """Seconds from arrival to publication, counted by tenths of a second."""

    def __init__(self) -> None:
        self.files = 0.0
        self._shares: defaultdict[int, float] = defaultdict(float)
        """Files by tenths of a second; a file whose latency is a range has a share of each second in it."""

    def add(self, seconds: float, files: float, spread: float = 0.0) -> None:
        """Count ``files`` with an average latency of ``seconds``, spread evenly over ``spread`` seconds around it, by
        whole seconds.
        """
        self.files += files
        parts = max(round(spread), 1)
        for part in range(parts):
            offset = spread * ((part + 0.5) / parts - 0.5)
            self._shares[round(10 * (seconds + offset))] += files / parts

    def percentile(self, share: float) -> float | None:
        """Smallest number of seconds in which this share (0 to 1) of the files was published; None without files."""
        left, found = share * self.files - ROUNDING, None
        for tenths in sorted(self._shares):
            found = tenths / 10
            left -= self._shares[tenths]
            if left <= 0:
                break
        return found


@dataclass(frozen=True, slots=True)
class LaneResult:
    """One lane over the day and the night after it."""

    files: int
    bytes: int
    manifests: int
    p50: float | None
    """Seconds from the arrival of a file until its rows can be read; None if the lane had no files."""
    p95: float | None


@dataclass(frozen=True, slots=True)
class NightResult(Night):
    """The night after the day, by its plan."""

    manifests: int
    forecast: Forecast


@dataclass(frozen=True, slots=True)
class Dollars:
    """US dollars of a day."""

    stream: float
    night: float
    other: float
    """Requests, ledger and functions (router/estimate/other_costs.py)."""
    total: float
    low: float
    """The total if S3 is read ``FAST`` times as fast as assumed."""
    high: float
    """The total at ``SLOW`` times the speed; both are ``total`` if the ledger has measured every dataset."""
    storage_month: float
    """Cost of keeping one day's output for a month."""


@dataclass(frozen=True, slots=True)
class OptionResult:
    routing: str
    """``all-stream``, ``all-batch`` or ``hybrid``."""
    changes: tuple[str, ...]
    stream: LaneResult
    urgent_p95: float | None
    batch: LaneResult
    spilled_files: int
    ignored_files: int
    peak_backlog_bytes: int
    """Maximum size of the open manifests of the stream lane."""
    peak_backlog_at: str | None
    """End of the window in which the maximum was reached; None if there was no backlog."""
    night: NightResult | None
    dollars: Dollars


class Basis(StrEnum):
    """How a value is known."""

    MEASURED = "measured"
    LISTED = "listed"
    ASSUMED = "assumed"
    SETTING = "setting"


@dataclass(frozen=True, slots=True)
class Assumption:
    name: str
    value: float
    unit: str
    basis: Basis
    source: str


@dataclass(frozen=True, slots=True)
class Simulation:
    """All options of one day, and their assumptions."""

    files: int
    bytes: int
    options: tuple[OptionResult, ...]
    assumptions: tuple[Assumption, ...]
    as_gzip: OptionResult | None = None
    """All files overnight, if their writers compress them; None if they do already, or that night ends too late."""
