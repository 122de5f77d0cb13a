"""settle writes the page about the execution; whatever happens to it, the verdict is kept."""

from datetime import timedelta
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError

from lake.ledger.costs import Executions
from lake.time import iso_utc
from report.figures import ManifestFigures
from router.plan.handler import plan
from router.settle import handler
from tests.unit.report.reporting import cost_row
from tests.unit.router.conftest import Deployment
from tests.unit.router.settling import done, planned, settled

KEY = "plans/overnight/report.html"
COMMAND = "hybrid-router report --execution overnight --stage test"


def settled_night(deployment: Deployment) -> str:
    """One manifest with rejects is done; the notification."""
    (row,) = planned(deployment, "a.json")
    done(deployment, row, 10, 2)
    answer = settled(deployment)
    assert answer["verdict"] == "SUCCEEDED_WITH_QUARANTINE"
    return str(answer["notification"])


def test_the_page_has_the_numbers_of_the_verdict_and_the_costs(deployment: Deployment) -> None:
    # Given
    at = iso_utc(deployment.now)
    deployment.ledger.costs.record(cost_row(execution="overnight", started_at=at, ended_at=at))
    deployment.ledger.costs.record(cost_row("other", execution="another", started_at=at, ended_at=at))
    # When
    notification = settled_night(deployment)
    # Then
    answer = deployment.raw_s3.get_object(Bucket="control", Key=KEY)
    page = answer["Body"].read().decode()
    assert answer["ContentType"] == "text/html; charset=utf-8"
    for words in (">10</b><span>rows published", ">2</b><span>lines in the q", ">$2.00</b>", "SUCCEEDED_WITH_Q"):
        assert words in page
    assert "hybrid-router report --stage test&#x27; reads them" in page
    assert notification.endswith(f"\n\nReport: {COMMAND}")


def test_the_next_plan_expects_the_waiting_of_the_last_nights(deployment: Deployment) -> None:
    # Given job runs of an execution on Flex, of which two waited for 7 and 8 minutes and one found no capacity
    deployment.configure(batch={"engines": ["glue-flex"]})
    (row,) = planned(deployment, "a.json")
    expected = forecast_of(deployment)
    begin = deployment.now
    for number, (waited, worked) in enumerate([(420, 600), (480, 900), (1200, 0)]):
        ended = iso_utc(begin + timedelta(seconds=waited + worked))
        deployment.ledger.costs.record(
            cost_row(
                f"run-{number}",
                engine="glue-flex",
                execution="overnight",
                seconds=worked,
                started_at=iso_utc(begin),
                ended_at=ended,
            )
        )
    done(deployment, row, 10, 0)
    deployment.wait(timedelta(hours=1))
    settled(deployment)
    # When the next night is planned
    planned(deployment, "b.json")
    # Then a run begins after 7.5 minutes in place of the 6 that are assumed
    assert forecast_of(deployment) == pytest.approx(expected + 1.5, abs=0.1)
    # When these nights are long ago
    deployment.wait(timedelta(days=9))
    assert forecast_of(deployment) == pytest.approx(expected, abs=0.1)


def forecast_of(deployment: Deployment) -> float:
    """Minutes that a plan of the backlog expects."""
    return float(plan({"execution": "dry", "dryRun": True}, deployment.services)["forecast"]["minutes"])


def test_an_execution_that_ends_while_a_manifest_is_worked_on_is_listed(deployment: Deployment) -> None:
    (row,) = planned(deployment, "a.json")
    deployment.claimed(row)
    assert settled(deployment)["notification"].endswith(f"\n\nReport: {COMMAND}")
    today = deployment.now.date()
    assert [facts["outcome"] for facts in deployment.ledger.executions.settled(today, today)] == ["OPEN"]


@pytest.mark.parametrize(("where", "name"), [(handler, "render_page"), (ManifestFigures, "add")])
def test_a_fault_of_the_page_changes_nothing_of_the_verdict(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, where: object, name: str
) -> None:
    monkeypatch.setattr(where, name, Mock(side_effect=ValueError("a defect")))
    assert settled_night(deployment).endswith(f"\n\nReport: {COMMAND}")


def test_an_execution_whose_page_meets_a_passing_fault_is_settled_again(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given
    slow = ClientError({"Error": {"Code": "ThrottlingException", "Message": ""}}, "UpdateItem")
    with monkeypatch.context() as patch:
        patch.setattr(Executions, "record_settled", Mock(side_effect=slow))
        with pytest.raises(ClientError):
            settled_night(deployment)
    # When the state machine repeats it, then the execution is listed
    settled(deployment)
    today = deployment.now.date()
    assert [facts["outcome"] for facts in deployment.ledger.executions.settled(today, today)] == [
        "SUCCEEDED_WITH_QUARANTINE"
    ]


def test_the_page_of_the_last_days_names_each_execution_and_its_reason(deployment: Deployment) -> None:
    # Given an execution that failed
    (row,) = planned(deployment, "a.json")
    deployment.ledger.manifests.fail(deployment.row(row.id), "<b>it is broken", deployment.now)
    # When it is settled twice
    for _ in range(2):
        settled(deployment)
    # Then it is named once, with the link to its report
    page = deployment.raw_s3.get_object(Bucket="control", Key="plans/index.html")["Body"].read().decode()
    assert page.count('href="overnight/report.html"') == 1
    assert ">FAILED</span>" in page
    assert "&lt;b&gt;it is broken" in page
