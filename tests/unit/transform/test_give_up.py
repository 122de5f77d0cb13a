"""The end of an attempt: a commit without an answer, an abandoned manifest, its successors.

And the message for a person about a fault of the environment.
"""

import errno
from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError, NoCredentialsError, ReadTimeoutError

from lake.errors import InvalidDocumentError, LeaseLostError, TransientError
from lake.faults import STILL_EXPIRED
from lake.layout import lake_key, quarantine_key
from lake.ledger import ManifestRow, State
from lake.ledger.transitions import Manifests
from lake.manifest import Lane, Manifest
from lake.manifest_documents import read_exclusions, read_manifest
from lake.time import iso_utc
from tests.unit.lake.world import World, row_in_state, upload
from tests.unit.transform.job import context_of, task_of
from transform import convert, finalize
from transform.claim_manifest import claim_or_finish
from transform.give_up import EnvironmentFault, fault_of, record_fault, set_apart, supersede_or_fail
from transform.plan_attempt import Attempt
from transform.quarantine_writer import QuarantineContent
from transform.source import UnreadableFileError
from transform.task_model import FileFailure, Split, SplitResult, Task, TaskResult

ROWS, LINES = 3, 5


def tried_row(world: World, lane: Lane, *names: str) -> ManifestRow:
    """QUEUED after an attempt; the clock is a minute later. In the stream lane its files are urgent."""
    manifest = replace(world.manifest(*names, lane=lane), urgent=lane == Lane.STREAM)
    world.ledger.manifests.release(world.claimed(world.enqueued(manifest)), "it crashed", world.now)
    world.wait(timedelta(minutes=1))
    return world.row(manifest.id)


def successors(world: World, row: ManifestRow) -> list[Manifest]:
    rows = map(world.row, row.superseded_by)
    return [read_manifest(world.raw_s3, "control", successor, ("input",)) for successor in rows]


@pytest.mark.parametrize(
    ("lane", "names", "divided"),
    [
        (Lane.STREAM, "a", ["a"]),
        (Lane.STREAM, "abc", ["abc"]),
        (Lane.BATCH, "ab", ["a", "b"]),
        (Lane.BATCH, "abc", ["a", "bc"]),
        (Lane.BATCH, "abcd", ["ab", "cd"]),
    ],
)
def test_a_manifest_of_the_batch_lane_is_halved_and_one_of_the_stream_lane_is_not(
    world: World, lane: Lane, names: str, divided: list[str]
) -> None:
    # Given
    row = tried_row(world, lane, *names)
    world.wait(timedelta(hours=9))
    # When
    assert supersede_or_fail(context_of(world), row)
    # Then
    after = world.row(row.id)
    assert (after.state, after.reason) == (State.SUPERSEDED, "given up after 1 attempt: it crashed")
    found = successors(world, after)
    assert [[file.key for file in one.files] for one in found] == [
        [f"orders/{name}" for name in part] for part in divided
    ]
    kinds = {(one.lane, one.urgent, one.created_at) for one in found}
    # And halves are as old as the whole, so that an alarm sees the waiting time of their files
    assert kinds == {(Lane.BATCH, False, iso_utc(world.now) if lane == Lane.STREAM else row.created_at)}
    # And they have all attempts left
    assert {(half.state, half.tries) for half in map(world.row, after.superseded_by)} == {(State.QUEUED, 0)}


def forced_row(world: World) -> ManifestRow:
    """A row of the stream lane that has FAILED and is forced nine days later."""
    failed = tried_row(world, Lane.STREAM, "a", "b")
    assert world.ledger.manifests.fail(failed, "it crashed", world.now)
    world.wait(timedelta(days=9))
    assert world.ledger.manifests.force(world.row(failed.id), world.now, "request")
    return world.row(failed.id)


@pytest.mark.parametrize("set_one_apart", [False, True])
def test_the_successors_of_a_forced_manifest_wait_since_then_in_the_batch_lane(
    world: World, set_one_apart: bool
) -> None:
    row = forced_row(world)
    # When it is abandoned, or its attempt may not read one of two files
    if set_one_apart:
        attempt: Any = planned(world, row)
        fault = EnvironmentFault("denied", "it", passing=False, denied=True)
        failures = [FileFailure(attempt.manifest.files[0], "denied", denied=fault)]
        assert set_apart(context_of(world), attempt, failures, ()) is not None
    else:
        assert supersede_or_fail(context_of(world), row)
    # Then
    kinds = {(one.lane, one.urgent, one.created_at) for one in successors(world, world.row(row.id))}
    assert kinds == {(Lane.BATCH, False, row.forced_at)}


