"""Whether the job run that owns a manifest is over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from lake.manifest import Lane
from router.streaming import TERMINAL_STATES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lake.ledger import ManifestRow
    from router.services import Services


def release_dead(services: Services, rows: Iterable[ManifestRow]) -> list[ManifestRow]:
    """Put RUNNING manifests back to QUEUED whose lease has expired or whose owner run is over.

    ``rows`` are consistent reads of RUNNING manifests; returns those that are no longer held by a live run.
    """
    over: dict[str, bool] = {}
    released = []
    for row in rows:
        now = services.clock()
        if row.lease_until <= now.timestamp() * 1000:
            reason = f"the lease of run {row.owner} has expired"
        elif row.owner is not None and _is_over(services, row, over):
            reason = f"run {row.owner} has ended without finishing it"
        else:
            continue
        if services.ledger.manifests.release(row, reason, now):
            released.append(row)
    return released


def _is_over(services: Services, row: ManifestRow, over: dict[str, bool]) -> bool:
    """Whether Glue says so; a run it does not know may live elsewhere, then only the lease counts."""
    owner = str(row.owner)
    if owner not in over:
        job = services.resources.stream_job if row.lane == Lane.STREAM else services.resources.batch_job
        state: str
        try:
            state = services.glue.get_job_run(JobName=job, RunId=owner)["JobRun"]["JobRunState"]
        except ClientError as error:
            if error.response["Error"]["Code"] not in ("EntityNotFoundException", "InvalidInputException"):
                raise
            state = "UNKNOWN"
        over[owner] = state in TERMINAL_STATES
    return over[owner]
