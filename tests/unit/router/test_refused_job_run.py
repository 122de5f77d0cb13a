"""A job run that Glue did not start has no log: the rows of its manifests name the cause, and so does the verdict."""

from router.run_status.handler import run_status
from tests.unit.router.conftest import Deployment
from tests.unit.router.settling import done, planned, settled

RUN = "s3://control/plans/overnight/runs/00000.json"
REFUSAL = (
    "Glue.AccessDeniedException: User: arn:aws:sts::1:assumed-role/r/s is not authorized to perform: glue:StartJobRun"
)


def test_the_verdict_names_why_a_job_run_did_not_start(deployment: Deployment) -> None:
    # Given: a run of which one manifest is done, when the next job run is refused
    first, second = planned(deployment, "a.json", "b.json")
    done(deployment, first, 1)
    # When
    status = run_status({"run": RUN, "refusal": f"{REFUSAL}\nnext line"}, deployment.services)
    # Then
    assert status == {"open": 1, "terminal": 1, "held": 0}
    assert deployment.row(second.id).reason == f"its job run did not start: {REFUSAL}\\nnext line"
    assert deployment.row(first.id).reason is None
    assert REFUSAL in settled(deployment)["message"]


def test_a_manifest_that_a_run_works_on_keeps_its_reason(deployment: Deployment) -> None:
    (row,) = planned(deployment, "a.json")
    deployment.claimed(row, deployment.glue.start_job_run(JobName="batch-job")["JobRunId"])
    run_status({"run": RUN, "refusal": REFUSAL}, deployment.services)
    assert deployment.row(row.id).reason is None