def test_a_manifest_that_was_published_before_fails_and_stays_published(world: World) -> None:
    done = row_in_state(world, "DONE")
    assert world.ledger.manifests.force(done, world.now, "request")
    row = world.row(done.id)
    assert supersede_or_fail(context_of(world), row)
    after = world.row(done.id)
    assert (after.state, after.published) == (State.FAILED, done.published)


def answer(code: str, operation: str, status: int = 400, message: str = "no") -> ClientError:
    response: Any = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(response, operation)


REFUSED = "User: u is not authorized to perform:"


@pytest.mark.parametrize(
    ("error", "action"),
    [
        (answer("AccessDenied", "GetObject", 403), "s3:GetObject"),
        (answer("403", "HeadObject", 403), "s3:GetObject"),
        (answer("AccessDenied", "CreateMultipartUpload", 403), "s3:PutObject"),
        (answer("AccessDeniedException", "UpdateItem", 400, f"{REFUSED} dynamodb:UpdateItem"), "dynamodb:UpdateItem"),
        (answer("AccessDenied", "GetObject", 403, f"{REFUSED} kms:Decrypt on resource: k"), "kms:Decrypt"),
    ],
)
def test_a_missing_permission_is_named(error: ClientError, action: str) -> None:
    fault = fault_of(error, "s3://bucket")
    assert fault is not None
    assert not fault.passing
    assert str(fault).startswith(f"{action} ")
    assert "s3://bucket" in fault.cause


@pytest.mark.parametrize(
    ("error", "cause", "passing"),
    [
        (answer("SlowDown", "PutObject", 503), "s3:PutObject failed for now", True),
        (ConnectTimeoutError(endpoint_url="https://s3"), "AWS could not be reached", True),
        (NoCredentialsError(), "there are no valid credentials", False),
        (RuntimeError(STILL_EXPIRED), "there are no valid credentials", False),
        (answer("ExpiredToken", "GetObject"), "s3:GetObject (where the bucket has versions", False),
        (answer("NoSuchBucket", "UploadPart", 404), "a bucket or table is missing", False),
        (answer("KMS.DisabledException", "UploadPart"), "s3:PutObject is refused because of the KMS key", False),
        (OSError(errno.ENOSPC, "no space left on device"), "the disk of a worker is full", False),
        (OSError(errno.EMFILE, "too many open files"), "a worker's machine failed: [Errno", False),
    ],
)
def test_the_cause_states_what_happened(error: Exception, cause: str, passing: bool) -> None:
    fault = fault_of(error)
    assert fault is not None
    assert fault.cause.startswith(cause)
    assert fault.passing == passing


def test_the_fault_is_found_as_the_cause_of_a_product_error() -> None:
    error = TransientError("s3://lake/k could not be uploaded")
    error.__cause__ = answer("AccessDenied", "UploadPart", 403)
    fault = fault_of(error)
    assert fault is not None
    assert fault.cause == "s3:PutObject is denied: s3://lake/k could not be uploaded"


@pytest.mark.parametrize(
    "error",
    [
        UnreadableFileError("its encryption key cannot be used"),
        InvalidDocumentError("its encryption key cannot be used"),
    ],
)
def test_an_error_of_a_file_or_a_document_counts(error: Exception) -> None:
    error.__cause__ = answer("KMS.DisabledException", "GetObject")
    assert fault_of(error) is None


FAULT = EnvironmentFault("AWS could not be reached", "look at its network", passing=True)


def note_fault(world: World, *manifests: str) -> list[str]:
    """The lines of the job's log after FAULT was recorded."""
    lines: list[str] = []
    record_fault(context_of(world, log=lines.append), manifests, FAULT)
    return lines


# While another run works, the fault does not belong to its attempt. The sweep may finish a publish before the verdict.
@pytest.mark.parametrize(
    "states", [("RUNNING", "DONE", "-QUEUED", "QUEUED"), ("PUBLISHING", "-QUEUED"), ("RUNNING", "-PUBLISHING", "DONE")]
)
def test_the_first_manifest_that_waits_has_the_fault_of_the_environment(world: World, states: tuple[str, ...]) -> None:
    rows = [row_in_state(world, state.removeprefix("-")) for state in states]
    # When
    assert note_fault(world, "of another deployment", *(row.id for row in rows)) == []
    # Then
    for row, state in zip(rows, states, strict=True):
        assert world.row(row.id).reason == (str(FAULT) if state.startswith("-") else row.reason)


