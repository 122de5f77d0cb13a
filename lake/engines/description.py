"""What an engine says about itself; the rest of the code asks it, and does not test for its name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

from lake.texts import printable

if TYPE_CHECKING:
    from lake.bills import Bill
    from lake.engines.emr_serverless import StreamLaunch
    from lake.engines.names import Engine
    from lake.engines.units import Units
    from lake.ledger import StreamRow
    from lake.settings import Settings, StreamSettings

NO_REASON = "its reason is not known"
MAX_REASON_CHARACTERS = 500


class StreamRuns(Protocol):
    """The runs of one streaming job. Each method raises botocore's errors."""

    def start(self, token: Callable[[timedelta], str]) -> str | None:
        """Start a run and return its id; None if one exists already.

        ``token`` returns the token of the start, the same one for callers within the given time: of starts with one
        token the first is made. Raises ``TransientError`` if the job cannot start now.
        """

    def why_ended(self, row: StreamRow) -> str:
        """The reason of the last run that was started, in the words of its service."""

    def live(self) -> list[str]:
        """Ids, by which they hold leases, of the runs that have not ended."""

    def end(self, runs: Sequence[str]) -> None:
        """End these runs at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineDescription(ABC):
    """One engine: its workers, their prices, and the job runs on it, by the API of the service that runs them."""

    name: Engine
    service: str
    """Name of the service of AWS, as boto3 has it."""
    worker_types: tuple[str, ...]
    """By the names of Glue."""
    start_seconds: float
    """Assumed: from StartJobRun until the first task runs."""
    wait_seconds: float = 0.0
    """Assumed time in which a run waits for capacity before it starts."""
    max_wait_seconds: float = 0.0
    """Time after which a run that waits for capacity fails; 0: the engine does not depend on spare capacity."""
    run_prefix: str = ""
    """Begins the ids by which its job runs hold leases."""
    reached_by_jobs: bool = True
    """Whether the machines of a job are certain to reach the service; a claim must not wait long for an answer."""

    @abstractmethod
    def worker(self, worker_type: str) -> Units:
        """The units of a worker."""

    def stream_driver(self, worker_type: str) -> Units:
        """The units of a streaming job's driver."""
        return self.worker(worker_type)

    @abstractmethod
    def min_stream_executors(self, stream: StreamSettings) -> int:
        """Executors of a streaming job that has nothing to convert."""

    @abstractmethod
    def prices(self, settings: Settings) -> Units:
        """Price of one hour of each unit, in US dollars."""

    @abstractmethod
    def quota_units(self, worker_type: str) -> float:
        """What a worker takes of the account's quota of the service."""

    @abstractmethod
    def own_run(self, arguments: Mapping[str, str], environment: Mapping[str, str]) -> str | None:
        """The id of the run whose driver has these arguments and this environment; None if it is not on this engine."""

    @abstractmethod
    def has_ended(self, client: Any, jobs: Iterable[str], run: str) -> bool:  # noqa: ANN401
        """Whether a run of one of the jobs has ended; False for an unknown one. Raises botocore's errors."""

    @abstractmethod
    def bill(self, client: Any, job: str, run: str) -> Bill | None:  # noqa: ANN401
        """What a run of the job has used; None for an unknown one, and until it has ended. Raises botocore's errors."""

    @abstractmethod
    def end_run(self, client: Any, job: str, run: str) -> None:  # noqa: ANN401
        """End a run of the job at once. Raises botocore's errors."""

    @abstractmethod
    def stream_runs(self, client: Any, job: str, shard: str, launch: StreamLaunch | None) -> StreamRuns:  # noqa: ANN401
        """The runs of the streaming job of a shard; ``launch`` is what a start needs where the job is no resource."""

    @abstractmethod
    def live_stream_runs(self, client: Any, job: str, application: str) -> list[str]:  # noqa: ANN401
        """Ids of the live runs of a streaming job; ``application`` is the stack's output of that name."""

    @abstractmethod
    def log_stream(self, stack: str, run: str, stream_application: str) -> tuple[str, str]:
        """Log group and log stream of what the driver of a run prints; ``stack`` is the name of the stack."""


def end_reason(state: str, text: str | None) -> str:
    """Why a run has ended: its state, and the text of its service."""
    return f"{state}: {printable(text)[:MAX_REASON_CHARACTERS]}" if text else f"{state}, without a reason"
