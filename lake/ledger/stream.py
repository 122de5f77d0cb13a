"""Rows of the stream lane, one for each shard: its health, and the requests to it.

Also rows of canaries. They are not manifests, but a canary is claimed once, with the fence of a manifest's row.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from lake.documents import decode_partial
from lake.ledger.arrivals import EXPIRY
from lake.ledger.manifest_row import State
from lake.ledger.table import Key, LedgerTable, Rows, same
from lake.shards import FIRST_SHARD
from lake.time import iso_utc

START_ATTRIBUTES = ("starts", "started_run", "started_at", "start_failure")
"""Attributes of starts without a heartbeat yet; a heartbeat removes them."""


@dataclass(frozen=True, slots=True)
class StreamRow:
    """Health of one shard of the stream lane, as reported by its job and by ``stream_control``."""

    run: str | None = None
    """Job run id of the last heartbeat."""
    heartbeat_at: str | None = None
    """ISO 8601, UTC; None after the last run reported its end."""
    stop_requested: bool = False
    """Whether the run should end between two micro-batches."""
    spilling: bool = False
    """Whether non-urgent peak files were sent to the batch lane, and the backlog has not become short since."""
    window_until: str | None = None
    """ISO 8601, UTC: end of the last stream window."""
    micro_batch_since: str | None = None
    """ISO 8601, UTC: start of the oldest micro-batch that ``run`` converts; None while it waits for pointers."""
    starts: int = 0
    """Number of runs started since the last heartbeat of any run."""
    started_run: str | None = None
    """The last started run, by its id in its service."""
    started_at: str | None = None
    """ISO 8601, UTC: start of this run."""
    start_failure: str | None = None
    """Why this run ended, set after too many failed starts."""
    backlog_milliseconds: int = 0
    """Work that waited at ``backlog_at``, in milliseconds of one core: the measured work and later admissions."""
    backlog_at: str | None = None
    """ISO 8601, UTC; None before the first measurement or admission."""
    ended_runs: tuple[str, ...] = ()
    """The runs that were last ended at once. Their heartbeats do not count; they continue until the service ends the
    runs."""

    @property
    def has_ended(self) -> bool:
        """Whether the run of the last heartbeat reported its end or was ended."""
        return self.heartbeat_at is None or self.run in self.ended_runs


class Stream(Rows):
    def __init__(self, table: LedgerTable, shard: str = FIRST_SHARD) -> None:
        super().__init__(table)
        self._key = Key("stream", "stream" if shard == FIRST_SHARD else f"stream-{shard}")
        self.shard = shard

    def of(self, shard: str) -> "Stream":
        return Stream(self._table, shard)

    def get(self) -> StreamRow:
        """The row by a strongly consistent read; default values before the first write."""
        return decode_partial(StreamRow(), self._table.get(self._key))

    def count_start(self, row: StreamRow, run: str, now: datetime) -> None:
        """Count a run, started at ``now`` (aware), that has no heartbeat yet. A repeated call counts it once.

        ``row`` was read before the start.
        """
        if row.started_run == run:
            return
        starting = {"starts": row.starts + 1, "started_run": run, "started_at": iso_utc(now)}
        # The write is refused if another caller has counted this run or another one.
        known = same(started_run=row.started_run)
        self._table.update(self._key, assign=starting, remove=("start_failure",), conditions=known)

    def record_start_failure(self, row: StreamRow, reason: str) -> None:
        started = same(started_run=row.started_run)
        self._table.update(self._key, assign={"start_failure": reason}, conditions=started)

    def forget_starts(self) -> None:
        """Reset the count of starts. The last started run stays recorded, because it may be alive."""
        self._table.update(self._key, remove=("starts", "start_failure"))

    def begin_run(self, run: str, now: datetime) -> None:
        """Record that a run has begun. It clears an earlier run's micro-batch and stop request; a function that wants
        this run to stop repeats its request until the run has ended.
        """
        beginning = {"run": run, "heartbeat_at": iso_utc(now), "stop_requested": False}
        self._table.update(self._key, assign=beginning, remove=("micro_batch_since", *START_ATTRIBUTES))

    def record_heartbeat(self, run: str, now: datetime, micro_batch_since: datetime | None = None) -> None:
        """Record that the run is alive at ``now`` (aware), and the start of its oldest open micro-batch."""
        alive = {"run": run, "heartbeat_at": iso_utc(now)}
        if micro_batch_since is None:
            self._table.update(self._key, assign=alive, remove=("micro_batch_since", *START_ATTRIBUTES))
        else:
            changes = {**alive, "micro_batch_since": iso_utc(micro_batch_since)}
            self._table.update(self._key, assign=changes, remove=START_ATTRIBUTES)

    def end(self) -> None:
        """Record that the run is about to end: the next process with work for the stream starts another run."""
        self._table.update(self._key, remove=("heartbeat_at",))

    def end_at_once(self, runs: Sequence[str]) -> None:
        """Record that the service has ended these runs, or is about to."""
        self._table.update(self._key, assign={"ended_runs": list(runs)})

    def open_window(self, until: str) -> None:
        """Open a stream window until ``until`` (ISO 8601, UTC), and clear the stop flag."""
        self._table.update(self._key, assign={"window_until": until, "stop_requested": False})

    def request_stop(self, requested: bool) -> None:
        self._table.update(self._key, assign={"stop_requested": requested})

    def set_backlog(self, core_milliseconds: int, now: datetime, *, spilling: bool) -> None:
        """Set the backlog measured at ``now`` (aware); it replaces all earlier admissions."""
        self._table.update(self._key, assign=_backlog(core_milliseconds, now, spilling))

    def admit(self, row: StreamRow, core_milliseconds: int, now: datetime, *, spilling: bool) -> bool:
        """Set the backlog to ``core_milliseconds`` at ``now`` (aware), after files were admitted.

        False: the backlog was measured, or other files were admitted, since ``row`` was read.
        """
        backlog, unchanged = _backlog(core_milliseconds, now, spilling), same(backlog_at=row.backlog_at)
        return self._table.update_once(self._key, backlog, (), unchanged)


def _backlog(core_milliseconds: int, now: datetime, spilling: bool) -> dict[str, object]:
    return {"backlog_milliseconds": core_milliseconds, "backlog_at": iso_utc(now), "spilling": spilling}


CANARY = "canary"


class Canaries(Rows):
    """Rows of canaries. All methods raise botocore's errors."""

    def create(self, run: str, now: datetime, kept: timedelta) -> None:
        """Create the row of a run. DynamoDB deletes it ``kept`` after ``now`` unless it is removed earlier."""
        row = {"state": State.QUEUED, "generation": 1, "attempt": 0, EXPIRY: int((now + kept).timestamp())}
        self._table.put(Key(CANARY, run), row, ())

    def claim(self, run: str, owner: str) -> bool:
        """QUEUED to RUNNING. False: it was claimed before."""
        changes = {"state": State.RUNNING, "attempt": 1, "owner": owner}
        return self._table.update_once(Key(CANARY, run), changes, (), same(state=State.QUEUED, generation=1, attempt=0))

    def owner(self, run: str) -> str | None:
        """The job run that claimed the row, by a strongly consistent read; None if none has."""
        return (self._table.get(Key(CANARY, run)) or {}).get("owner")

    def remove(self, may_remove: Callable[[str], bool]) -> None:
        """Delete the rows of all runs for which ``may_remove`` is true. Idempotent."""
        for item in self._table.query(CANARY):
            if may_remove(item["sk"]):
                self._table.delete(Key(CANARY, item["sk"]))
