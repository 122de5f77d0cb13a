"""What the job runs of a run document were denied is counted apart: no further job run is started for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lake.layout import denial_key
from lake.manifest_documents import write_denied
from router.executions.run_status import run_status
from tests.unit.router.settling import done, planned

if TYPE_CHECKING:
    from tests.unit.router.conftest import Deployment

RUN = "s3://control/plans/overnight/runs/00000.json"


def test_open_manifests_that_were_denied_are_counted(deployment: Deployment) -> None:
    # Given: of five manifests one is done and one is held; three were denied, of which one is done by now
    rows = planned(deployment, *(f"{name}.json" for name in "abcde"))
    done(deployment, rows[0], 1)
    deployment.claimed(rows[1], deployment.glue.start_job_run(JobName="batch-job")["JobRunId"])
    write_denied(deployment.raw_s3, "control", RUN, [row.id for row in rows[:3]])
    # When, Then
    assert run_status({"run": RUN}, deployment.services) == {"open": 4, "terminal": 1, "held": 1, "denied": 1}


def test_without_a_list_nothing_counts_as_denied(deployment: Deployment) -> None:
    # Given a list of another run, and then one that cannot be read
    (row,) = planned(deployment, "a.json")
    write_denied(deployment.raw_s3, "control", RUN.replace("00000", "00001"), [row.id])
    assert run_status({"run": RUN}, deployment.services)["denied"] == 0
    deployment.raw_s3.put_object(Bucket="control", Key=denial_key("plans/overnight/runs/00000.json"), Body=b"{")
    # When, Then
    assert run_status({"run": RUN}, deployment.services)["denied"] == 0
