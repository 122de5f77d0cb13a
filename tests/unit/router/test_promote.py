"""promote: queued files move from the batch lane to the stream lane; files that are not queued there are unchanged."""

import threading
from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest.mock import Mock, patch

import pytest
from botocore.exceptions import ClientError

from lake.errors import InvalidInputError
from lake.layout import INBOX, URGENT, manifest_of_pointer
from lake.ledger import State
from lake.ledger.transitions import Manifests
from lake.manifest import Lane
from lake.manifest_documents import read_manifest
from router import divide
from router.ownership.owner import RoutedArrival
from router.ownership.take import take_ownership
from router.requests import promote as move
from router.requests.promote import PARALLEL_MOVES, promote
from router.requests.selection import MAX_MESSAGES
from router.stream.runs import FailedStartsError
from tests.unit.lake.world import PARTITION, done, file_of
from tests.unit.router.conftest import Deployment
from tests.unit.router.owning import counts, orphan, owned
from tests.unit.router.planning import HOURS, collected


def ask(deployment: Deployment, *names: str, **fields: Any) -> dict[str, Any]:
    files = {"files": [f"s3://input/orders/{name}" for name in names]} if names else {}
    return promote({**files, **fields}, deployment.services)


def live(deployment: Deployment) -> dict[Lane, list[list[str]]]:
    """Names of the files of QUEUED manifests by lane, according to rows and documents."""
    found: dict[Lane, list[list[str]]] = {lane: [] for lane in Lane}
    for lane in Lane:
        for row in deployment.ledger.manifests.open(lane, State.QUEUED):
            manifest = read_manifest(deployment.raw_s3, "control", row, ("input",))
            assert (manifest.lane, manifest.partition) == (row.lane, row.partition)
            found[lane].append(sorted(file.key.split("/")[-1] for file in manifest.files))
    return {lane: sorted(names) for lane, names in found.items()}


def pointed(deployment: Deployment) -> set[str]:
    """The manifests of the urgent pointers: a promoted file does not wait for files of peak hours."""
    return {manifest_of_pointer(key) or "" for key in deployment.keys("control", f"{INBOX}{URGENT}")}


NOT_ALLOWED = ClientError({"Error": {"Code": "AccessDeniedException", "Message": "not allowed"}}, "StartJobRun")


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (NOT_ALLOWED, "not allowed): remove the cause, then the sweep starts it"),
        # No run starts by itself after it.
        (FailedStartsError("job", 9, "FAILED", None), "remove the cause, then run 'hybrid-router stream start'"),
    ],
)
def test_files_that_are_moved_where_no_run_may_be_started_are_reported_with_the_reason(
    deployment: Deployment, error: Exception, advice: str
) -> None:
    owned(deployment, "a")
    with patch.object(deployment.glue, "start_job_run", Mock(side_effect=error)):
        answer = ask(deployment, "a")
    assert counts(answer) == {"promoted": 1, "manifests": 1}
    assert answer["messages"][0].endswith(advice)


def test_manifests_of_a_selection_are_moved_concurrently(deployment: Deployment) -> None:
    # Given manifests that wait for the night, and a ledger that is slow
    for number in range(PARALLEL_MOVES):
        owned(deployment, f"{number}")
    together, supersede = threading.Barrier(PARALLEL_MOVES, timeout=10), Manifests.supersede

    def wait_then_supersede(*given: Any) -> bool:
        together.wait()
        return supersede(*given)

    # When, Then
    with patch.object(Manifests, "supersede", wait_then_supersede):
        assert counts(ask(deployment, dataset="orders")) == {"promoted": PARALLEL_MOVES, "manifests": PARALLEL_MOVES}


def test_a_file_leaves_its_manifest_for_the_stream_and_the_others_stay(deployment: Deployment) -> None:
    # Given: three files in one manifest of the batch lane
    source = owned(deployment, "a", "b", "c")
    made = deployment.row(source).created_at
    deployment.wait(timedelta(hours=9))
    # When
    answer = ask(deployment, "b")
    # Then: in two manifests, the urgent one with a pointer, and the stream runs
    assert counts(answer) == {"promoted": 1, "manifests": 1}
    assert live(deployment) == {Lane.STREAM: [["b"]], Lane.BATCH: [["a", "c"]]}
    row = deployment.row(source)
    assert (row.state, row.reason, len(row.superseded_by)) == ("SUPERSEDED", move.REASON, 2)
    # And the others have been waiting as long as before
    assert [deployment.row(name).created_at == made for name in row.superseded_by] == [False, True]
    assert pointed(deployment) == {row.superseded_by[0]}
    assert list(deployment.glue.runs["stream-job"].values()) == ["RUNNING"]
    (message,) = answer["messages"]
    assert message == f"s3://input/orders/b is now in the stream lane, in 1 manifest, no longer in {source}"


