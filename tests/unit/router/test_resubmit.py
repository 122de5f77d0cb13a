"""Repaired lines become one file of their hour: recorded once, owned once, whatever crashes or races."""

from datetime import timedelta
from typing import Any

import pytest

from lake.documents import encode_body, put_document
from lake.errors import InvalidDocumentError, InvalidInputError, OwnershipError
from lake.layout import INTENTS, RESUBMISSIONS, resubmission_key, resubmitted_lines_key
from lake.ledger import ResubmissionRow
from lake.manifest import Lane, Partition, new_manifest_id
from lake.manifest_documents import RejectedLines, Resubmission
from router.ownership.resolve import OWNER_GRACE
from router.requests.reprocess import reprocess
from router.requests.resubmit import resubmit
from router.sweep.handler import sweep
from tests.unit.lake.faults import Crash
from tests.unit.lake.world import PARTITION
from tests.unit.router.conftest import Deployment
from tests.unit.router.owning import convert, done, failed

SOURCE = "s3://input/orders/a"
WRITES = ("intent", "resubmission", "arrival", "document", "part", "end of the intent")


def lines_of(manifest: str, *offsets: int, generation: int = 1) -> tuple[RejectedLines, ...]:
    return (RejectedLines(SOURCE, "v1", manifest, generation, offsets),)


def uploaded(deployment: Deployment, rejected: tuple[RejectedLines, ...], partition: Partition = PARTITION) -> str:
    """Put the lines and the document of a resubmission into the control bucket, as the command does; return its id."""
    resubmission = Resubmission(new_manifest_id(deployment.now), partition, rejected)
    body = b'{"a":1}\n' * resubmission.lines
    deployment.raw_s3.put_object(Bucket="control", Key=resubmitted_lines_key(resubmission.name), Body=body)
    document = encode_body(resubmission)
    put_document(deployment.raw_s3, "control", resubmission_key(resubmission.name), document)
    return resubmission.name


def request(deployment: Deployment, name: str) -> dict[str, Any]:
    return resubmit({"resubmission": name}, deployment.services)


def recorded(deployment: Deployment) -> list[ResubmissionRow]:
    return deployment.ledger.resubmissions.of(PARTITION)


def manifests_of_lines(deployment: Deployment) -> list[str]:
    """Keys of the lines that live manifests convert, after every collection is divided."""
    return [file.key for file in deployment.waiting_files() if file.key.startswith(RESUBMISSIONS)]


def test_the_lines_are_one_file_of_the_hour_that_they_came_from(deployment: Deployment) -> None:
    # Given: rejected lines, a day that has passed, and a stage that keeps versions of its documents
    deployment.keep_versions("control")
    manifest = done(deployment, "a")
    deployment.wait(timedelta(days=1))
    name = uploaded(deployment, lines_of(manifest, 0, 20))
    deployment.faults.reset()
    # When
    answer = request(deployment, name)
    # Then
    assert len(deployment.faults.writes) == len(WRITES), deployment.faults.writes
    (row,) = deployment.waiting()
    assert (row.partition, row.lane, row.files) == (PARTITION, Lane.BATCH, 1)
    assert answer == {"resubmission": name, "partition": str(PARTITION), "lines": 2, "messages": []}
    assert manifests_of_lines(deployment) == [resubmitted_lines_key(name)]
    assert deployment.keys("control", INTENTS) == []
    # And the jobs may read documents by key alone
    assert [row.file.version_id for row in recorded(deployment)] == [None]


def test_a_repetition_changes_nothing(deployment: Deployment) -> None:
    name = uploaded(deployment, lines_of(done(deployment, "a"), 0))
    first = request(deployment, name)
    # When: the object of the lines is written again
    deployment.raw_s3.put_object(Bucket="control", Key=resubmitted_lines_key(name), Body=b'{"b":2}\n')
    deployment.wait(timedelta(hours=1))
    # Then
    assert request(deployment, name) == first
    assert len(recorded(deployment)) == 1
    assert manifests_of_lines(deployment) == [resubmitted_lines_key(name)]


def test_a_line_is_resubmitted_once_although_the_hour_was_reprocessed(deployment: Deployment) -> None:
    # Given: a resubmitted line, whose file was converted again and rejected it again
    manifest = done(deployment, "a")
    request(deployment, uploaded(deployment, lines_of(manifest, 0)))
    deployment.ledger.manifests.force(deployment.row(manifest), deployment.now, "request")
    convert(deployment, manifest)
    # When, then
    again = uploaded(deployment, lines_of(manifest, 0, 20, generation=2))
    with pytest.raises(InvalidInputError, match=r"1 line was resubmitted before, .* at byte 0 of s3://input/orders/a"):
        request(deployment, again)
    assert len(recorded(deployment)) == 1
    assert deployment.keys("control", INTENTS) == []
    # And the other line can be resubmitted
    request(deployment, uploaded(deployment, lines_of(manifest, 20, generation=2)))
    assert [row.lines for row in recorded(deployment)] == [1, 1]


