"""The usage of job runs, as the engine reports it, and its cost: bills and their rows."""

from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError
from hypothesis import given
from hypothesis import strategies as st

from lake.engines import ENGINES, Engine, read_bill
from lake.engines.description import MAX_REASON, Bill, divide_by_weight
from lake.ledger import CostRow, CostShare
from lake.ledger.costs import MAX_SHARES
from lake.manifest import Lane
from lake.settings import EmrSettings, PriceSettings, Settings
from lake.time import iso_utc
from tests.unit.lake.world import World
from tests.unit.report.reporting import cost_row

START, END = datetime(2026, 11, 20, 22, tzinfo=UTC), datetime(2026, 11, 20, 23, tzinfo=UTC)
RUN = "s3://control/plans/night/runs/00000.json"
GLUE = {
    "Id": "jr_1",
    "JobRunState": "SUCCEEDED",
    "StartedOn": START,
    "CompletedOn": END,
    "ExecutionTime": 3600,
    "WorkerType": "G.2X",
    "NumberOfWorkers": 10,
    "Arguments": {"--run": RUN},
}
EMR = {
    "state": "FAILED",
    "createdAt": START,
    "updatedAt": END,
    "endedAt": END,
    "totalExecutionDurationSeconds": 1800,
    "billedResourceUtilization": {"vCPUHour": 20.5, "memoryGBHour": 82.0, "storageGBHour": 0.0},
    "jobDriver": {"sparkSubmit": {"entryPointArguments": ["--settings", "x", "--run", RUN]}},
}
PRICE = PriceSettings(
    dpu_hour=0.44,
    dpu_hour_flex=0.29,
    emr_vcpu_hour=0.05,
    emr_gb_hour=0.006,
)


class Service:
    """Glue or EMR Serverless with one answer."""

    def __init__(self, answer: dict[str, Any] | str) -> None:
        self.answer = answer

    def get_job_run(self, **request: str) -> dict[str, Any]:
        if isinstance(self.answer, str):
            raise ClientError({"Error": {"Code": self.answer, "Message": ""}}, "GetJobRun")
        return {"JobRun" if "JobName" in request else "jobRun": self.answer}


def bill(run: str = "jr_1", answer: Any = None, **changes: Any) -> Any:
    if run.startswith("emr-serverless:"):
        return read_bill({"emr-serverless": Service(answer or EMR | changes)}, "batch", run)
    return read_bill({"glue": Service(answer or GLUE | changes)}, "batch", run)


def priced(found: Bill, price: PriceSettings = PRICE, architecture: str = "x86_64") -> int:
    settings = Settings("t", price=price, emr=EmrSettings(architecture=architecture))
    return found.priced(ENGINES[found.engine].prices(settings))


@pytest.mark.parametrize(
    ("changes", "engine", "dpu_seconds", "dollars"),
    [
        # Given a fixed number of workers: all of them for the whole time, 20 DPU hours
        ({}, Engine.GLUE, 72_000, 8.80),
        ({"MaxCapacity": 5.0}, Engine.GLUE, 18_000, 2.20),
        # Given Flex or auto scaling: the figures that Glue reports
        ({"DPUSeconds": 36_000.5}, Engine.GLUE, 36_000.5, 4.400061),
        ({"DPUSeconds": 36_000.0, "ExecutionClass": "FLEX"}, Engine.GLUE_FLEX, 36_000, 2.90),
    ],
)
def test_a_run_on_glue(changes: dict[str, Any], engine: Engine, dpu_seconds: float, dollars: float) -> None:
    found = bill(**changes)
    assert (found.engine, found.dpu_milliseconds) == (engine, round(dpu_seconds * 1000))
    assert priced(found) == round(dollars * 1_000_000)
    assert (found.run, found.seconds, found.started_at, found.ended_at) == (RUN, 3600, iso_utc(START), iso_utc(END))


def test_a_run_on_emr_serverless_that_failed_costs_what_it_used() -> None:
    found = bill("emr-serverless:00app:00run")
    assert (found.engine, found.run, found.seconds) == (Engine.EMR_SERVERLESS, RUN, 1800)
    assert priced(found) == round((20.5 * 0.05 + 82 * 0.006) * 1_000_000)
    assert priced(found, architecture="arm64") == round(0.8 * (20.5 * 0.05 + 82 * 0.006) * 1_000_000)


