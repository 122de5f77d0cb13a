"""The description of an engine, so that other code does not test for an engine's name.

Also the names of the engines, the units that they bill, a job run's bill, and worker types by Glue's names.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from lake.texts import printable

if TYPE_CHECKING:
    from lake.engines.emr_serverless import EmrLaunch
    from lake.ledger import StreamRow
    from lake.settings import Settings, StreamSettings


NO_REASON = "its reason is not known"
MAX_REASON_CHARACTERS = 500

HOUR_MILLISECONDS = 3_600_000
SUCCEEDED = "SUCCEEDED"
"""The only final state that is neither a failure nor a stop, by Glue's name."""
MAX_REASON = 1500
MICRO = 1_000_000
"""Dollars are kept as whole millionths, so that parts add up exactly to their sum."""


class StreamRuns(Protocol):
    """The runs of one streaming job. Each method raises botocore's errors."""

    def start(self, shard: str, row: StreamRow, now: datetime) -> str | None:
        """Start a run at ``now`` (aware) and return its id; None if one exists already.

        ``row`` is the shard's row as the caller has read it. Concurrent callers get the same run, even if the service
        does not list it yet. Raises ``TransientError`` if the job cannot start now.
        """

    def end_cause(self, row: StreamRow) -> str:
        """The reason why the last started run ended, as its service reports it."""

    def live(self) -> list[str]:
        """Ids of the runs that have not ended; a run holds its leases by this id."""

    def end(self, runs: Sequence[str]) -> None:
        """End these runs at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineDescription(ABC):
    """One engine: its workers, their prices, and its job runs through the API of its service."""

    name: Engine
    service: str
    """Name of the AWS service in boto3."""
    worker_types: tuple[str, ...]
    start_seconds: float
    """Assumed: from StartJobRun until the first task runs."""
    wait_seconds: float = 0.0
    """Assumed time that a run waits for capacity before it starts."""
    max_wait_seconds: float = 0.0
    """Time after which a run that waits for capacity fails; 0: the engine does not depend on spare capacity."""
    queues_runs: bool = False
    """Whether a run that finds no room waits in a queue; otherwise its start is refused."""
    run_prefix: str = ""
    """Prefix of the ids by which job runs hold leases."""
    reached_by_jobs: bool = True
    """Whether the machines of a job can certainly reach the service; a claim must not wait long for an answer."""

    @abstractmethod
    def worker(self, worker_type: str) -> Units:
        """The units of one worker."""

    def stream_driver(self, worker_type: str) -> Units:
        return self.worker(worker_type)

    @abstractmethod
    def min_stream_executors(self, stream: StreamSettings) -> int:
        """Number of executors of a streaming job that has nothing to convert."""

    @abstractmethod
    def prices(self, settings: Settings) -> Units:
        """Price of one hour of each unit, in US dollars."""

    def quota_units(self, worker_type: str) -> float:
        """What one worker takes of the account's quota: DPUs or vCPUs."""
        units = self.worker(worker_type)
        return units.dpu or units.vcpu

    @abstractmethod
    def room(self, settings: Settings, glue_dpus: float, glue_runs: int) -> tuple[float, int]:
        """Quota units and parallel job runs that a night may use; ``glue_*`` are what Glue's quotas leave."""

    @abstractmethod
    def own_run(self, arguments: Mapping[str, str], environment: Mapping[str, str]) -> str | None:
        """The id of the run whose driver has these arguments and this environment; None if it is on another engine."""

    @abstractmethod
    def has_ended(self, client: Any, jobs: Iterable[str], run: str) -> bool:  # noqa: ANN401
        """Whether a run of one of the jobs has ended or is being stopped: a night that is started again at once takes
        over its manifests. False if the service does not know the run. Raises botocore's errors.
        """

    @abstractmethod
    def bill(self, client: Any, job: str, run: str) -> Bill | None:  # noqa: ANN401
        """What a run of the job has used; None if it is unknown or has not ended. Raises botocore's errors."""

    @abstractmethod
    def end_run(self, client: Any, job: str, run: str) -> None:  # noqa: ANN401
        """End a run of the job at once. Raises botocore's errors."""

    @abstractmethod
    def stream_runs(self, client: Any, job: str, application: str, launch: EmrLaunch | None = None) -> StreamRuns:  # noqa: ANN401
        """The runs of a streaming job. ``application`` is the stack's output of this name; ``launch`` has what a start
        needs on an engine without job resources.
        """

    @abstractmethod
    def log_stream(self, stack: str, run: str, stream_application: str) -> tuple[str, str]:
        """Log group and log stream of the output of a run's driver."""


