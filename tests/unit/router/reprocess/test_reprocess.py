"""reprocess: manifests that have ended are queued once in their next generation; what is open stays as it is."""

from types import SimpleNamespace
from typing import Any

import pytest

from lake.ledger import Published
from lake.manifest import Lane
from router.plan.handler import plan
from router.requests import reprocess as handler_module
from tests.unit.lake.transitions import DOCUMENT, TOTALS
from tests.unit.router.conftest import Deployment
from tests.unit.router.reprocess.reprocessing import (
    ask,
    convert,
    counts,
    done,
    fail,
    failed,
    generations,
    owned,
    superseded,
)


def test_a_failed_manifest_is_queued_for_the_batch_lane_by_its_id(deployment: Deployment) -> None:
    # Given: a manifest of the stream lane that FAILED
    manifest = failed(deployment, "a", "b", lane=Lane.STREAM)
    # When
    answer = ask(deployment, manifests=[manifest])
    # Then: it is in the next plan, and the answer says what it was
    assert counts(answer) == {"queued": 1, "files": 2}
    assert (answer["bytes"], answer["token"]) == (200, None)
    row = deployment.row(manifest)
    assert (row.state, row.lane, row.generation, row.reason) == ("QUEUED", "batch", 2, None)
    assert plan({"execution": "overnight"}, deployment.services)["manifests"] == 1
    (message,) = answer["messages"]
    assert message == (
        f"manifest {manifest} (orders#2026-11-20T09, 2 files) is queued in generation 2; "
        "it was FAILED: gave up after 3 attempts"
    )
    assert answer["selection"] == {"dataset": "orders", "from": "2026-11-20T09", "to": "2026-11-20T09"}


def test_a_file_is_reprocessed_with_the_manifest_that_holds_it_now(deployment: Deployment) -> None:
    # Given: a manifest that was split, with one half FAILED and the other DONE
    source = owned(deployment, "a", "b", "c")
    first, second = superseded(deployment, source, ("a",), ("b", "c"))
    convert(deployment, first)
    fail(deployment, second)
    # When, Then: the file that was converted stays
    assert counts(ask(deployment, "a")) == {"converted": 1}
    assert counts(ask(deployment, "c", "b")) == {"queued": 1, "files": 2}
    assert generations(deployment, first, second) == [("DONE", 1), ("QUEUED", 2)]


def test_a_superseded_manifest_is_followed_to_all_its_successors(deployment: Deployment) -> None:
    source = owned(deployment, "a", "b")
    halves = superseded(deployment, source, ("a",), ("b",))
    for half in halves:
        fail(deployment, half)
    assert counts(ask(deployment, manifests=[source, halves[0]])) == {"queued": 2, "files": 2}


def test_a_manifest_with_unreadable_files_is_queued_and_one_without_is_not(deployment: Deployment) -> None:
    # Given: two DONE manifests; one left a file out, which is in the quarantine by reference
    partial, whole = done(deployment, "a", "b", unreadable=True), done(deployment, "c")
    # When
    answer = ask(deployment, manifests=[partial, whole])
    # Then: its next generation reads every file again, and what it has published stays
    assert counts(answer) == {"queued": 1, "converted": 1, "files": 2}
    row = deployment.row(partial)
    assert (row.state, row.exclusions, row.published) == ("QUEUED", None, Published(1, DOCUMENT, TOTALS))
    assert "files of it could not be read" in answer["messages"][0]
    assert "pass all to convert it again" in answer["messages"][1]


def test_open_manifests_stay_as_they_are(deployment: Deployment) -> None:
    queued, running = owned(deployment, "a"), owned(deployment, "b")
    deployment.claimed(deployment.row(running))
    answer = ask(deployment, manifests=[queued, running], only="all")
    assert counts(answer) == {"open": 2}
    assert "waits in the batch lane already: its next run converts it" in answer["messages"][0]
    assert "is RUNNING by run jr_1: wait until it has ended" in answer["messages"][1]


def test_what_the_ledger_does_not_know_is_counted(deployment: Deployment) -> None:
    unknown = "20261120T093000" + "0" * 20
    assert counts(ask(deployment, manifests=[unknown])) == {"unknown": 1}
    answer = ask(deployment, "nowhere")
    assert counts(answer) == {"unknown": 1}
    assert "never seen s3://input/orders/nowhere" in answer["messages"][0]


def test_a_dry_run_counts_and_writes_nothing(deployment: Deployment) -> None:
    manifest = failed(deployment, "a")
    answer = ask(deployment, "a", dryRun=True)
    assert counts(answer) == {"queued": 1, "files": 1}
    assert "would be queued in generation 2" in answer["messages"][0]
    assert deployment.faults.writes == []
    assert generations(deployment, manifest) == [("FAILED", 1)]


def test_a_request_queues_a_manifest_once_however_often_it_is_repeated(deployment: Deployment) -> None:
    # Given: a request whose manifest has been converted again since
    manifest = done(deployment, "a")
    ask(deployment, manifests=[manifest], only="all")
    convert(deployment, manifest)
    # When, Then
    assert counts(ask(deployment, manifests=[manifest], only="all")) == {"repeated": 1}
    assert generations(deployment, manifest) == [("DONE", 2)]
    # And: another request is another matter
    assert counts(ask(deployment, manifests=[manifest], only="all", request="request-2"))["queued"] == 1
    assert generations(deployment, manifest) == [("QUEUED", 3)]


def test_a_successor_that_cannot_be_read_stops_no_other(deployment: Deployment) -> None:
    # Given: the document of the only successor is gone, so the file is in it
    source, other = owned(deployment, "a"), failed(deployment, "b")
    (half,) = superseded(deployment, source, ("a",))
    deployment.raw_s3.delete_object(Bucket="control", Key=f"manifests/{half[:8]}/{half}.json")
    # When, Then
    assert counts(ask(deployment, "a", "b")) == {"queued": 1, "files": 1, "open": 1}
    assert generations(deployment, other) == [("QUEUED", 2)]


def test_an_invocation_without_a_request_id_uses_its_own(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given: Lambda repeats an asynchronous invocation with the same id
    monkeypatch.setattr(handler_module, "container_services", lambda: deployment.services)
    manifest = failed(deployment, "a")
    names = ("function_name", "memory_limit_in_mb", "invoked_function_arn", "aws_request_id")
    context: Any = SimpleNamespace(**{name: f"the-{name}" for name in names})
    # When, Then
    assert counts(handler_module.handler({"manifests": [manifest]}, context))["queued"] == 1
    assert counts(handler_module.handler({"manifests": [manifest]}, context)) == {"repeated": 1}
    assert deployment.row(manifest).request == "the-aws_request_id"
