"""The rows of the stream lane, one for each shard: its health, and what it was asked to do.

Rows of canaries: each is claimed once, fenced as the row of a manifest, and is not a manifest.
"""

import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from lake.documents import decode_partial
from lake.ledger.arrivals import EXPIRY
from lake.ledger.manifest_row import State
from lake.ledger.table import Key, LedgerTable, RefusedError, Rows, same
from lake.shards import FIRST_SHARD
from lake.time import iso_utc

START_ATTRIBUTES = ("starts", "started_run", "started_at", "start_failure")
"""A heartbeat removes them."""


@dataclass(frozen=True, slots=True)
class StreamRow:
    """Health of one shard of the stream lane, as its job and ``stream_control`` report it."""

    run: str | None = None
    """Job run id of the last heartbeat."""
    heartbeat_at: str | None = None
    """ISO 8601, UTC; None: the last run reported that it ends."""
    stop_requested: bool = False
    """The run is to end between two micro-batches."""
    spilling: bool = False
    """Peak files that are not urgent have gone to the batch lane, and the backlog has not become short since."""
    window_until: str | None = None
    """ISO 8601, UTC: end of the last stream window that was opened."""
    micro_batch_since: str | None = None
    """ISO 8601, UTC: begin of the oldest micro-batch that ``run`` converts; None: it waits for pointers."""
    starts: int = 0
    """Number of runs that were started since one of them recorded a heartbeat."""
    started_run: str | None = None
    """The last one of them: its id in the service that runs it."""
    started_at: str | None = None
    """ISO 8601, UTC: when it was started."""
    start_failure: str | None = None
    """Why it ended, if the starts have failed too often."""
    backlog_milliseconds: int = 0
    """Work for one core that waited at ``backlog_at``: as measured, and with what was admitted since."""
    backlog_at: str | None = None
    """ISO 8601, UTC; None: nothing was measured or admitted yet."""
    ended_runs: tuple[str, ...] = ()
    """The runs that were last ended at once. Their heartbeats, which go on until the service has ended them, do not
    count."""

    @property
    def has_ended(self) -> bool:
        """Whether the run of the last heartbeat has reported its end, or was ended."""
        return self.heartbeat_at is None or self.run in self.ended_runs