def test_more_manifests_than_a_transaction_takes_are_moved_one_after_the_other(deployment: Deployment) -> None:
    # Given: one successor more than a transaction takes, and a file that stays
    deployment.configure(stream={"manifest_files": 1})
    *moved, last = (f"{number:03d}" for number in range(move.MAX_SUCCESSORS + 2))
    owned(deployment, *moved, last)
    # When
    answer = ask(deployment, *moved)
    # Then: the remainder after the first supersede was the source of the next one
    assert counts(answer) == {"promoted": len(moved), "manifests": len(moved)}
    assert live(deployment) == {Lane.STREAM: [[name] for name in moved], Lane.BATCH: [[last]]}
    assert deployment.faults.writes.count("transact_write_items") == 2
    assert len(pointed(deployment)) == len(moved)


def test_a_manifest_that_changes_meanwhile_keeps_its_files(deployment: Deployment) -> None:
    # Given a manifest that a run claims before it is superseded
    row = deployment.row(owned(deployment, "a"))
    deployment.faults.pause = (2, lambda: deployment.claimed(row))
    # When, Then
    answer = ask(deployment, "a")
    assert counts(answer) == {"notMoved": 1}
    assert "changed meanwhile: promote its files again" in answer["messages"][0]


def test_repeating_a_promote_writes_its_pointer_again_and_moves_nothing(deployment: Deployment) -> None:
    owned(deployment, "a", "b")
    ask(deployment, "a")
    deployment.faults.writes.clear()
    answer = ask(deployment, "a")
    assert counts(answer) == {"inStream": 1}
    assert "waiting in the stream lane already" in answer["messages"][0]
    # Then the run that has just been started is not started again
    assert deployment.faults.writes == ["put_object"]


def test_files_are_followed_through_their_collection_and_promote(deployment: Deployment) -> None:
    # Given: two parts of an undivided collection, and two versions of a key
    for names in (("a", "b"), ("c", "d", "d")):
        files = [file_of(f"orders/{name}", version=f"v{number}") for number, name in enumerate(names)]
        routed = [RoutedArrival(file, PARTITION, Lane.BATCH, "test") for file in files]
        take_ownership(deployment.services, routed, {})
    assert counts(ask(deployment, "a", "d", dryRun=True)) == {"promoted": 3}
    # When: one file of each is promoted, one after the other
    assert counts(ask(deployment, "a")) == {"promoted": 1, "manifests": 1}
    assert counts(ask(deployment, "d", "a")) == {"promoted": 2, "manifests": 1, "inStream": 1}
    # Then
    assert live(deployment) == {Lane.STREAM: [["a"], ["d", "d"]], Lane.BATCH: [["b", "c"]]}


def test_a_dry_run_counts_and_writes_nothing(deployment: Deployment) -> None:
    deployment.configure(stream={"manifest_files": 1})
    owned(deployment, "a", "b", "c")
    owned(deployment, "urgent", lane=Lane.STREAM)
    answer = ask(deployment, "a", "b", "urgent", dryRun=True)
    assert counts(answer) == {"promoted": 2, "manifests": 2, "inStream": 1}
    message = next(message for message in answer["messages"] if "waiting" not in message)
    assert message.startswith("2 files (first: s3://input/orders/a) are to be in the stream lane")
    assert deployment.faults.writes == []


@pytest.mark.parametrize(
    ("prepare", "name", "message"),
    [
        (Deployment.claimed, "tooLate", "is being converted: wait for it"),
        (lambda world, row: world.committed(world.claimed(row)), "tooLate", "is being converted: wait for it"),
        (done, "tooLate", "is converted already: explain shows the result"),
        (
            lambda world, row: world.ledger.manifests.fail(row, "no memory", world.now),
            "tooLate",
            "is FAILED: when the cause is removed, run 'hybrid-router reprocess --manifest {id}'",
        ),
        (
            lambda world, row: world.ledger.manifests.force(done(world, row), world.now, "request"),
            "notMoved",
            "is to be reprocessed by the batch lane: start overnight to do it now",
        ),
    ],
)
def test_what_is_not_queued_for_its_first_publish_is_unchanged(
    deployment: Deployment, prepare: Any, name: str, message: str
) -> None:
    row = deployment.row(owned(deployment, "a"))
    prepare(deployment, row)
    before = deployment.row(row.id)
    deployment.faults.writes.clear()
    answer = ask(deployment, "a")
    assert counts(answer) == {name: 1}
    assert answer["messages"] == [f"s3://input/orders/a {message.format(id=row.id)}"]
    assert deployment.row(row.id) == before
    assert deployment.faults.writes == []


