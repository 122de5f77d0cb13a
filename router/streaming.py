"""The streaming job seen from outside: is it running, make it run."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from router.services import Services

LIVE_STATES = frozenset({"STARTING", "RUNNING", "STOPPING", "WAITING"})
HEARTBEAT_TRIGGERS = 6
"""A heartbeat is fresh for so many trigger intervals."""
MIN_HEARTBEAT = timedelta(minutes=1)


def ensure_running(services: Services) -> bool:
    """Make sure that a streaming run will see what is in the inbox; True when this call started one.

    MaxConcurrentRuns is 1, so a refused start means that one runs.
    """
    row = services.ledger.stream.get()
    if row.heartbeat_at is not None and not row.stop_requested:
        age = services.clock() - datetime.fromisoformat(row.heartbeat_at)
        interval = timedelta(seconds=services.settings.stream.trigger_seconds)
        if age < max(HEARTBEAT_TRIGGERS * interval, MIN_HEARTBEAT):
            return False
    return start_run(services)


def start_run(services: Services) -> bool:
    """StartJobRun; False when a run is there already."""
    try:
        services.glue.start_job_run(JobName=services.resources.stream_job)
    except services.glue.exceptions.ConcurrentRunsExceededException:
        return False
    return True


def live_runs(services: Services) -> list[str]:
    """Ids of the streaming job's runs that are not terminal."""
    runs = services.glue.get_job_runs(JobName=services.resources.stream_job, MaxResults=20)["JobRuns"]
    return [run["Id"] for run in runs if run["JobRunState"] in LIVE_STATES]
