"""A job run that did not start, or could not write the ledger: the rows of its manifests name the cause, and so does
the verdict."""

from lake.manifest_documents import format_blocked_run
from router.executions.run_status import run_status
from tests.unit.router.conftest import Deployment
from tests.unit.router.settling import done, planned, settled

RUN = "s3://control/plans/overnight/runs/00000.json"
REFUSAL = (
    "Glue.AccessDeniedException: User: arn:aws:sts::1:assumed-role/r/s is not authorized to perform: glue:StartJobRun"
)

FAILURE = "States.TaskFailed: jr_1 FAILED AccessDeniedException: not authorized to perform: dynamodb:UpdateItem"


def test_the_verdict_names_why_a_job_run_did_not_start(deployment: Deployment) -> None:
    # Given: a run of which one manifest is done, when the next job run is refused
    first, second = planned(deployment, "a.json", "b.json")
    done(deployment, first, 1)
    # When
    status = run_status({"run": RUN, "refusal": f"{REFUSAL}\nnext line"}, deployment.services)
    # Then
    assert status == {"open": 1, "terminal": 1, "held": 0, "denied": 0}
    assert deployment.row(second.id).reason == f"its job run did not start: {REFUSAL}\\nnext line"
    assert deployment.row(first.id).reason is None
    assert REFUSAL in settled(deployment)["message"]


def test_a_manifest_that_a_run_works_on_keeps_its_reason(deployment: Deployment) -> None:
    (row,) = planned(deployment, "a.json")
    deployment.claimed(row, deployment.glue.start_job_run(JobName="batch-job")["JobRunId"])
    run_status({"run": RUN, "refusal": REFUSAL}, deployment.services)
    assert deployment.row(row.id).reason is None


def test_the_verdict_names_how_a_job_run_failed_that_could_not_write_the_ledger(deployment: Deployment) -> None:
    # Given: a run whose job failed before it claimed anything
    (row,) = planned(deployment, "a.json")
    # When, Then
    run_status({"run": RUN, "refusal": "", "failure": FAILURE}, deployment.services)
    assert deployment.row(row.id).reason == f"its last job run failed: {FAILURE}"
    assert FAILURE in settled(deployment)["message"]
    # And the next one replaces it
    run_status({"run": RUN, "failure": "States.Timeout: "}, deployment.services)
    assert deployment.row(row.id).reason == "its last job run failed: States.Timeout: "


def test_a_job_run_that_did_not_begin_leaves_the_fault_alone_as_reason(deployment: Deployment) -> None:
    (row,) = planned(deployment, "a.json")
    failure = f"States.TaskFailed: jr_1 FAILED {format_blocked_run('jr_1', 's3:PutObject on lake is denied')}"
    run_status({"run": RUN, "failure": failure}, deployment.services)
    assert deployment.row(row.id).reason == "s3:PutObject on lake is denied"


def test_what_an_ended_run_held_is_released_with_the_error_of_the_run(deployment: Deployment) -> None:
    # Given: a run that died with a manifest
    (row,) = planned(deployment, "a.json")
    deployment.glue.runs["batch-job"] = {"jr_1": "FAILED"}
    deployment.claimed(row, "jr_1")
    # When
    status = run_status({"run": RUN, "failure": FAILURE}, deployment.services)
    # Then
    assert status == {"open": 1, "terminal": 0, "held": 0, "denied": 0}
    reason = deployment.row(row.id).reason
    assert reason == f"run jr_1 has ended without finishing it; its last job run failed: {FAILURE}"


def test_what_the_run_itself_has_recorded_stays(deployment: Deployment) -> None:
    (row,) = planned(deployment, "a.json")
    deployment.ledger.manifests.record_reason(row, "s3:GetObject is denied")
    run_status({"run": RUN, "failure": FAILURE}, deployment.services)
    assert deployment.row(row.id).reason == "s3:GetObject is denied"