class Stream(Rows):
    def __init__(self, table: LedgerTable, shard: str = FIRST_SHARD) -> None:
        super().__init__(table)
        self._key = Key("stream", "stream" if shard == FIRST_SHARD else f"stream-{shard}")
        self.shard = shard

    def of(self, shard: str) -> "Stream":
        return Stream(self._table, shard)

    def get(self) -> StreamRow:
        """The row by a strongly consistent read; its defaults before the first write."""
        return decode_partial(StreamRow(), self._table.get(self._key))

    def begin_start(self, now: datetime, settles: timedelta) -> str:
        """The client token by which a run is to be started at ``now`` (aware).

        It is that of a start which another caller has begun less than ``settles`` ago, so that both start one run, or a
        new one. Of several callers that make a new one at the same time, one wins, and all get that one.
        """
        while True:
            item = self._table.get(self._key) or {}
            known = item.get("start_token")
            if known is not None and now - datetime.fromisoformat(item["start_at"]) < settles:
                return str(known)
            token = uuid.uuid4().hex
            beginning = {"start_token": token, "start_at": iso_utc(now)}
            try:
                self._table.update(self._key, assign=beginning, conditions=same(start_token=known))
            except RefusedError:
                continue
            return token

    def count_start(self, row: StreamRow, run: str, now: datetime) -> None:
        """The run was started at ``now`` (aware), and has not recorded a heartbeat yet; a repeated call counts once.

        ``row`` was read before the start.
        """
        if row.started_run == run:
            return
        starting = {"starts": row.starts + 1, "started_run": run, "started_at": iso_utc(now)}
        # Another caller has counted another run, or this one.
        with suppress(RefusedError):
            known = same(started_run=row.started_run)
            self._table.update(self._key, assign=starting, remove=("start_failure",), conditions=known)

    def record_start_failure(self, row: StreamRow, reason: str) -> None:
        with suppress(RefusedError):
            started = same(started_run=row.started_run)
            self._table.update(self._key, assign={"start_failure": reason}, conditions=started)

    def forget_starts(self) -> None:
        """Starts count from 0 again. Which run was started last stays known: it may be alive."""
        self._table.update(self._key, remove=("starts", "start_failure"))

    def begin_run(self, run: str, now: datetime) -> None:
        """The run has begun. The micro-batch of an earlier run, and the request to stop it, are not its own: a
        function that wants this one to stop asks until it has ended. The client token has done its work: the next start
        gets another one.
        """
        beginning = {"run": run, "heartbeat_at": iso_utc(now), "stop_requested": False}
        self._table.update(
            self._key, assign=beginning, remove=("micro_batch_since", "start_token", "start_at", *START_ATTRIBUTES)
        )

    def record_heartbeat(self, run: str, now: datetime, micro_batch_since: datetime | None = None) -> None:
        """The run is alive at ``now`` (aware), and its oldest open micro-batch has begun at ``micro_batch_since``."""
        alive = {"run": run, "heartbeat_at": iso_utc(now)}
        if micro_batch_since is None:
            self._table.update(self._key, assign=alive, remove=("micro_batch_since", *START_ATTRIBUTES))
        else:
            changes = {**alive, "micro_batch_since": iso_utc(micro_batch_since)}
            self._table.update(self._key, assign=changes, remove=START_ATTRIBUTES)

    def end(self) -> None:
        """The run is about to end: from now on, the next process with work for the stream starts another run."""
        self._table.update(self._key, remove=("heartbeat_at",))

    def end_at_once(self, runs: Sequence[str]) -> None:
        """These runs were ended by their service, or will be in a moment."""
        self._table.update(self._key, assign={"ended_runs": list(runs)})

    def open_window(self, until: str) -> None:
        """Open a stream window until ``until`` (ISO 8601, UTC), and clear the stop flag."""
        self._table.update(self._key, assign={"window_until": until, "stop_requested": False})

    def request_stop(self, requested: bool) -> None:
        self._table.update(self._key, assign={"stop_requested": requested})

    def set_backlog(self, core_milliseconds: int, now: datetime, *, spilling: bool) -> None:
        """What was measured at ``now`` (aware) takes the place of what was admitted until then."""
        self._table.update(self._key, assign=_backlog(core_milliseconds, now, spilling))

    def admit(self, row: StreamRow, core_milliseconds: int, now: datetime, *, spilling: bool) -> bool:
        """Files were admitted: the backlog is ``core_milliseconds`` at ``now`` (aware).

        False: it was measured, or others were admitted, since ``row`` was read.
        """
        backlog, unchanged = _backlog(core_milliseconds, now, spilling), same(backlog_at=row.backlog_at)
        return self._table.update_once(self._key, backlog, (), unchanged)


def _backlog(core_milliseconds: int, now: datetime, spilling: bool) -> dict[str, object]:
    return {"backlog_milliseconds": core_milliseconds, "backlog_at": iso_utc(now), "spilling": spilling}


CANARY = "canary"


class Canaries(Rows):
    """Every method raises botocore's errors."""

    def create(self, run: str, now: datetime, kept: timedelta) -> None:
        """DynamoDB deletes the row ``kept`` after ``now`` if nothing deletes it before."""
        row = {"state": State.QUEUED, "generation": 1, "attempt": 0, EXPIRY: int((now + kept).timestamp())}
        self._table.put(Key(CANARY, run), row, ())

    def claim(self, run: str, owner: str) -> bool:
        """QUEUED to RUNNING; False: it was claimed before."""
        changes = {"state": State.RUNNING, "attempt": 1, "owner": owner}
        return self._table.update_once(Key(CANARY, run), changes, (), same(state=State.QUEUED, generation=1, attempt=0))

    def owner(self, run: str) -> str | None:
        """Who has claimed the row, by a strongly consistent read."""
        return (self._table.get(Key(CANARY, run)) or {}).get("owner")

    def remove(self, may_remove: Callable[[str], bool]) -> None:
        """Delete the rows of the runs that may be removed; idempotent."""
        for item in self._table.query(CANARY):
            if may_remove(item["sk"]):
                self._table.delete(Key(CANARY, item["sk"]))