@pytest.mark.parametrize("no_answer", [ReadTimeoutError(endpoint_url="https://ledger"), RuntimeError(STILL_EXPIRED)])
def test_a_fault_that_also_keeps_the_ledger_from_it_is_in_the_log(
    world: World, monkeypatch: pytest.MonkeyPatch, no_answer: Exception
) -> None:
    monkeypatch.setattr(world.ledger.manifests, "get", Mock(side_effect=no_answer))
    (line,) = note_fault(world, "m")
    assert line == f"the reason could not be recorded in the ledger, only this log has it: {no_answer}"


def planned(world: World, row: ManifestRow) -> Attempt:
    """A claimed manifest with one task for each of its files."""
    claim = world.claimed(row)
    manifest = read_manifest(world.raw_s3, "control", claim, ("input",))
    tasks = tuple(
        replace(task_of(Split(file, 0, file.size), number=number), manifest=row.id, partition=manifest.partition)
        for number, file in enumerate(manifest.files)
    )
    return Attempt(claim, manifest, {}, tasks, "2026-11-20T09:30:00Z", columns_full=False)


def result_of(world: World, task: Task) -> TaskResult:
    """Three rows, a blank line and a rejected line, uploaded."""
    (split,) = task.splits
    body = f'{{"uri": "{split.file.uri}"}}'.encode()
    names = (task.partition, task.manifest, task.generation, task.number)
    parquet = upload(world.raw_s3, "lake", lake_key(*names), b"rows of " + body, ROWS)
    rejected = upload(world.raw_s3, "quarantine", quarantine_key(*names), body, 1)
    content = QuarantineContent(len(body), 1, {("line", split.file.uri, split.file.version, "not JSON"): 1})
    counts = SplitResult(split, LINES, ROWS, 1, {"not JSON": 1}, split.size, False, "not JSON at byte 7")
    return TaskResult(
        task.manifest, task.number, (parquet,), (rejected,), (counts,), (f"c{task.number}",), (), 500, (content,)
    )


def test_an_attempt_that_meets_a_file_that_cannot_be_read_leaves_it_out_with_the_earlier_ones(world: World) -> None:
    # Given an attempt without one file, which cannot read another one
    attempt = planned(world, world.queued("a.json", "b.json", "c.json"))
    first, second, _ = attempt.manifest.files
    failed = replace(result_of(world, attempt.tasks[1]), failures=(FileFailure(second, "it is damaged"),))
    # When
    assert finalize.finalize(context_of(world), replace(attempt, excluded={first: "it is gone"}), [failed]) is None
    # Then
    after = world.row(attempt.manifest.id)
    assert after.reason == f"1 file cannot be read to the end (first: {second.uri}: it is damaged)"
    left_out = read_exclusions(world.raw_s3, "control", after.exclusions, attempt.manifest)
    assert left_out == {first: "it is gone", second: "it is damaged"}


NO_ANSWER = ReadTimeoutError(endpoint_url="https://ledger")
DEFECT = ClientError({"Error": {"Code": "ValidationException", "Message": "no"}}, "UpdateItem")
"""Not a fault of the environment: a repetition would be refused as well."""
LOST = LeaseLostError("run-2 has taken it over")


@pytest.mark.parametrize(
    ("error", "applied", "state", "tries", "reason"),
    [
        (NO_ANSWER, True, State.DONE, 1, None),
        # The client's second request finds the first one applied.
        (LOST, True, State.DONE, 1, None),
        (LOST, False, State.QUEUED, 1, str(LOST)),
        (DEFECT, False, State.QUEUED, 1, str(DEFECT)),
        # The commit was not rejected, so no try is used up.
        (NO_ANSWER, False, State.QUEUED, 0, "AWS could not be reached"),
    ],
)
def test_a_commit_that_is_refused_or_gets_no_answer_is_settled_by_the_row(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    applied: bool,
    state: State,
    tries: int,
    reason: str | None,
) -> None:
    # Given a ledger that answers the commit with an error, perhaps after applying it
    commit = Manifests.commit

    def answer(*given: Any) -> None:
        if applied:
            commit(*given)
        raise error

    monkeypatch.setattr(Manifests, "commit", answer)
    attempt, lines = planned(world, world.queued("a.json")), list[str]()
    context = context_of(world, log=lines.append)
    # When the attempt ends, and the next round reads the row of a committed manifest
    outcomes = convert._Conversion(context)._finalize_all([attempt], [result_of(world, attempt.tasks[0])], Mock())
    if applied:
        claim_or_finish(context, attempt.manifest.id)
    # Then
    row = world.row(attempt.manifest.id)
    assert (row.state, row.tries) == (state, tries)
    assert str(row.reason).startswith(str(reason))
    assert [outcome.unanswered for outcome in outcomes] == ([True] if error is NO_ANSWER else [])
    assert f"its attempt is abandoned unless it was committed: {error}" in lines[0].replace(
        "AWS could not be reached: ", ""
    )