def test_unknown_and_ignored_files_and_those_without_a_manifest_yet_are_reported(deployment: Deployment) -> None:
    take_ownership(deployment.services, [], {file_of("orders/x.csv"): "its suffix is ignored"})
    orphan(deployment, "orders/a", PARTITION, Lane.BATCH)
    uris = ["s3://input/orders/nowhere", "s3://lake/orders/x", "s3://input/orders/x.csv", "s3://input/orders/a"]
    answer = ask(deployment, files=uris)
    assert counts(answer) == {"unknown": 2, "ignored": 1, "notRouted": 1}
    missing, elsewhere, ignored, early = answer["messages"]
    assert missing.startswith("the ledger has no row of s3://input/orders/nowhere: check the spelling")
    # No backfill finds objects in another bucket
    assert elsewhere.startswith("s3://lake/orders/x is not in the input bucket s3://input/: pass a file of it, or ")
    assert ignored == "s3://input/orders/x.csv is IGNORED: its suffix is ignored"
    assert early == "s3://input/orders/a is being routed right now: promote again in a few minutes"


def test_a_manifest_that_was_tried_is_promoted_with_all_attempts_left(deployment: Deployment) -> None:
    claim = deployment.claimed(deployment.row(owned(deployment, "a", "b")))
    assert deployment.ledger.manifests.release(claim, "no memory", deployment.now, "exclusions/x")
    assert counts(ask(deployment, "a")) == {"promoted": 1, "manifests": 1}
    (row,) = deployment.ledger.manifests.open(Lane.STREAM, State.QUEUED)
    assert (row.attempt, row.tries, row.exclusions) == (1, 0, None)


def test_a_selection_continues_without_a_manifest_that_cannot_be_read(deployment: Deployment) -> None:
    owned(deployment, "a")
    broken = owned(deployment, "b")
    deployment.raw_s3.delete_object(Bucket="control", Key=f"manifests/{broken[:8]}/{broken}.json")
    assert counts(ask(deployment, dataset="orders")) == {"promoted": 1, "manifests": 1, "notMoved": 1}


def test_a_collection_that_cannot_be_divided_is_reported(deployment: Deployment) -> None:
    # Given a divided hour, and an hour that cannot be divided
    owned(deployment, "a")
    collected(deployment, "b", HOURS[2])
    denied = ClientError({"Error": {"Code": "AccessDenied", "Message": ""}}, "PutObject")
    with patch.object(divide, "write_division", Mock(side_effect=denied)):
        answer = ask(deployment, dataset="orders")
        assert counts(answer) == {"promoted": 1, "manifests": 1}
        assert "files of a collection are not moved, because it could not be divided" in answer["messages"][0]
        # A repetition ends with the error, because it moves nothing
        with pytest.raises(ClientError):
            ask(deployment, dataset="orders")


def test_too_much_at_once_is_refused_before_anything_is_done(deployment: Deployment) -> None:
    row = deployment.row(owned(deployment, "a", "b"))
    deployment.patch.setattr("router.requests.selection.MAX_NAMED", 1)
    deployment.patch.setattr(move, "MAX_QUEUED_FILES", 1)
    with pytest.raises(InvalidInputError, match="files has 2 entries, one promote takes 1: pass fewer"):
        ask(deployment, "a", "b")
    with pytest.raises(InvalidInputError, match="more than 1 file of the batch lane: pass"):
        ask(deployment, dataset="orders")
    # Given: more manifests; then memory holds only those that one promote takes
    queued = (replace(row, id=f"{number}") for number in range(9))
    deployment.patch.setattr(move, "open_rows", lambda *_: queued)
    with pytest.raises(InvalidInputError, match="more than 1 file of the batch lane: pass"):
        ask(deployment, dataset="orders")
    assert (next(queued).id, deployment.faults.writes) == ("2", [])


def test_messages_beyond_the_maximum_are_omitted(deployment: Deployment) -> None:
    answer = ask(deployment, *(f"{number}" for number in range(MAX_MESSAGES + 3)))
    assert (len(answer["messages"]), answer["omitted"], answer["unknown"]) == (MAX_MESSAGES, 3, MAX_MESSAGES + 3)
