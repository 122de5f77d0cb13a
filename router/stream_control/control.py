"""The actions on the streaming run, inside its window and at its end; each is idempotent."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from lake.errors import TransientError
from lake.ledger import State
from lake.manifest import Lane
from lake.time import iso_utc, next_local_time
from router.stream_control.spill import is_spilling, read_core_seconds
from router.streaming import has_valid_heartbeat, live_runs, start_run
from router.telemetry import logger

if TYPE_CHECKING:
    from lake.ledger import ManifestRow
    from lake.ledger.stream import StreamRow
    from router.services import Services


def start(services: Services) -> dict[str, Any]:
    """Open a window until the next ``schedule.stream_end`` and make sure that a run exists, if quotas have room for it.

    Without room the window is open all the same: ``watch`` tries again, and raises what keeps the run from starting.
    """
    settings = services.settings
    until = next_local_time(settings.schedule.stream_end, settings.time_zone, services.clock())
    services.ledger.stream.open_window(iso_utc(until))
    return _status(services, running=_start_if_possible(services))


def watch(services: Services) -> dict[str, Any]:
    """Measure the backlog, set or clear spilling, and start a run when one is needed and none exists."""
    queued = _open_manifests(services, State.QUEUED)
    backlog = [*queued, *_open_manifests(services, State.RUNNING)]
    row = services.ledger.stream.get()
    spilling = is_spilling(services.settings.stream, read_core_seconds(services, backlog), row.spilling)
    if spilling != row.spilling:
        services.ledger.stream.set_spilling(spilling)
    running = bool(live_runs(services))
    if not running and (queued or not _window_is_over(services)):
        services.ledger.stream.request_stop(False)
        start_run(services)
        running = True
    return {
        **_status(services, running=running),
        "backlogBytes": sum(manifest.bytes for manifest in backlog),
        "spilling": spilling,
        "microBatchMinutes": _micro_batch_minutes(services, row),
    }


def stop(services: Services) -> dict[str, Any]:
    """Request the run to end between two micro-batches; ``stopped`` once no run exists.

    Then the request is cleared, or the next run would end at once. Manifests that are still queued get a new run, which
    ends when it has been idle; the sweep starts it if quotas have no room now.
    """
    if live_runs(services):
        services.ledger.stream.request_stop(True)
        return _status(services, running=True)
    services.ledger.stream.request_stop(False)
    running = bool(_open_manifests(services, State.QUEUED)) and _start_if_possible(services)
    return {**_status(services, running=running), "stopped": True}


def kill(services: Services) -> dict[str, Any]:
    """End runs that did not stop in time; their manifests are converted again once their leases are released."""
    runs = live_runs(services)
    if runs:
        services.glue.batch_stop_job_run(JobName=services.resources.stream_job, JobRunIds=runs)
    services.ledger.stream.request_stop(False)
    return {**_status(services, running=False), "killed": len(runs)}


def _start_if_possible(services: Services) -> bool:
    """Whether a run exists now: not if the account's quotas have no room for it."""
    try:
        start_run(services)
    except TransientError as error:
        logger.warning("streaming run not started: it is tried again", error=str(error))
        return False
    return True


def _open_manifests(services: Services, state: State) -> list[ManifestRow]:
    """Of the stream lane, from the index."""
    return list(services.ledger.manifests.open(Lane.STREAM, state))


def _micro_batch_minutes(services: Services, row: StreamRow) -> float:
    """How long the current micro-batch of a live run has taken until now; 0: there is none."""
    if row.micro_batch_since is None or not has_valid_heartbeat(services, row):
        return 0
    return (services.clock() - datetime.fromisoformat(row.micro_batch_since)) / timedelta(minutes=1)


def _window_is_over(services: Services) -> bool:
    until = services.ledger.stream.get().window_until
    return until is None or datetime.fromisoformat(until) <= services.clock()


def _status(services: Services, *, running: bool) -> dict[str, Any]:
    return {"running": running, "windowOver": _window_is_over(services), "stopped": not running}
