"""plan: requests that do not depend on each other are sent side by side, and rows are read many at a time."""

import threading
from collections import Counter
from typing import Any

import pytest

from lake.ledger import State
from router.services import write_document
from tests.load.request_counts import counted_requests
from tests.unit.lake.world import LEASE
from tests.unit.router.conftest import Deployment
from tests.unit.router.planning import HOURS, document, plan_overnight, planned

BARRIER_SECONDS = 30
"""Only a failing test waits for it."""


def counted_plan(deployment: Deployment) -> tuple[Counter[str], dict[str, Any]]:
    with counted_requests() as counts:
        answer = plan_overnight(deployment)
    return counts, answer


def test_run_documents_are_written_side_by_side_and_the_index_after_them(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given: two runs, and a write of a run document that ends only when that of the other run has begun
    deployment.configure(batch={"run_bytes": 1})
    for hour in HOURS[:2]:
        deployment.queued(f"{hour.hour}.json", partition=hour)
    keys, both_have_begun = list[str](), threading.Barrier(2)

    def write(services: Any, key: str, body: object) -> str:
        if "/runs/" in key:
            both_have_begun.wait(BARRIER_SECONDS)
        keys.append(key)
        return write_document(services, key, body)

    monkeypatch.setattr("router.plan.handler.write_document", write)
    # When
    answer = plan_overnight(deployment)
    # Then
    index = document(deployment, "s3://{bucket}/{key}".format(**answer["index"]))
    assert len({item["run"] for item in index}) == 2
    assert keys[2:] == [answer["index"]["key"], answer["summary"].removeprefix("s3://control/")]


@pytest.mark.parametrize("manifests", [1, 12])
def test_manifests_of_ended_runs_are_read_many_at_a_time(deployment: Deployment, manifests: int) -> None:
    # Given: manifests that a run held until it died
    deployment.glue.runs["batch-job"] = {"jr_dead": "FAILED"}
    for number in range(manifests):
        deployment.claimed(deployment.queued(f"{number}.json"), "jr_dead")
    deployment.wait(LEASE)
    # When
    counts, answer = counted_plan(deployment)
    # Then: one read of all before they are released, and one after it; one write for each
    assert counts["BatchGetItem"] == 2
    assert counts["GetItem"] == 0
    assert counts["UpdateItem"] == manifests + 1
    assert len(planned(deployment, answer)) == manifests
    assert {deployment.row(manifest).state for manifest in planned(deployment, answer)} == {State.QUEUED}


def test_a_queued_manifest_costs_no_request(deployment: Deployment) -> None:
    deployment.queued("first.json")
    one, _ = counted_plan(deployment)
    for number in range(8):
        deployment.queued(f"{number}.json")
    # When
    nine, answer = counted_plan(deployment)
    # Then
    assert nine == one
    assert (answer["runs"], answer["manifests"]) == (1, 9)