def end_reason(state: str, text: str | None) -> str:
    return f"{state}: {printable(text)[:MAX_REASON_CHARACTERS]}" if text else f"{state}, without a reason"


class Engine(StrEnum):
    """The engine of a job run; the plan index names one for each run of the batch lane."""

    GLUE_FLEX = "glue-flex"
    """Glue's job with the execution class FLEX: a run may wait for spare capacity."""
    GLUE = "glue"
    """Glue's job with the execution class STANDARD."""
    EMR_SERVERLESS = "emr-serverless"
    """An EMR Serverless application of the stack, which exists only if the settings allow this engine."""


@dataclass(frozen=True, slots=True)
class Units:
    """An amount of each unit that an engine bills; 0 for a unit that it does not bill.

    It can be the units of a worker, the price of one hour of each unit, or what a run has used.
    """

    dpu: float = 0.0
    vcpu: float = 0.0
    gb: float = 0.0

    def __add__(self, other: Units) -> Units:
        return Units(self.dpu + other.dpu, self.vcpu + other.vcpu, self.gb + other.gb)

    def times(self, number: float) -> Units:
        return Units(self.dpu * number, self.vcpu * number, self.gb * number)

    def at(self, prices: Units) -> float:
        """The price of these amounts in dollars, if ``prices`` are the dollars for one of each."""
        return self.dpu * prices.dpu + self.vcpu * prices.vcpu + self.gb * prices.gb


MIB = 1 << 20
GIB = 1 << 30
WORKERS = {"G.1X": 4, "G.2X": 8, "G.4X": 16, "G.8X": 32}
"""vCPUs of each worker type (AWS Glue, "Worker types"); each runs one task at a time. A G.025X has too little memory
for its tasks (docs/deploy.md, "Memory of a worker")."""
DPUS = {"G.1X": 1, "G.2X": 2, "G.4X": 4, "G.8X": 8}
"""DPUs of each worker type (the same page): what Glue bills, and counts for the account's quota."""
MAX_DPUS = 299
"""Maximum DPUs of a job run, including the driver's: AWS's pages named 299 workers of G.1X and 149 of G.2X, and no
number for other types."""
MAX_WORKERS = 299
"""Maximum number of workers of a job run with the smallest types."""
MEMORY_GIB = {"G.1X": 16, "G.2X": 32, "G.4X": 64, "G.8X": 128}
"""GiB of each worker type (AWS Glue, "Worker types")."""
X86, ARM = "x86_64", "arm64"
"""Processors of EMR Serverless."""


def max_workers(worker_type: str) -> int:
    """Maximum number of workers of a job run with this type."""
    return MAX_DPUS // DPUS[worker_type]


@dataclass(frozen=True, slots=True)
class Bill:
    id: str
    """The id by which the job run held its leases; for an interval of a streaming job with ``#`` and its start."""
    run: str | None
    """URI of the run document that the job run was started for; None if it had none."""
    engine: Engine
    started_at: str
    """ISO 8601, UTC, like ``ended_at``."""
    ended_at: str
    seconds: int
    dpu_milliseconds: int = 0
    """DPUs times milliseconds; 0 on an engine that does not bill DPUs. The next two: vCPUs, and GB of memory."""
    vcpu_milliseconds: int = 0
    gb_milliseconds: int = 0
    final: bool = True
    """False if the service does not have all figures yet; missing ones are estimated, or 0."""
    state: str = SUCCEEDED
    """Final state, by Glue's names: SUCCEEDED, FAILED, TIMEOUT, STOPPED, ...; empty for an interval."""
    reason: str = ""
    """Why it did not succeed, as the service reports it; at most ``MAX_REASON`` characters."""

    def priced(self, prices: Units) -> int:
        """The price in millionths of a dollar; ``prices`` are dollars for one hour of each unit."""
        used = Units(self.dpu_milliseconds, self.vcpu_milliseconds, self.gb_milliseconds)
        return round(used.at(prices) / HOUR_MILLISECONDS * MICRO)


def divide_by_weight(total: int, weights: Sequence[int]) -> list[int]:
    """``total`` in whole parts that are proportional to ``weights`` and add up to it; equal parts if all are 0."""
    if not any(weights):
        weights = [1] * len(weights)
    whole, parts, so_far, given = sum(weights), [], 0, 0
    for weight in weights:
        so_far += weight
        parts.append(total * so_far // whole - given)
        given += parts[-1]
    return parts


def reason_of(state: str, message: str | None) -> str:
    """Why a run in this state (by Glue's names) did not succeed; ``message`` is from its service. Empty if it did."""
    return "" if state == SUCCEEDED else (message or "")[:MAX_REASON]
