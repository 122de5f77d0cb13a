"""What makes the jobs use their permissions; the log of the run tells."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lake.layout import pointer_key
from lake.manifest import Lane
from tests.e2e.removals.job_runs import EMR_ROLE, EmrRun, GlueRun
from tests.e2e.removed_permission import logs
from tests.e2e.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from lake.manifest import ObjectVersion
    from tests.e2e.removals.stage import Stage


def _log_of_run(stage: Stage, start: Callable[[], GlueRun | EmrRun]) -> str:
    """Run a job without the permission; the text of its log."""
    with stage.lacking():
        run = start()

        def told() -> str:
            # A run whose code cannot be read has no log: its own error message tells.
            error = run.ended()
            text = logs(stage.scenario.cloud.logs_dir, f"*/{run.id}.log")
            return f"{text}\nits error: {error}" if error is not None or stage.told(text) else ""

        text = wait_for(f"the end of {run.id}", told)
        if run.ended() is None:
            run.stop()
            wait_for(f"the end of {run.id}", lambda: run.ended() is not None)
    return text


def a_night(stage: Stage, *manifests: str) -> str:
    """A run of the batch lane with these manifests, on the engine of the role."""
    arguments = {"--run": stage.run_document(*manifests)}
    if stage.role == EMR_ROLE:
        return _log_of_run(stage, lambda: EmrRun.start(stage, arguments))
    return _log_of_run(stage, lambda: GlueRun.start(stage, stage.scenario.deployment.resources.batch_job, arguments))


def a_run(stage: Stage) -> str:
    return a_night(stage, stage.manifest(stage.put_silently()).id)


def a_run_without_its_code(stage: Stage) -> str:
    """Glue reads the code of a job with the job's role; the local cloud has the sentence that CloudTrail would have."""
    a_run(stage)
    return stage.wait_until_logged("emulator.log")


def a_run_of_a_held_manifest(stage: Stage) -> str:
    row = stage.manifest(stage.put_silently())
    stage.claimed(row)
    return a_night(stage, row.id)


def a_run_that_halves(stage: Stage) -> str:
    file = stage.put_silently()
    row = stage.manifest(file, stage.sibling(file))
    stage.set_attributes(f"manifest#{row.id}", "manifest", attempt=99)
    return a_night(stage, row.id)


def a_run_that_publishes(stage: Stage) -> str:
    """What an earlier run has committed."""
    return a_night(stage, stage.publishing(stage.manifest(stage.put_silently())).id)


def a_run_of_vanished_uploads(stage: Stage) -> str:
    """What an earlier run has committed was aborted: the manifest ends FAILED, and what is published is deleted."""
    row = stage.publishing(stage.manifest(stage.put_silently()))
    stage.abort_uploads(row)
    return a_night(stage, row.id)


def a_run_of_a_damaged_commit(stage: Stage) -> str:
    row = stage.publishing(stage.manifest())
    assert row.document is not None
    deployment = stage.scenario.deployment
    deployment.s3.put_object(Bucket=deployment.resources.control_bucket, Key=row.document.key, Body=b"damaged")
    return a_night(stage, row.id)


def a_run_of_a_missing_file(stage: Stage) -> str:
    file: ObjectVersion = stage.new_file(version=None)
    return a_night(stage, stage.manifest(file, stage.put_silently()).id)


def a_stream(stage: Stage) -> str:
    deployment, row = stage.scenario.deployment, stage.manifest(stage.put_silently(), lane=Lane.STREAM)
    body = json.dumps({"manifest": row.id}).encode()
    key = pointer_key(row.id, "n", urgent=False)
    deployment.s3.put_object(Bucket=deployment.resources.control_bucket, Key=key, Body=body)
    return _log_of_run(stage, lambda: GlueRun.start(stage, stage.scenario.deployment.resources.stream_job, {}))


def a_verification(stage: Stage) -> str:
    arguments = {"--verify": f"{datetime.now(UTC):%Y-%m-%d}"}
    return _log_of_run(stage, lambda: GlueRun.start(stage, stage.scenario.deployment.resources.batch_job, arguments))
