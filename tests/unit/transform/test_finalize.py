"""The end of an attempt: it is published, or given up so that nothing of it is left; a commit without an answer."""

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from lake.errors import LeaseLostError
from lake.layout import lake_key, quarantine_key
from lake.ledger import ManifestRow, State
from lake.ledger.transitions import Manifests
from lake.manifest_documents import read_exclusions, read_manifest
from lake.settings import ConvertSettings, Settings
from tests.unit.lake.world import PARTITION, World, upload
from transform import finalize
from transform.plan_attempt import Attempt
from transform.quarantine_writer import QuarantineContent
from transform.task_model import ConversionContext, FileFailure, JobServices, Split, SplitResult, Task, TaskResult

ROWS, LINES = 3, 5


def context(world: World) -> ConversionContext:
    services = JobServices(world.s3, world.ledger, world.resources, Settings("test"), "eu-central-1")
    spark: Any = None
    return ConversionContext(spark, services, "jr_1", world.clock, lambda _: False, lambda _: None)


def planned(world: World, row: ManifestRow) -> Attempt:
    """A claimed manifest with one task for each of its files."""
    claim = world.claimed(row)
    manifest = read_manifest(world.raw_s3, "control", claim.row, ("input",))
    tasks = tuple(
        Task(row.id, row.generation, PARTITION, number, (Split(file, 0, file.size),), (), "lake", "quarantine", "", ANY)
        for number, file in enumerate(manifest.files)
    )
    return Attempt(claim, manifest, {}, tasks, "2026-11-20T09:30:00Z", columns_full=False)


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


def test_an_attempt_that_meets_a_file_that_cannot_be_read_leaves_it_out_with_the_earlier_ones(world: World) -> None:
    # Given an attempt without one file, which cannot read another one
    attempt = planned(world, world.queued("a.json", "b.json", "c.json"))
    first, second, _ = attempt.manifest.files
    failed = replace(result_of(world, attempt.tasks[1]), failures=(FileFailure(second, "it is damaged"),))
    # When
    assert finalize.finalize(context(world), replace(attempt, excluded={first: "it is gone"}), [failed]) is None
    # Then
    after = world.row(attempt.manifest.id)
    assert after.reason == f"1 file cannot be read to their end (first: {second.uri}: it is damaged)"
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
        finalize.finalize(replace(context(world), log=lines.append), attempt, [result_of(world, attempt.tasks[0])])
    # Then
    row = world.row(attempt.manifest.id)
    assert (row.state, row.tries) == (state, tries)
    assert str(row.reason).startswith(str(reason))
    expected = f"the commit of manifest {row.id} got no answer: {error}; its ledger row decides"
    assert lines == ([] if error is LOST else [expected])
