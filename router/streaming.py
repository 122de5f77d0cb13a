"""The streaming jobs as the control plane sees them: whether each runs, and how it is started."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from lake.errors import TransientError
from router.stream_engines import stream_engine
from router.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lake.ledger.stream import StreamRow
    from router.services import Services

HEARTBEAT_TRIGGERS = 6
"""A heartbeat is valid for this number of trigger intervals ..."""
MIN_HEARTBEAT_AGE = timedelta(minutes=1)
"""... but for at least this time."""


def ensure_running(services: Services, shard: str) -> bool:
    """Make sure that a streaming run will see what is in the inbox of a shard; True when this call started one.

    Raises
    ------
    TransientError
        The account's quota of Glue's job runs or DPUs has no room, or EMR Serverless cannot start it now.
    BotoCoreError, ClientError
        Glue, EMR Serverless or DynamoDB refused a request or did not answer.
    """
    row = services.ledger.stream.of(shard).get()
    if not row.stop_requested and has_valid_heartbeat(services, row):
        return False
    if not start_run(services, shard):
        return False
    logger.info("streaming run started", shard=shard)
    return True


def ensure_all_running(services: Services, shards: Iterable[str]) -> None:
    """``ensure_running`` for each shard; raises the first error after all of them."""
    errors: list[Exception] = []
    for shard in shards:
        try:
            ensure_running(services, shard)
        except (BotoCoreError, ClientError, TransientError) as error:
            logger.warning("streaming run not started", shard=shard, error=str(error))
            errors.append(error)
    if errors:
        raise errors[0]


def read_spilling(services: Services) -> frozenset[str]:
    """Shards whose peak files go to the batch lane."""
    stream, shards = services.ledger.stream, services.settings.shards.names
    return frozenset(shard for shard in shards if stream.of(shard).get().spilling)


def has_valid_heartbeat(services: Services, row: StreamRow) -> bool:
    """Whether the run of the row reported a short time ago that it is alive, and has not reported its end."""
    if row.heartbeat_at is None:
        return False
    age = services.clock() - datetime.fromisoformat(row.heartbeat_at)
    interval = timedelta(seconds=services.settings.stream.trigger_seconds)
    return age < max(HEARTBEAT_TRIGGERS * interval, MIN_HEARTBEAT_AGE)


def start_run(services: Services, shard: str) -> bool:
    """Start a streaming run of a shard; False when one exists already. Raises what ``ensure_running`` raises."""
    return stream_engine(services).start(shard)


def live_runs(services: Services, shard: str) -> list[str]:
    """Ids of the runs of a shard's streaming job that have not ended."""
    return stream_engine(services).live_runs(shard)


def end_runs(services: Services, shard: str, runs: Sequence[str]) -> None:
    """End these runs of a shard's streaming job at once."""
    stream_engine(services).end(shard, runs)
