"""Each write of each function once without its answer: repeated as its caller does, nothing is lost or doubled.

``route``, ``reprocess`` and the job have their own: ``test_ownership_faults.py``, ``reprocess/test_reprocess.py``,
``tests/integration/test_crashes.py``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from lake.errors import TransientError
from lake.layout import lake_key
from lake.ledger import State
from lake.manifest import Lane
from router.catalog.handler import catalog
from router.entry import with_product_errors
from router.executions.run_status import run_status
from router.ownership import RoutedArrival
from router.ownership.intent import write_intent
from router.requests.backfill import backfill
from router.stream.handler import stream_control
from router.sweep.handler import sweep
from tests.unit.lake.world import PARTITION, file_of
from tests.unit.router.conftest import Deployment, new_deployment
from tests.unit.router.owning import delay, lose_answer
from tests.unit.router.planning import files, plan_overnight, planned
from tests.unit.router.promote.promoting import ask, live, owned, pointed
from tests.unit.router.settling import done, settled
from tests.unit.router.settling import planned as plan_manifests
from tests.unit.router.sweep.sweeping import committed, unfinished, upload
from tests.unit.router.sweep.test_sweep_missed import owned_keys
from tests.unit.router.test_backfill_interrupted import FIND, KEYS, old_files, queued_files

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.lake.faults import Faults

MAX_REPEATS = 6
"""Retries of the state machines, and far fewer than a schedule's."""
INTERVAL = timedelta(minutes=15)
"""Between two sweeps; longer than ``OWNER_GRACE``."""


def repeated(faults: Faults, number: int) -> None:
    """The answer is lost, and the client sends the same request again."""
    faults.repeat = number


@dataclass(frozen=True)
class Case:
    """One function with work to do."""

    prepare: Callable[[Deployment], Any]
    """Its result goes to the others."""
    call: Callable[[Deployment, Any], Any]
    check: Callable[[Deployment, Any, Any], None]
    """The deployment, what ``prepare`` has returned, and the last answer."""


def prepare_plan(deployment: Deployment) -> None:
    for name in "abc":
        deployment.queued(name)
    deployment.claimed(deployment.queued("d"))
    deployment.wait(timedelta(hours=1))


def check_plan(deployment: Deployment, _: None, answer: dict[str, Any]) -> None:
    assert files(deployment, planned(deployment, answer)) == Counter(f"orders/{name}" for name in "abcd")


def prepare_settle(deployment: Deployment) -> None:
    for row in plan_manifests(deployment, "a", "b"):
        done(deployment, row, rows=3, rejects=1)


def check_settle(deployment: Deployment, _: None, answer: dict[str, Any]) -> None:
    assert (answer["verdict"], answer["rows"], answer["rejects"]) == ("SUCCEEDED_WITH_QUARANTINE", 6, 2)
    (row,) = [item for item in deployment.dynamodb.scan(TableName="ledger")["Items"] if item["pk"] == "execution"]
    assert row["verdict"]["rows"] == 6


def prepare_run_status(deployment: Deployment) -> str:
    plan_manifests(deployment, "a")
    (row,) = deployment.ledger.manifests.open(Lane.BATCH, State.QUEUED)
    deployment.claimed(row)
    deployment.wait(timedelta(hours=1))
    return row.id


def call_run_status(deployment: Deployment, _: str) -> Any:
    return run_status({"run": "s3://control/plans/overnight/runs/00000.json"}, deployment.services)


def check_run_status(deployment: Deployment, manifest: str, answer: dict[str, int]) -> None:
    assert answer == {"open": 1, "terminal": 0, "held": 0, "denied": 0}
    assert (deployment.row(manifest).state, deployment.row(manifest).tries) == (State.QUEUED, 1)


def prepare_sweep(deployment: Deployment) -> list[str]:
    """A publish, a lease, a pointer and an intent that were left behind, and a stray upload."""
    publishing = committed(deployment, deployment.claimed(deployment.queued("a")))
    leased = deployment.claimed(deployment.queued("b")).row
    deployment.queued("c", lane=Lane.STREAM)
    write_intent(deployment.services, [RoutedArrival(file_of("orders/d"), PARTITION, Lane.BATCH, "")], deployment.now)
    failed = deployment.queued("e")
    deployment.ledger.manifests.fail(failed, "", deployment.now)
    upload(deployment, "lake", lake_key(failed.partition, failed.id, 1, 0))
    deployment.wait(timedelta(hours=7))
    return [publishing.id, leased.id]


def check_sweep(deployment: Deployment, manifests: list[str], _: Any) -> None:
    states = [deployment.row(manifest).state for manifest in manifests]
    assert states == [State.DONE, State.QUEUED]
    assert owned_keys(deployment) == ["orders/b", "orders/d"]
    assert len(deployment.keys("lake")) == 2
    assert unfinished(deployment) == []
    assert deployment.keys("control", "intents/") == []
    assert deployment.keys("control", "inbox/")
    assert "jr_1" in deployment.glue.runs["stream-job"]


