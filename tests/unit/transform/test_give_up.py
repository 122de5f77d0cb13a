"""A manifest that is given up, its successors, and what a person reads about a fault of the environment."""

import errno
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError, NoCredentialsError, ReadTimeoutError

from lake.errors import AuditError, InvalidDocumentError, TransientError
from lake.ledger import ManifestRow, State
from lake.manifest import Lane, Manifest
from lake.manifest_documents import read_manifest, write_manifest
from lake.settings import BatchSettings, Settings
from lake.time import iso_utc
from tests.unit.lake.world import World, row_in_state
from transform.give_up import EnvironmentFault, fault_of, record_fault, set_apart, supersede_or_fail
from transform.source import UnreadableFileError
from transform.task_model import FileFailure, JobServices

SETTINGS = Settings("test", batch=BatchSettings(max_attempts=5))


def services(world: World) -> JobServices:
    return JobServices(world.s3, world.ledger, world.resources, SETTINGS, "eu-central-1")


def tried_row(world: World, lane: Lane, *names: str) -> ManifestRow:
    """QUEUED after an attempt; the clock is a minute later. In the stream lane its files are urgent."""
    manifest = replace(world.manifest(*names, lane=lane), urgent=lane == Lane.STREAM)
    write_manifest(world.raw_s3, "control", manifest)
    world.ledger.manifests.enqueue(manifest)
    world.ledger.manifests.release(world.claimed(world.row(manifest.id)).row, "it crashed", world.now)
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
    assert supersede_or_fail(services(world), row, world.now)
    # Then
    after = world.row(row.id)
    assert (after.state, after.reason) == (State.SUPERSEDED, "given up after 1 attempt: it crashed")
    found = successors(world, after)
    assert [[file.key for file in one.files] for one in found] == [
        [f"orders/{name}" for name in part] for part in divided
    ]
    kinds = {(one.lane, one.urgent, one.created_at) for one in found}
    # And halves are as old as the whole, so that an alarm sees how long their files have been waiting
    assert kinds == {(Lane.BATCH, False, iso_utc(world.now) if lane == Lane.STREAM else row.created_at)}
    assert {world.row(one.id).state for one in found} == {State.QUEUED}


def forced_row(world: World) -> ManifestRow:
    """A row of the stream lane that has FAILED and is forced nine days later."""
    failed = tried_row(world, Lane.STREAM, "a", "b")
    assert world.ledger.manifests.fail(failed, "it crashed", world.now)
    world.wait(timedelta(days=9))
    assert world.ledger.manifests.force(world.row(failed.id), world.now)
    return world.row(failed.id)


def test_a_manifest_that_was_forced_out_of_the_stream_lane_is_halved_in_the_batch_lane(world: World) -> None:
    row = forced_row(world)
    assert supersede_or_fail(services(world), row, world.now)
    kinds = {(one.lane, one.urgent, one.created_at) for one in successors(world, world.row(row.id))}
    assert kinds == {(Lane.BATCH, False, row.forced_at)}


def test_what_is_set_apart_of_a_forced_manifest_waits_since_then_in_the_batch_lane(world: World) -> None:
    # Given an attempt that may not read one of two files
    claim = world.claimed(forced_row(world))
    manifest = read_manifest(world.raw_s3, "control", claim.row, ("input",))
    fault = EnvironmentFault("denied", "it", passing=False, denied=True)
    failures = [FileFailure(manifest.files[0], "denied", denied=fault)]
    context: Any = SimpleNamespace(services=services(world), clock=world.clock)
    attempt: Any = SimpleNamespace(claim=claim, manifest=manifest)
    # When
    assert set_apart(context, attempt, failures, ()) is not None
    # Then
    kinds = {(one.lane, one.urgent, one.created_at) for one in successors(world, world.row(claim.row.id))}
    assert kinds == {(Lane.BATCH, False, claim.row.forced_at)}


def test_a_manifest_that_was_published_before_fails_and_stays_published(world: World) -> None:
    done = row_in_state(world, "DONE")
    assert world.ledger.manifests.force(done, world.now)
    row = world.row(done.id)
    assert supersede_or_fail(services(world), row, world.now)
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
        (answer("SlowDown", "PutObject", 503), "s3:PutObject did not succeed now", True),
        (ConnectTimeoutError(endpoint_url="https://s3"), "AWS could not be reached", True),
        (NoCredentialsError(), "there are no valid credentials", False),
        (answer("ExpiredToken", "GetObject"), "s3:GetObject (where the bucket has versions", False),
        (answer("NoSuchBucket", "UploadPart", 404), "a bucket or table is missing", False),
        (answer("KMS.DisabledException", "UploadPart"), "s3:PutObject is refused because of the KMS key", False),
        (OSError(errno.ENOSPC, "no space left on device"), "the disk of a worker is full", False),
        (OSError(errno.EMFILE, "too many open files"), "the machine of a worker did not do it: [Errno", False),
    ],
)
def test_the_cause_says_what_happened(error: Exception, cause: str, passing: bool) -> None:
    fault = fault_of(error)
    assert fault is not None
    assert fault.cause.startswith(cause)
    assert fault.passing == passing


def test_the_fault_is_found_behind_an_error_of_the_product() -> None:
    error = TransientError("s3://lake/k could not be uploaded")
    error.__cause__ = answer("AccessDenied", "UploadPart", 403)
    fault = fault_of(error)
    assert fault is not None
    assert fault.cause == "s3:PutObject is denied: s3://lake/k could not be uploaded"


@pytest.mark.parametrize("kind", [UnreadableFileError, InvalidDocumentError])
def test_what_belongs_to_a_file_or_a_document_is_no_fault_of_the_environment(kind: type[Exception]) -> None:
    error = kind("its encryption key cannot be used")
    error.__cause__ = answer("KMS.DisabledException", "GetObject")
    assert fault_of(error) is None


@pytest.mark.parametrize(
    "error", [AuditError("rows"), ValueError("AccessDenied"), answer("ValidationException", "Query")]
)
def test_any_other_error_counts(error: Exception) -> None:
    assert fault_of(error) is None


FAULT = EnvironmentFault("AWS could not be reached", "look at its network", passing=True)


def note_fault(world: World, *manifests: str) -> list[str]:
    """The lines of the job's log after FAULT was recorded."""
    lines: list[str] = []
    context: Any = SimpleNamespace(services=services(world), log=lines.append)
    record_fault(context, manifests, FAULT)
    return lines


# While another run is at work, the fault is not that of its attempt. The sweep may finish a publish before the verdict.
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


def test_a_fault_that_also_keeps_the_ledger_from_it_is_in_the_log(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_answer = ReadTimeoutError(endpoint_url="https://ledger")
    monkeypatch.setattr(world.ledger.manifests, "get", Mock(side_effect=no_answer))
    (line,) = note_fault(world, "m")
    assert line == f"the ledger does not have the reason, this log alone has it: {no_answer}"