@pytest.mark.parametrize(
    ("run", "changes", "state", "reason", "final"),
    [
        # The stack's jobs scale, whatever arguments Glue answers
        ("jr_1", {}, "SUCCEEDED", "", False),
        ("jr_1", {"DPUSeconds": 9.5}, "SUCCEEDED", "", True),
        ("jr_1", {"ExecutionClass": "FLEX", "DPUSeconds": 0.0}, "SUCCEEDED", "", True),
        # It got no capacity, and has used nothing
        ("jr_1", {"ExecutionClass": "FLEX", "ExecutionTime": 0}, "SUCCEEDED", "", True),
        ("jr_1", {"JobRunState": "FAILED", "ErrorMessage": "killed\nby"}, "FAILED", "killed\nby", False),
        ("jr_1", {"JobRunState": "TIMEOUT", "ErrorMessage": "x" * 5000}, "TIMEOUT", "x" * MAX_REASON, False),
        ("emr-serverless:00app:00run", {"stateDetails": "out of memory"}, "FAILED", "out of memory", True),
        ("emr-serverless:00app:00run", {"state": "SUCCESS", "stateDetails": "finished"}, "SUCCEEDED", "", True),
        ("emr-serverless:00app:00run", {"billedResourceUtilization": {}}, "FAILED", "", False),
    ],
)
def test_a_bill_has_the_end_of_its_job_run_its_reason_and_whether_the_service_has_all_figures(
    run: str, changes: dict[str, Any], state: str, reason: str, final: bool
) -> None:
    found = bill(run, **changes)
    assert (found.state, found.reason, found.final) == (state, reason, final)


@pytest.mark.parametrize(
    ("run", "answer"),
    [
        ("jr_1", GLUE | {"JobRunState": "RUNNING"}),
        ("jr_1", {"Id": "jr_1", "JobRunState": "STOPPED"}),
        ("manual-1", "EntityNotFoundException"),
        ("emr-serverless:00app:00run", EMR | {"state": "RUNNING"}),
        ("emr-serverless:00app:00run", {name: value for name, value in EMR.items() if name != "endedAt"}),
        ("emr-serverless:00app:00run", "ResourceNotFoundException"),
    ],
)
def test_no_bill_before_the_end_and_none_of_an_unknown_run(run: str, answer: Any) -> None:
    assert bill(run, answer) is None


@pytest.mark.parametrize("run", ["jr_1", "emr-serverless:00app:00run"])
def test_a_service_that_refuses_is_an_error(run: str) -> None:
    with pytest.raises(ClientError):
        bill(run, "AccessDeniedException")


@given(st.integers(0, 10**12), st.lists(st.integers(0, 10**15), min_size=1))
def test_parts_add_up_to_the_whole(total: int, weights: list[int]) -> None:
    parts = divide_by_weight(total, weights)
    assert sum(parts) == total
    assert min(parts) >= 0
    if any(weights):
        exact = [total * weight / sum(weights) for weight in weights]
        assert all(abs(part - share) <= 1 + share * 1e-9 for part, share in zip(parts, exact, strict=True))


SHARES = (CostShare("orders", 700, 10, 1, 1, 5, 2, 4), CostShare("clicks", 300))
ROW = cost_row(
    ended_at="2026-11-21T00:10:00.000+00:00",
    micro_dollars=1000,
    shares=SHARES,
    state="FAILED",
    reason="killed by signal 9",
)
DAY = date(2026, 11, 21)


def test_rows_of_many_days(world: World) -> None:
    stream = replace(ROW, id="jr_2", lane=Lane.STREAM, execution=None, ended_at="2026-11-22T01:00:00.000+00:00")
    for row in (stream, ROW):
        world.ledger.costs.record(row)
    assert list(world.ledger.costs.of_days(DAY, date(2026, 11, 23))) == [ROW, stream]
    assert list(world.ledger.costs.of_days(DAY, DAY)) == [ROW]
    assert list(world.ledger.costs.of_days(DAY, date(2026, 11, 23), [Lane.BATCH])) == [ROW]


def test_a_row_with_more_datasets_than_an_item_can_hold_is_stored_whole(world: World) -> None:
    # Given an interval of the streaming job with shares for two full items and one share in a third
    names = [f"dataset_number_{number:05d}" for number in range(2 * MAX_SHARES + 1)]
    shares = tuple(CostShare(name, 7, 10**9, 3, 1, 9, 2, 10**8) for name in names)
    row = CostRow.of_bill(bill(), Lane.STREAM, 7 * len(names), shares)
    # When the second one is not written, and it is recorded twice more
    world.faults.drop = 2
    with pytest.raises(ReadTimeoutError):
        world.ledger.costs.record(row)
    assert [world.ledger.costs.record(row), world.ledger.costs.record(row)] == [True, False]
    # Then all of its shares and all of its usage are recorded once
    day = date(2026, 11, 20)
    (found,) = world.ledger.costs.of_days(day, day)
    assert (replace(found, shares=()), set(found.shares)) == (replace(row, shares=()), set(shares))
    assert len(found.shares) == len(shares)
    assert world.ledger.costs.day_sums(day, day) == {str(day): 7 * len(names)}
