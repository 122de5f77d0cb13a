"""What makes the jobs use their permissions; the log of the run tells."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from lake.manifest import Lane
from tests.e2e.removed_permission import logs
from tests.e2e.waiting import wait_for

if TYPE_CHECKING:
    from lake.manifest import ObjectVersion
    from tests.e2e.removals.stage import Stage

ENDED = frozenset({"SUCCEEDED", "FAILED", "STOPPED", "TIMEOUT", "ERROR"})


def _log_of_run(stage: Stage, job: str, **arguments: str) -> str:
    """Run a job without the permission; the text of its log."""
    glue = stage.scenario.deployment.glue
    with stage.lacking():
        given = {f"--{name}": value for name, value in arguments.items()}
        run = glue.start_job_run(JobName=job, Arguments=given)["JobRunId"]

        def ended() -> bool:
            return state()["JobRunState"] in ENDED

        def state() -> dict[str, Any]:
            answer: dict[str, Any] = glue.get_job_run(JobName=job, RunId=run)["JobRun"]
            return answer

        def told() -> str:
            # A run whose code cannot be read has no log: its own error message tells.
            error = f"its error: {state().get('ErrorMessage')}" if ended() else ""
            text = logs(stage.scenario.cloud.logs_dir, f"*/{run}.log")
            return f"{text}\n{error}" if error or stage.told(text) else ""

        text = wait_for(f"the end of {run}", told)
        if not ended():
            glue.batch_stop_job_run(JobName=job, JobRunIds=[run])
            wait_for(f"the end of {run}", ended)
    return text


def _night(stage: Stage, *manifests: str) -> str:
    return _log_of_run(stage, stage.scenario.deployment.resources.batch_job, run=stage.run_document(*manifests))


def a_run(stage: Stage) -> str:
    return _night(stage, stage.manifest(stage.put_silently()).id)


def a_run_without_its_code(stage: Stage) -> str:
    """Glue reads the code of a job with the job's role; the local cloud has the sentence that CloudTrail would have."""
    a_run(stage)
    return stage.wait_until_logged("emulator.log")


def a_run_of_a_held_manifest(stage: Stage) -> str:
    row = stage.manifest(stage.put_silently())
    stage.claimed(row)
    return _night(stage, row.id)


def a_run_that_halves(stage: Stage) -> str:
    file = stage.put_silently()
    row = stage.manifest(file, stage.sibling(file))
    stage.set_attributes(f"manifest#{row.id}", "manifest", attempt=99)
    return _night(stage, row.id)


def a_run_that_publishes(stage: Stage) -> str:
    """What an earlier run has committed."""
    return _night(stage, stage.publishing(stage.manifest(stage.put_silently())).id)


def a_run_of_a_damaged_commit(stage: Stage) -> str:
    row = stage.publishing(stage.manifest())
    assert row.document is not None
    deployment = stage.scenario.deployment
    deployment.s3.put_object(Bucket=deployment.resources.control_bucket, Key=row.document.key, Body=b"damaged")
    return _night(stage, row.id)


def a_run_of_a_missing_file(stage: Stage) -> str:
    file: ObjectVersion = stage.new_file(version=None)
    return _night(stage, stage.manifest(file, stage.put_silently()).id)


def a_stream(stage: Stage) -> str:
    stage.manifest(stage.put_silently(), lane=Lane.STREAM)
    return _log_of_run(stage, stage.scenario.deployment.resources.stream_job)


def a_verification(stage: Stage) -> str:
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    return _log_of_run(stage, stage.scenario.deployment.resources.batch_job, verify=today)
