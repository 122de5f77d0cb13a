"""The end of an attempt: it is published, or given up so that nothing of it is left; a commit without an answer."""

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from lake.commit import read_commit
from lake.errors import LeaseLostError
from lake.layout import lake_key, quarantine_key
from lake.ledger import CostShare, ManifestRow, State
from lake.ledger.transitions import Manifests
from lake.manifest import ObjectVersion
from lake.manifest_documents import read_exclusions, read_manifest
from lake.settings import ConvertSettings, Settings
from tests.unit.lake.world import PARTITION, World, upload
from transform import finalize
from transform.outcome import ConversionOutcome
from transform.plan_attempt import Attempt
from transform.quarantine_writer import QuarantineContent
from transform.task_model import ConversionContext, FileFailure, JobServices, Split, SplitResult, Task, TaskResult

ROWS, LINES = 3, 5


def context(world: World, column_limit: int = 100) -> ConversionContext:
    settings = Settings("test", convert=ConvertSettings(column_limit=column_limit))
    services = JobServices(world.s3, world.ledger, world.resources, settings, "eu-central-1")
    spark: Any = None
    return ConversionContext(spark, services, "jr_1", world.clock, lambda _: False, lambda _: None)


def planned(
    world: World, row: ManifestRow, excluded: dict[ObjectVersion, str] | None = None, *, columns_full: bool = False
) -> Attempt:
    """A claimed manifest with one task for each of its files that are not excluded."""
    claim = world.claimed(row)
    manifest = read_manifest(world.raw_s3, "control", claim.row, ("input",))
    files = [file for file in manifest.files if file not in (excluded or {})]
    tasks = tuple(
        Task(row.id, row.generation, PARTITION, number, (Split(file, 0, file.size),), (), "lake", "quarantine", "", ANY)
        for number, file in enumerate(files)
    )
    return Attempt(claim, manifest, excluded or {}, tasks, "2026-11-20T09:30:00Z", columns_full)


ANY = ConvertSettings()


def result_of(world: World, task: Task) -> TaskResult:
    """Three rows, a blank line and a rejected one, uploaded."""
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


def results(world: World, attempt: Attempt) -> list[TaskResult]:
    """In another order than that of the tasks."""
    return [result_of(world, task) for task in reversed(attempt.tasks)]


def uploads(world: World, bucket: str) -> list[str]:
    return [item["Key"] for item in world.raw_s3.list_multipart_uploads(Bucket=bucket).get("Uploads", [])]


def assert_nothing_is_left(world: World) -> None:
    for bucket in ("lake", "quarantine"):
        assert (world.keys(bucket), uploads(world, bucket)) == ([], [])


def written_bytes(found: list[TaskResult]) -> int:
    return sum(item.size for result in found for item in result.uploaded)


def done(row: ManifestRow, found: list[TaskResult]) -> ConversionOutcome:
    share = CostShare("orders", 0, 200, 2, 1, 1000, 4, written_bytes(found))
    return ConversionOutcome(row.id, State.DONE, 2 * ROWS, 2, None, converted=share)


def test_what_adds_up_is_published_and_measured(world: World) -> None:
    # Given two files
    attempt = planned(world, world.queued("a.json", "b.json"))
    row = attempt.claim.row
    found = results(world, attempt)
    # When, Then
    assert finalize.finalize(context(world), attempt, found) == done(row, found)
    after = world.row(row.id)
    assert after.state == State.DONE
    for bucket in ("lake", "quarantine"):
        assert (len(world.keys(bucket)), uploads(world, bucket)) == (2, [])
    assert after.published is not None
    document = read_commit(world.raw_s3, "control", after.published.document)
    assert [(source.uri, source.rows) for source in document.sources] == [(f.uri, ROWS) for f in attempt.manifest.files]
    assert [item.key for item in document.objects] == world.keys("lake")
    assert (document.attempt, document.run, document.started_at) == (1, "jr_1", "2026-11-20T09:30:00Z")
    dataset = world.ledger.datasets.get("orders")
    assert dataset is not None
    assert dataset.columns == ("c0", "c1") == document.new_columns
    assert (dataset.measured.input_bytes, dataset.measured.plain.rest) == (200, (200, 1000))


def test_an_attempt_that_meets_files_that_cannot_be_read_goes_on_without_them(world: World) -> None:
    # Given an attempt without one file, which cannot read another one
    row = world.queued("a.json", "b.json", "c.json")
    first, second, _ = read_manifest(world.raw_s3, "control", row, ("input",)).files
    attempt = planned(world, row, {first: "it is gone"})
    found = results(world, attempt)
    found[0] = replace(found[0], failures=(FileFailure(second, "it is damaged"),))
    # When
    assert finalize.finalize(context(world), attempt, found) is None
    # Then the next attempt leaves out both, and nothing of this one is left
    after = world.row(row.id)
    assert after.reason == f"1 file cannot be read to their end (first: {second.uri}: it is damaged)"
    left_out = read_exclusions(world.raw_s3, "control", after.exclusions, attempt.manifest)
    assert left_out == {first: "it is gone", second: "it is damaged"}
    assert (after.state, after.tries) == (State.QUEUED, 1)
    assert_nothing_is_left(world)


def test_what_does_not_add_up_is_given_up(world: World) -> None:
    attempt = planned(world, world.queued("a.json"))
    (found,) = results(world, attempt)
    wrong = replace(found, splits=(replace(found.splits[0], rows=ROWS + 1, lines=LINES + 1),))
    assert finalize.finalize(context(world), attempt, [wrong]) is None
    after = world.row(attempt.manifest.id)
    assert (after.state, after.tries) == (State.QUEUED, 1)
    assert "footers count 3" in str(after.reason)
    assert_nothing_is_left(world)


@pytest.mark.parametrize("columns_full", [False, True])
def test_an_attempt_whose_columns_have_no_room_is_repeated_with_frozen_ones(world: World, columns_full: bool) -> None:
    attempt = planned(world, world.queued("a.json", "b.json"), columns_full=columns_full)
    assert finalize.finalize(context(world, column_limit=1), attempt, results(world, attempt)) is None
    after = world.row(attempt.manifest.id)
    # It is tried again for ever unless an attempt with frozen columns counts.
    assert (after.state, after.tries) == (State.QUEUED, 1 if columns_full else 0)
    assert after.reason == (
        "dataset orders has no room for 1 of its new columns (first: c1): it is converted again, and their keys go to "
        "_rescued"
    )
    assert world.keys("control", "commits/") == []
    assert_nothing_is_left(world)


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
        (LOST, False, State.QUEUED, 1, finalize.COMMIT_UNSETTLED),
        (DEFECT, False, State.QUEUED, 1, finalize.COMMIT_UNSETTLED),
        # Nothing is said against the commit, so no try is used up.
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
    # Given a ledger that answers the commit with an error, perhaps after it has applied it
    commit = Manifests.commit

    def answer(*given: Any) -> None:
        if applied:
            commit(*given)
        raise error

    monkeypatch.setattr(Manifests, "commit", answer)
    attempt, lines = planned(world, world.queued("a.json")), list[str]()
    # When
    with pytest.raises(ReadTimeoutError) if tries == 0 else nullcontext():
        finalize.finalize(replace(context(world), log=lines.append), attempt, results(world, attempt))
    # Then
    row = world.row(attempt.manifest.id)
    assert (row.state, row.tries) == (state, tries)
    assert str(row.reason).startswith(str(reason))
    expected = f"the commit of manifest {row.id} got no answer: {error}; its ledger row decides"
    assert lines == ([] if error is LOST else [expected])
