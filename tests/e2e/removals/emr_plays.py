"""What uses the permissions for EMR Serverless, besides the plays of the jobs, which run there with ``EmrRole``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lake.engines import Engine
from lake.job_runs import emr_run_id
from tests.e2e.removals.function_plays import answer, planned
from tests.e2e.removals.job_plays import a_night
from tests.e2e.removals.machine_plays import cause_of
from tests.e2e.removals.sweep_plays import swept

if TYPE_CHECKING:
    from lake.ledger import ManifestRow
    from tests.e2e.removals.stage import Stage


def a_plan(stage: Stage) -> str:
    return answer(stage, "plan", planned(_held(stage).partition.dataset))


def a_status(stage: Stage) -> str:
    return answer(stage, "run_status", {"run": stage.run_document(_held(stage).id)})


def a_sweep(stage: Stage) -> str:
    _held(stage)
    return swept(stage)


def a_run(stage: Stage) -> str:
    return a_night(stage, _held(stage).id)


def an_execution(stage: Stage) -> str:
    request = {"dataset": stage.manifest().partition.dataset, "engine": Engine.EMR_SERVERLESS}
    return cause_of(stage, stage.scenario.deployment.outputs.overnight, request)


def _held(stage: Stage) -> ManifestRow:
    """A manifest that is RUNNING, held by a run on EMR Serverless."""
    row = stage.manifest(stage.put_silently())
    (application,) = stage.scenario.cloud.client("emr-serverless").list_applications()["applications"]
    stage.claimed(row, run=emr_run_id(application["id"], "00unknown"))
    return row
