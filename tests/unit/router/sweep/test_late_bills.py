"""A cost whose bill was not final when its run was looked at last: recorded later, once."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from lake.errors import InvalidInputError
from router.executions.run_status import run_status
from router.sweep.handler import sweep
from tests.unit.router.settling import done, planned
from tests.unit.router.test_run_costs import BILL, RUN, ended, holder, recorded

if TYPE_CHECKING:
    from tests.unit.router.conftest import Deployment


@pytest.fixture
def job_run(deployment: Deployment) -> str:
    """A run of Flex that has ended, of which Glue does not tell the DPU seconds when its status is asked for."""
    (row,) = planned(deployment, "a.json")
    done(deployment, row, 10)
    job_run = holder(deployment, row)
    ended(deployment, job_run, WorkerType="G.1X", NumberOfWorkers=10)
    del deployment.glue.bills[job_run]["DPUSeconds"]
    for _ in range(2):
        run_status({"run": RUN, "jobRun": job_run}, deployment.services)
    assert recorded(deployment) == []
    return job_run


def due(deployment: Deployment) -> list[str]:
    return [item.job_run for item in deployment.ledger.costs.due_bills()]


def test_the_sweep_records_it_when_it_is_final(deployment: Deployment, job_run: str) -> None:
    # When it is not final yet, Then it is awaited
    sweep(deployment.services)
    assert due(deployment) == [job_run]
    # When it is, and the sweep comes twice, Then the cost is there once, by Glue's own figure
    deployment.glue.bills[job_run]["DPUSeconds"] = 7200.0
    for _ in range(2):
        sweep(deployment.services)
    (row,) = recorded(deployment)
    assert (row.id, row.micro_dollars, row.execution) == (
        job_run,
        2 * round(deployment.services.settings.price.dpu_hour_flex * 1_000_000),
        "overnight",
    )
    assert row.shares[0].dataset == "orders"
    assert due(deployment) == []


def test_a_status_that_comes_before_the_sweep_records_it(deployment: Deployment, job_run: str) -> None:
    deployment.glue.bills[job_run]["DPUSeconds"] = 7200.0
    run_status({"run": RUN, "jobRun": job_run}, deployment.services)
    sweep(deployment.services)
    assert len(recorded(deployment)) == 1
    assert due(deployment) == []


def test_after_a_day_what_is_known_is_taken(deployment: Deployment, job_run: str) -> None:
    # Given ten workers of one DPU for an hour, and a service that never tells more
    deployment.wait(timedelta(days=1, minutes=1))
    # When
    sweep(deployment.services)
    # Then
    (row,) = recorded(deployment)
    assert row.dpu_milliseconds == 36_000_000
    assert due(deployment) == []


def test_a_job_run_that_is_forgotten_is_awaited_for_a_day(deployment: Deployment, job_run: str) -> None:
    del deployment.glue.runs["batch-job"][job_run]
    sweep(deployment.services)
    assert due(deployment) == [job_run]
    deployment.wait(timedelta(days=1, minutes=1))
    sweep(deployment.services)
    assert (due(deployment), recorded(deployment)) == ([], [])


def test_one_bill_that_cannot_be_completed_holds_up_no_other(deployment: Deployment, job_run: str) -> None:
    # Given: of another run the document is lost
    lost = "s3://control/plans/gone/runs/00000.json"
    ended(deployment, "jr_a", Arguments={"--run": lost})
    due_bill = next(deployment.ledger.costs.due_bills())
    deployment.ledger.costs.await_bill(type(due_bill)("jr_a", lost, due_bill.since))
    deployment.glue.bills[job_run] = BILL
    # When, Then
    with pytest.raises(Exception, match="gone"):
        sweep(deployment.services)
    assert [row.id for row in recorded(deployment)] == [job_run]
    # When its day is over, Then no further sweep fails for it
    deployment.wait(timedelta(days=1, minutes=1))
    sweep(deployment.services)
    assert due(deployment) == []


@pytest.mark.parametrize("body", [b'{"exec', b"{}"])
def test_a_bill_whose_run_document_is_damaged_is_awaited_for_a_day(
    deployment: Deployment, job_run: str, body: bytes
) -> None:
    deployment.raw_s3.put_object(Bucket="control", Key=RUN.removeprefix("s3://control/"), Body=body)
    with pytest.raises(InvalidInputError, match=f"{RUN} is damaged: restore the object"):
        sweep(deployment.services)
    deployment.wait(timedelta(days=1, minutes=1))
    sweep(deployment.services)
    assert (due(deployment), recorded(deployment)) == ([], [])
