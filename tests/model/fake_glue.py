# ruff: noqa: N803 (the names are boto3's)
"""Glue's job runs, which are the actors: terminal once the actor ends, or once Glue reports it as stopped."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tests.unit.router.glue import glue_client

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.model.world import World

STREAM_ACTOR = "stream"
USED = {
    "StartedOn": datetime(2026, 11, 20, 22, tzinfo=UTC),
    "CompletedOn": datetime(2026, 11, 20, 23, tzinfo=UTC),
    "ExecutionTime": 3600,
    "DPUSeconds": 7201.5,
}
"""What every job run of an execution has used."""


class FakeGlue:
    """The calls that the product makes. A started run is an actor that the history has anyway."""

    def __init__(self, world: World) -> None:
        self.exceptions = glue_client().exceptions
        self._world = world

    def get_job_run(self, *, JobName: str, RunId: str) -> dict[str, Any]:
        return {"JobRun": self._run(RunId)}

    def get_job_runs(self, *, JobName: str, MaxResults: int) -> dict[str, Any]:
        actors = {} if self._world.scheduler is None else self._world.scheduler.actors
        return {"JobRuns": [self._run(name) for name in actors if name.rstrip("0123456789") == STREAM_ACTOR]}

    def start_job_run(self, *, JobName: str) -> dict[str, str]:
        return {"JobRunId": "started"}

    def batch_stop_job_run(self, *, JobName: str, JobRunIds: Sequence[str]) -> dict[str, Any]:
        """The runs count as stopped from now on, and go on as zombies."""
        self._world.stopped_runs.update(JobRunIds)
        return {}

    def _run(self, run: str) -> dict[str, Any]:
        if not self._world.run_is_terminal(run):
            return {"Id": run, "JobRunState": "RUNNING"}
        ended = {"Id": run, "JobRunState": "STOPPED"}
        document = self._world.run_documents.get(run)
        return ended if document is None else {**ended, **USED, "Arguments": {"--run": document}}
