"""The streaming jobs in the control plane: whether each runs, and how it is started."""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta

from botocore.exceptions import BotoCoreError, ClientError

from lake.engines import ENGINES, StreamRuns
from lake.errors import TransientError
from lake.ledger.stream import StreamRow
from lake.time import iso_utc
from router.services import Services, in_parallel
from router.telemetry import logger

MAX_HEARTBEAT_AGE = timedelta(minutes=1)
"""Time for which a heartbeat is valid; a run records one every ``lake.settings.lanes.MAX_LOOK_SECONDS``."""
MAX_SILENT_STARTS = 3
"""Number of starts without a heartbeat after which callers get the reason of the last run's end as an error."""
MAX_STARTS = 8
"""Number of starts (in an hour and a half) after which only a person can start a run: each run is billed for at least a
minute of two workers."""
FIRST_PAUSE = timedelta(minutes=1)
MAX_PAUSE = timedelta(minutes=30)


class FailedStartsError(TransientError):
    """The streaming job ended several times in succession before it began to work, so it is not started now."""

    def __init__(self, job: str, starts: int, reason: str, due: datetime | None) -> None:
        then = "no other run starts automatically" if due is None else f"the next one starts at {iso_utc(due)}"
        super().__init__(
            f"{starts} consecutive runs of the streaming job {job} ended before they began to work, the last "
            f"one with {reason}; {then}: remove the cause, then run 'hybrid-router stream start'"
        )


def ensure_running(services: Services, shard: str) -> bool:
    """Ensure that a streaming run will see the current pointers of a shard's inbox. True if this call started one.

    Raises ``TransientError`` if the engine cannot start a run now, because the quotas have no room or the last run is
    ending, or if the last runs ended before they began to work; ``BotoCoreError`` or ``ClientError`` if the engine or
    DynamoDB refused a request or did not answer.
    """
    row = services.ledger.stream.of(shard).get()
    if not row.stop_requested and has_valid_heartbeat(services, row):
        return False
    return start_run(services, shard, row)


def ensure_all_running(services: Services, shards: Collection[str]) -> dict[str, Exception]:
    """``ensure_running`` for all shards in parallel, so that an engine without an answer is awaited only once. Returns
    the errors by shard.
    """

    def ensure(shard: str) -> Exception | None:
        try:
            ensure_running(services, shard)
        except (BotoCoreError, ClientError, TransientError) as error:
            logger.warning("streaming run not started", shard=shard, error=str(error))
            return error
        return None

    errors = zip(shards, in_parallel(ensure, shards), strict=True)
    return {shard: error for shard, error in errors if error is not None}


def has_valid_heartbeat(services: Services, row: StreamRow) -> bool:
    """Whether the row's run reported recently that it is alive, and has not ended since."""
    if row.heartbeat_at is None or row.has_ended:
        return False
    return services.clock() - datetime.fromisoformat(row.heartbeat_at) < MAX_HEARTBEAT_AGE


def start_run(services: Services, shard: str, row: StreamRow | None = None) -> bool:
    """Start a streaming run of a shard. False if one exists, or if it is too early after failed starts.

    ``row`` is the shard's row if the caller has just read it. Raises the errors of ``ensure_running``, including
    ``FailedStartsError``.
    """
    stream, runs, now = services.ledger.stream.of(shard), stream_runs(services, shard), services.clock()
    row = row or stream.get()
    due = next_start(row)
    if row.starts and (due is None or now < due):
        if row.starts < MAX_SILENT_STARTS or runs.live():
            return False
        reason = row.start_failure or runs.end_cause(row)
        if row.start_failure is None:
            stream.record_start_failure(row, reason)
        raise FailedStartsError(services.resources.stream_job_of(shard), row.starts, reason, due)
    run = runs.start(services.stream_launch, shard, lambda settles: stream.begin_start(services.clock(), settles))
    if run is None:
        # Another caller may have started it since the row was read.
        row = stream.get()
        if row.run is not None and row.has_ended and row.run in runs.live():
            # It has reported its end, but its engine has not ended it yet: no run sees new pointers now.
            raise TransientError(
                f"the last run of the streaming job {services.resources.stream_job_of(shard)} is ending: run "
                "'hybrid-router stream start' in a minute, or the sweep starts the next one"
            )
        return False
    stream.count_start(row, run, now)
    logger.info("streaming run started", shard=shard)
    return True


def next_start(row: StreamRow) -> datetime | None:
    """Time at which the next run may be started; None if only a person's command may start it. Pure."""
    if row.starts >= MAX_STARTS:
        return None
    started = datetime.fromisoformat(row.started_at) if row.started_at else datetime.min.replace(tzinfo=UTC)
    return started + min(FIRST_PAUSE * (1 << max(row.starts - 1, 0)), MAX_PAUSE)


def stream_runs(services: Services, shard: str) -> StreamRuns:
    """The runs of a shard's streaming job."""
    engine, launch = ENGINES[services.settings.stream.engine], services.stream_launch
    job, application = services.resources.stream_job_of(shard), launch.application if launch else ""
    return engine.stream_runs(services.job_clients[engine.service], job, application)
