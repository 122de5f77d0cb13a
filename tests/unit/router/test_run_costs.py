"""The cost of a run's job runs: recorded once, divided without a remainder, summed by day."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any
from unittest.mock import Mock, patch

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from lake.ledger import CommitReference, CostRow, ManifestRow, Published, PublishedTotals, State
from lake.ledger.manifest_row import NO_OBJECTS
from lake.ledger.table import LedgerTable
from lake.ledger.transitions import Manifests
from lake.manifest import Lane, Partition
from lake.time import iso_utc
from router.executions.costs import cost_shares
from router.executions.run_status import run_status
from router.plan.handler import plan
from router.services import Services
from router.sweep.handler import sweep
from router.telemetry import Metric
from tests.unit.report.reporting import cost_row
from tests.unit.router import conftest
from tests.unit.router.conftest import Deployment
from tests.unit.router.settling import RUN, done, planned

START, END = datetime(2026, 11, 20, 22, tzinfo=UTC), datetime(2026, 11, 20, 23, tzinfo=UTC)
BILL = {
    "StartedOn": START,
    "CompletedOn": END,
    "ExecutionTime": 3600,
    "DPUSeconds": 7200.0,
    "ExecutionClass": "FLEX",
    "Arguments": {"--run": RUN},
}


def ended(deployment: Deployment, *job_runs: str, **changes: Any) -> None:
    for job_run in job_runs:
        deployment.glue.runs.setdefault("batch-job", {})[job_run] = "SUCCEEDED"
        deployment.glue.bills[job_run] = BILL | changes


def recorded(deployment: Deployment) -> list[CostRow]:
    return list(deployment.ledger.costs.of_days(date(2026, 11, 20), date(2026, 11, 20)))


def due(deployment: Deployment) -> list[str]:
    return [item.job_run for item in deployment.ledger.costs.due_bills()]


def holder(deployment: Deployment, row: ManifestRow) -> str:
    return str(deployment.row(row.id).owner)


def test_the_status_of_a_run_records_what_its_job_run_has_cost(deployment: Deployment) -> None:
    # Given a run of two manifests that one job run has published, and one that it held when it ended
    first, second, left = planned(deployment, "a.json", "b.json", "c.json")
    for row in (first, second):
        done(deployment, row, 10)
    job_run = holder(deployment, first)
    deployment.claimed(left, job_run)
    ended(deployment, job_run)
    # When its status is requested, and once more because the answer was lost
    with patch.object(LedgerTable, "transact", autospec=True, side_effect=LedgerTable.transact) as transact:
        for _ in range(2):
            assert run_status({"run": RUN, "jobRun": job_run}, deployment.services)["terminal"] == 2
    # Then its cost is in the ledger once: 2 DPU hours of Flex
    (row_,) = recorded(deployment)
    assert (row_.id, row_.engine, row_.lane, row_.execution) == (job_run, "glue-flex", Lane.BATCH, "overnight")
    assert (row_.micro_dollars, row_.dpu_milliseconds, row_.seconds) == (406_000, 7_200_000, 3600)
    (share,) = row_.shares
    assert (share.dataset, share.micro_dollars, share.manifests) == ("orders", 406_000, 2)
    assert (share.files, share.bytes) == (2, first.bytes + second.bytes)
    assert share.task_milliseconds == 2
    day = date(2026, 11, 20)
    assert deployment.ledger.costs.day_sums(day, day) == {str(day): 406_000}
    # And no report says that the cost is pending
    assert due(deployment) == []
    # And the function's role, which may not put items, allows each write
    assert {kind for call in transact.mock_calls for action in call.args[1] for kind in action} == {"Update"}


def test_a_lost_status_is_recovered_by_the_next_one(deployment: Deployment) -> None:
    # Given a job run that failed with a manifest, and another that published it, and only the last status was written
    (row,) = planned(deployment, "a.json")
    deployment.glue.runs["batch-job"] = {"jr_lost": "FAILED"}
    claim = deployment.claimed(row, "jr_lost")
    deployment.ledger.manifests.release(claim, "its run has ended", deployment.now)
    done(deployment, row, 10)
    ended(deployment, "jr_lost", holder(deployment, row))
    # When
    run_status({"run": RUN}, deployment.services)
    # Then both are recorded, and the bytes are counted once
    rows = {found.id: found for found in recorded(deployment)}
    assert rows.keys() == {"jr_lost", holder(deployment, row)}
    assert sum(share.bytes for found in rows.values() for share in found.shares) == row.bytes
    assert rows["jr_lost"].shares[0].dataset == "orders"


def test_a_job_run_that_held_nothing_costs_as_well(deployment: Deployment) -> None:
    planned(deployment, "a.json")
    ended(deployment, "jr_idle")
    run_status({"run": RUN, "jobRun": "jr_idle"}, deployment.services)
    (row,) = recorded(deployment)
    assert [(share.dataset, share.micro_dollars) for share in row.shares] == [("", 406_000)]


def plan_next(services: Services) -> object:
    return plan({"execution": "next"}, services)


@pytest.mark.parametrize(
    ("release", "state", "is_answered"),
    [(sweep, "STOPPED", True), (sweep, "STOPPING", True), (sweep, "STOPPED", False), (plan_next, "STOPPED", False)],
)
def test_the_cost_of_a_job_run_is_recorded_when_its_execution_was_stopped(
    deployment: Deployment, release: Callable[[Services], object], state: str, is_answered: bool
) -> None:
    # Given a job run that was stopped together with its execution, so its status is never requested
    rows = planned(deployment, "a.json", "b.json")
    ended(deployment, "jr_stopped")
    deployment.glue.runs["batch-job"]["jr_stopped"] = state
    for row in rows:
        deployment.claimed(row, "jr_stopped")
    released = Manifests.release

    def without_answer(*given: Any) -> bool:
        assert released(*given)
        raise ReadTimeoutError(endpoint_url="dynamodb")

    # When the manifests that it held are released, and a sweep reads its bill
    lost = nullcontext() if is_answered else pytest.raises(ReadTimeoutError)
    with patch.object(Manifests, "release", released if is_answered else without_answer), lost:
        release(deployment.services)
    assert due(deployment) == ["jr_stopped"]
    deployment.glue.runs["batch-job"]["jr_stopped"] = "STOPPED"
    sweep(deployment.services)
    # Then
    found = [(row.id, row.state, row.execution, row.micro_dollars) for row in recorded(deployment)]
    assert found == [("jr_stopped", "STOPPED", "overnight", 406_000)]
    assert due(deployment) == []


def test_a_job_run_of_another_run_is_left_to_that_one(deployment: Deployment) -> None:
    (row,) = planned(deployment, "a.json")
    done(deployment, row, 10)
    ended(deployment, holder(deployment, row), Arguments={"--run": "s3://control/plans/before/runs/00000.json"})
    run_status({"run": RUN}, deployment.services)
    assert recorded(deployment) == []


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (ClientError({"Error": {"Code": "ThrottlingException", "Message": ""}}, "TransactWriteItems"), True),
        (ClientError({"Error": {"Code": "AccessDeniedException", "Message": ""}}, "TransactWriteItems"), False),
        (KeyError("a worker type that this version does not know"), False),
    ],
)
def test_a_cost_that_cannot_be_recorded_delays_no_conversion(
    deployment: Deployment, error: Exception, passes: bool
) -> None:
    # Given
    (row,) = planned(deployment, "a.json")
    done(deployment, row, 10)
    job_run = holder(deployment, row)
    ended(deployment, job_run)
    # When, Then
    with patch("lake.ledger.costs.Costs.record", Mock(side_effect=error)):
        status = run_status({"run": RUN, "jobRun": job_run}, deployment.services)
        assert status == {"open": 0, "terminal": 1, "held": 0, "denied": 0}
    # And if it was the last status of the run, the sweep writes what it can; otherwise the next status does
    sweep(deployment.services)
    assert len(recorded(deployment)) == passes
    run_status({"run": RUN}, deployment.services)
    assert len(recorded(deployment)) == 1
    assert due(deployment) == []


def manifest(dataset: str, size: int, milliseconds: int, owner: str = "jr_1", state: State = State.DONE) -> ManifestRow:
    totals = PublishedTotals(1, {}, 0, NO_OBJECTS, NO_OBJECTS, milliseconds)
    published = Published(1, CommitReference("k", "s"), totals) if state == State.DONE else None
    partition = Partition(dataset, "2026-11-20", 8)
    return ManifestRow("m", state, Lane.BATCH, partition, "", size, 1, owner=owner, published=published)


def test_the_time_of_the_tasks_divides_a_cost() -> None:
    rows = [manifest("orders", 100, 30), manifest("clicks", 900, 10), manifest("other", 900, 10, "jr_2")]
    shares = cost_shares(1000, "jr_1", rows)
    assert {share.dataset: share.micro_dollars for share in shares} == {"orders": 750, "clicks": 250}


def test_what_is_held_and_not_published_has_the_cost_of_a_run_without_a_result() -> None:
    rows = [manifest("orders", 100, 0, state=State.FAILED), manifest("clicks", 300, 0, state=State.QUEUED)]
    shares = cost_shares(1000, "jr_1", rows)
    assert [(share.micro_dollars, share.bytes, share.manifests) for share in shares] == [(250, 0, 0), (750, 0, 0)]
    # And so have manifests that another run has held since
    later = [replace(row, owner="jr_2", earlier_owners=("jr_1",)) for row in rows]
    assert [share.micro_dollars for share in cost_shares(1000, "jr_1", later)] == [250, 750]


@pytest.fixture
def job_run(deployment: Deployment) -> str:
    """A run of Flex that has ended; Glue does not report its DPU seconds when its status is requested."""
    (row,) = planned(deployment, "a.json")
    done(deployment, row, 10)
    job_run = holder(deployment, row)
    ended(deployment, job_run, WorkerType="G.1X", NumberOfWorkers=10)
    del deployment.glue.bills[job_run]["DPUSeconds"]
    for _ in range(2):
        run_status({"run": RUN, "jobRun": job_run}, deployment.services)
    assert recorded(deployment) == []
    return job_run


def test_the_sweep_records_it_when_it_is_final(deployment: Deployment, job_run: str) -> None:
    # When two sweeps run, Then the cost is recorded once, with Glue's own figure
    deployment.glue.bills[job_run]["DPUSeconds"] = 7200.0
    for _ in range(2):
        sweep(deployment.services)
    (row,) = recorded(deployment)
    dollars = 2 * deployment.services.settings.price.dpu_hour_flex
    assert (row.id, row.micro_dollars, row.execution) == (job_run, round(dollars * 1_000_000), "overnight")
    assert row.shares[0].dataset == "orders"
    assert due(deployment) == []


@pytest.mark.parametrize(("is_known", "milliseconds"), [(True, [36_000_000]), (False, [])])
def test_after_a_day_the_known_figures_are_used(
    deployment: Deployment, job_run: str, is_known: bool, milliseconds: list[int]
) -> None:
    # Given ten workers of one DPU for an hour, and a service that never reports more, or has forgotten the job run
    if not is_known:
        del deployment.glue.runs["batch-job"][job_run]
    sweep(deployment.services)
    assert due(deployment) == [job_run]
    # When, Then
    deployment.wait(timedelta(days=1, minutes=1))
    sweep(deployment.services)
    assert [row.dpu_milliseconds for row in recorded(deployment)] == milliseconds
    assert due(deployment) == []


def test_one_bill_that_cannot_be_completed_delays_no_other(deployment: Deployment, job_run: str) -> None:
    # Given: another run has lost its document
    lost = "s3://control/plans/gone/runs/00000.json"
    ended(deployment, "jr_a", Arguments={"--run": lost})
    deployment.ledger.costs.await_bill("jr_a", deployment.now)
    deployment.glue.bills[job_run] = BILL
    # When, Then
    with pytest.raises(Exception, match="gone"):
        sweep(deployment.services)
    assert [row.id for row in recorded(deployment)] == [job_run]
    # When its day is over, Then no later sweep fails because of it
    deployment.wait(timedelta(days=1, minutes=1))
    sweep(deployment.services)
    assert due(deployment) == []


def test_a_bill_that_is_temporarily_unreadable_is_not_abandoned_after_a_day(
    deployment: Deployment, job_run: str
) -> None:
    refused = ClientError({"Error": {"Code": "ThrottlingException", "Message": ""}}, "GetJobRun")
    with patch("router.sweep.handler.read_bill", Mock(side_effect=refused)):
        deployment.wait(timedelta(days=1, minutes=1))
        with pytest.raises(ClientError):
            sweep(deployment.services)
    assert due(deployment) == [job_run]


def cost(deployment: Deployment, job_run: str, dollars: float, ended_at: datetime) -> None:
    price = round(dollars * 1_000_000)
    deployment.ledger.costs.record(cost_row(job_run, ended_at=iso_utc(ended_at), micro_dollars=price, shares=()))


def test_the_metric_is_what_the_job_runs_of_this_day_have_cost(deployment: Deployment) -> None:
    def day_dollars() -> list[float]:
        return conftest.recorded(lambda: sweep(deployment.services), Metric.DAY_DOLLARS)

    assert day_dollars() == [0]
    # Given job runs that ended today, in both lanes, and one that ended yesterday
    cost(deployment, "jr_1", 1.5, deployment.now)
    cost(deployment, "jr_2", 0.25, deployment.now)
    cost(deployment, "jr_0", 100, deployment.now - timedelta(days=1))
    # Then
    assert day_dollars() == [1.75]
    # When the day is over, Then the next day begins at zero
    deployment.wait(timedelta(days=1))
    assert day_dollars() == [0]
    # When a bill arrives on the next day, for a job run that ended in the last minutes of a day, Then it is measured
    midnight = deployment.now.replace(hour=0, minute=0) + timedelta(days=1)
    deployment.now = midnight + timedelta(minutes=20)
    cost(deployment, "jr_late", 500, midnight - timedelta(minutes=2))
    cost(deployment, "jr_new", 1, midnight + timedelta(minutes=2))
    assert day_dollars() == [500]
