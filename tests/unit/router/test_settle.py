"""run_status and settle: what is open, what is done, and the verdict on an execution."""

import json

import pytest

from lake.errors import InvalidDocumentError, InvalidInputError
from lake.manifest import Lane
from router.executions.run_status import run_status
from tests.unit.router.conftest import Deployment
from tests.unit.router.settling import done, planned, settled


def test_an_execution_is_settled(deployment: Deployment) -> None:
    # Given: two manifests done, one of them after it was split in two
    first, second = planned(deployment, "a.json", "b.json")
    done(deployment, first, 20, 1)
    halves = [deployment.manifest("b1.json"), deployment.manifest("b2.json")]
    deployment.ledger.manifests.supersede(second, halves, "poison", deployment.now)
    done(deployment, deployment.row(halves[0].id), 5)
    # When: the other one is still being worked on
    deployment.claimed(deployment.row(halves[1].id))
    # Then
    assert (settled(deployment)["verdict"], settled(deployment)["open"]) == ("OPEN", 1)
    # When: it fails
    deployment.ledger.manifests.fail(deployment.row(halves[1].id), "out of memory", deployment.now)
    # Then
    result = settled(deployment)
    text = result.pop("notification")
    assert text.startswith("Execution overnight of overnight, stage test: FAILED\n1 manifest failed (first: ")
    assert result == {
        "verdict": "FAILED",
        "done": 2,
        "failed": 1,
        "open": 0,
        "rows": 25,
        "rejects": 1,
        "failedFiles": 0,
        "damagedObjects": 0,
        "datasetsAboveShare": 0,
        "notify": True,
        "message": f"1 manifest failed (first: {halves[1].id}, out of memory); "
        "1 line could not become a row and is in the quarantine",
        "verdictUri": "s3://control/plans/overnight/verdict.json",
        "reportUri": "s3://control/plans/overnight/report.html",
        "indexUri": "s3://control/plans/index.html",
    }
    verdict = json.loads(
        deployment.raw_s3.get_object(Bucket="control", Key="plans/overnight/verdict.json")["Body"].read()
    )
    assert [item["manifest"] for item in verdict["notDone"]] == [halves[1].id]
    recorded = deployment.ledger.executions.get("overnight")
    assert recorded is not None
    assert {"plan", "verdict"} <= set(recorded)


def test_an_empty_execution_has_the_verdict_empty(deployment: Deployment) -> None:
    planned(deployment)
    assert settled(deployment)["verdict"] == "EMPTY"


def test_an_execution_that_was_never_planned_has_no_verdict(deployment: Deployment) -> None:
    with pytest.raises(InvalidInputError, match="does not exist: plan the execution first"):
        settled(deployment)


def test_run_status_counts_and_releases_what_an_ended_run_held(deployment: Deployment) -> None:
    # Given: one done, one held by an ended run, one held by a live run, one queued
    first, ended, live, _ = planned(deployment, "a.json", "b.json", "c.json", "d.json")
    deployment.glue.runs["batch-job"] = {"jr_ended": "TIMEOUT", "jr_live": "RUNNING"}
    done(deployment, first, 1)
    deployment.claimed(deployment.row(ended.id), "jr_ended")
    deployment.claimed(deployment.row(live.id), "jr_live")
    # When
    status = run_status({"run": "s3://control/plans/overnight/runs/00000.json"}, deployment.services)
    # Then
    assert status == {"open": 3, "terminal": 1, "held": 1, "denied": 0}
    assert [deployment.row(row.id).state for row in (ended, live)] == ["QUEUED", "RUNNING"]


def test_what_was_promoted_is_no_longer_part_of_the_plan(deployment: Deployment) -> None:
    # Given: of two files of a planned manifest one was promoted
    (source,) = planned(deployment, "a.json")
    urgent = deployment.manifest("a.json", lane=Lane.STREAM)
    rest = deployment.manifest("b.json")
    deployment.ledger.manifests.supersede(source, [urgent, rest], "promoted", deployment.now)
    # When, Then: the run waits for the other one only, and so does the verdict
    run = {"run": "s3://control/plans/overnight/runs/00000.json"}
    assert run_status(run, deployment.services) == {"open": 1, "terminal": 0, "held": 0, "denied": 0}
    done(deployment, deployment.row(rest.id), 3)
    assert run_status(run, deployment.services) == {"open": 0, "terminal": 1, "held": 0, "denied": 0}
    assert settled(deployment)["verdict"] == "SUCCEEDED"


@pytest.mark.parametrize("run", [None, 7, "plans/overnight/runs/00000.json", "s3://elsewhere/run.json"])
def test_run_status_reads_run_documents_only(deployment: Deployment, run: object) -> None:
    with pytest.raises(InvalidInputError, match="is not a valid run document"):
        run_status({"run": run}, deployment.services)


def test_a_plan_that_names_an_unknown_manifest_is_refused(deployment: Deployment) -> None:
    body = json.dumps({"manifestIds": ["ghost"]}).encode()
    deployment.raw_s3.put_object(Bucket="control", Key="plans/overnight/plan.json", Body=body)
    with pytest.raises(InvalidDocumentError, match="no manifest ghost"):
        settled(deployment)