def call_backfill(deployment: Deployment, _: None) -> Any:
    answer = backfill(FIND, deployment.services)
    for _number in range(MAX_REPEATS):
        if answer["token"] is None:
            break
        deployment.wait(timedelta(seconds=answer["waitSeconds"]))
        answer = backfill({**FIND, "token": answer["token"]}, deployment.services)
    return answer


def check_backfill(deployment: Deployment, _: None, answer: dict[str, Any]) -> None:
    assert queued_files(deployment) == Counter(KEYS)
    assert (answer["token"], answer["unsettled"]) == (None, 0)


def prepare_catalog(deployment: Deployment) -> None:
    deployment.ledger.datasets.register("clicks")
    deployment.ledger.datasets.reserve_columns("clicks", ["a"], 1000)
    catalog(deployment.services)
    deployment.ledger.datasets.reserve_columns("clicks", ["b"], 1000)
    deployment.ledger.datasets.register("orders")


def check_catalog(deployment: Deployment, _: None, __: Any) -> None:
    columns = {
        name: [column["Name"] for column in table["StorageDescriptor"]["Columns"]]
        for name, table in deployment.glue.tables.items()
    }
    assert columns == {"clicks": ["a", "_rescued", "b"], "orders": ["_rescued"]}


def check_promote(deployment: Deployment, _: str, answer: dict[str, Any]) -> None:
    manifests = live(deployment)
    assert manifests[Lane.STREAM] == [["a"]]
    assert manifests[Lane.BATCH] == [["b"]]
    assert len(pointed(deployment)) == 1
    assert answer["promoted"] + answer["inStream"] == 1
    assert "jr_1" in deployment.glue.runs["stream-job"]


def prepare_kill(deployment: Deployment) -> None:
    stream_control({"action": "start"}, deployment.services)


def check_window(deployment: Deployment, _: None, answer: dict[str, Any]) -> None:
    assert list(deployment.glue.runs["stream-job"].values()) == ["RUNNING"]
    assert answer["running"]
    assert deployment.ledger.stream.get().window_until is not None


def check_kill(deployment: Deployment, _: None, answer: dict[str, Any]) -> None:
    assert list(deployment.glue.runs["stream-job"].values()) == ["STOPPED"]
    assert not answer["running"]
    assert not deployment.ledger.stream.get().stop_requested


CASES = {
    "plan": Case(prepare_plan, lambda deployment, _: plan_overnight(deployment), check_plan),
    "settle": Case(prepare_settle, lambda deployment, _: settled(deployment), check_settle),
    "run_status": Case(prepare_run_status, call_run_status, check_run_status),
    "sweep": Case(prepare_sweep, lambda deployment, _: sweep(deployment.services), check_sweep),
    "backfill": Case(old_files, call_backfill, check_backfill),
    "catalog": Case(prepare_catalog, lambda deployment, _: catalog(deployment.services), check_catalog),
    "promote": Case(
        lambda deployment: owned(deployment, "a", "b"), lambda deployment, _: ask(deployment, "a"), check_promote
    ),
    "start of the stream": Case(
        lambda _: None,
        lambda deployment, _: stream_control({"action": "start"}, deployment.services),
        check_window,
    ),
    "kill of the stream": Case(
        prepare_kill, lambda deployment, _: stream_control({"action": "kill"}, deployment.services), check_kill
    ),
}


def call_until_answered(deployment: Deployment, case: Case, prepared: Any) -> Any:
    """The function's answer, after repetitions as those of a state machine or a schedule.

    Only what a repetition can mend leaves the function meanwhile.
    """
    for _ in range(MAX_REPEATS):
        try:
            return with_product_errors(case.call)(deployment, prepared)
        except TransientError:
            deployment.faults.deliver()
            deployment.faults.reset()
            deployment.wait(INTERVAL)
    return pytest.fail("it never answers")


@pytest.mark.long
@pytest.mark.parametrize("fault", [lose_answer, delay, repeated])
@pytest.mark.parametrize("name", CASES)
def test_a_write_without_an_answer_loses_and_doubles_nothing(name: str, fault: Callable[[Faults, int], None]) -> None:
    case = CASES[name]
    for number in range(1, _number_of_writes(case) + 1):
        with new_deployment() as deployment:
            # Given one write whose answer is lost: it was carried out, is so later, or twice
            prepared = case.prepare(deployment)
            deployment.faults.reset()
            fault(deployment.faults, number)
            # When the function is repeated until it answers, and once more by the next schedule
            call_until_answered(deployment, case, prepared)
            deployment.faults.deliver()
            deployment.faults.reset()
            deployment.wait(INTERVAL)
            answer = call_until_answered(deployment, case, prepared)
            # Then the result is that of a run without faults
            case.check(deployment, prepared, answer)


def _number_of_writes(case: Case) -> int:
    with new_deployment() as deployment:
        prepared = case.prepare(deployment)
        deployment.faults.reset()
        answer = call_until_answered(deployment, case, prepared)
        case.check(deployment, prepared, answer)
        writes = len(deployment.faults.writes)
    assert writes
    return writes