@pytest.mark.parametrize("after", [1, 2, 3])
def test_one_of_two_concurrent_requests_with_a_common_line_is_refused(deployment: Deployment, after: int) -> None:
    # Given: another retry of an overlapping set, between two writes of the first one
    manifest = done(deployment, "a")
    first, second = (uploaded(deployment, lines_of(manifest, 0, other)) for other in (20, 40))
    outcomes: list[str] = []

    def attempt(name: str) -> None:
        try:
            outcomes.append(request(deployment, name)["resubmission"])
        except (InvalidInputError, OwnershipError):
            outcomes.append("refused")

    deployment.faults.reset()
    deployment.faults.pause = (after, lambda: attempt(second))
    # When
    attempt(first)
    # Then
    assert sorted(outcomes) == sorted(["refused", recorded(deployment)[0].name])
    assert len(recorded(deployment)) == 1
    assert len(manifests_of_lines(deployment)) == 1
    # And the sweep deletes the intent of the other one
    deployment.wait(2 * OWNER_GRACE)
    sweep(deployment.services)
    assert deployment.keys("control", INTENTS) == []


@pytest.mark.parametrize("number", range(1, len(WRITES) + 1))
def test_a_process_that_dies_leaves_nothing_that_a_repetition_or_the_sweep_cannot_end(
    deployment: Deployment, number: int
) -> None:
    name = uploaded(deployment, lines_of(done(deployment, "a"), 0))
    deployment.faults.reset()
    deployment.faults.crash_before = number
    with pytest.raises(Crash):
        request(deployment, name)
    # When: the sweep runs first
    deployment.faults.reset()
    deployment.wait(2 * OWNER_GRACE)
    sweep(deployment.services)
    # Then: the recorded lines have a manifest, the others have none; the intent is deleted
    assert manifests_of_lines(deployment) == [resubmitted_lines_key(name)] * len(recorded(deployment))
    assert deployment.keys("control", INTENTS) == []
    # And a repetition completes it
    request(deployment, name)
    assert manifests_of_lines(deployment) == [resubmitted_lines_key(name)]


def test_lines_that_may_be_rejected_no_longer_are_refused(deployment: Deployment) -> None:
    # Given manifests that failed, are being converted again, were converted again, and are of another hour
    manifest = done(deployment, "a")
    waiting, other = done(deployment, "b"), done(deployment, "c", partition=Partition("orders", "2026-11-20", 8))
    deployment.ledger.manifests.force(deployment.row(waiting), deployment.now, "request")
    cases = {
        lines_of(failed(deployment, "d"), 0): "which is FAILED, no longer match the export: when it is DONE",
        lines_of(waiting, 0): "which is QUEUED",
        lines_of(manifest, 0, generation=2): "which is DONE",
        lines_of(other, 0): "is not one of orders#2026-11-20T09",
        lines_of(manifest, 0, 0): "takes 1 to 100,000 lines, each once",
        (): "takes 1 to 100,000 lines",
    }
    for rejected, problem in cases.items():
        with pytest.raises(InvalidInputError, match=problem):
            request(deployment, uploaded(deployment, rejected))
    assert recorded(deployment) == []


def test_a_changed_document_of_an_earlier_one_stops_the_next(deployment: Deployment) -> None:
    manifest = done(deployment, "a")
    first = uploaded(deployment, lines_of(manifest, 0))
    request(deployment, first)
    emptied = encode_body(Resubmission(first, PARTITION, lines_of(manifest)))
    put_document(deployment.raw_s3, "control", resubmission_key(first), emptied)
    with pytest.raises(InvalidDocumentError, match="was changed after the ledger recorded it"):
        request(deployment, uploaded(deployment, lines_of(manifest, 0)))


@pytest.mark.parametrize("after", [1, 2, 3])
def test_a_reprocess_or_its_concurrent_resubmission_warns(deployment: Deployment, after: int) -> None:
    # Given a reprocess of the hour before one of the writes: the intent, the row, or the arrival
    name = uploaded(deployment, lines_of(done(deployment, "a"), 0))
    event = {"dataset": "orders", "from": PARTITION.stamp, "to": PARTITION.stamp, "all": True, "request": "r"}
    messages: list[str] = []
    deployment.faults.reset()
    deployment.faults.pause = (after, lambda: messages.extend(reprocess(event, deployment.services)["messages"]))
    # When
    messages += request(deployment, name)["messages"]
    # Then
    assert sum("resubmitted: if a setting" in message for message in messages) >= 1
