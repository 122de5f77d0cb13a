"""The audit accepts results that add up and nothing else: each case takes one thing away."""

from dataclasses import replace

import pytest

from lake.commit import PendingObject, SourceCount, UploadedPart
from lake.errors import AuditError
from lake.manifest import Lane, Manifest, ObjectVersion, Partition
from lake.settings import ConvertSettings
from transform.audit import audit
from transform.plan_attempt import split_files
from transform.quarantine_writer import QuarantineContent
from transform.task_model import Split, SplitResult, Task, TaskResult

PARTITION = Partition("orders", "2026-03-04", 12)
PLAIN = ObjectVersion("input", "a.json", "e1", 100, "2026-03-04T12:00:00Z", "v1")
PACKED = ObjectVersion("input", "b.gz", "e2", 10, "2026-03-04T12:00:00Z", "v2")
MANIFEST = Manifest("m", Lane.BATCH, PARTITION, "2026-03-04T12:00:00Z", (PLAIN, PACKED))
LEFT, RIGHT = split_files([PLAIN], (), 50)
WHOLE = Split(PACKED, 0, 10)

NOT_TILED = "do not cover it exactly once"


def task(number: int, *splits: Split) -> Task:
    return Task("m", 1, PARTITION, number, splits, (), "lake", "quarantine", "eu-central-1", ConvertSettings())


def counted(split: Split, rows: int, **changes: object) -> SplitResult:
    result = SplitResult(split, rows + 2, rows, 1, {"not JSON": 1}, split.size, split is WHOLE, f"at {split.start}")
    return replace(result, **changes)  # type: ignore[arg-type]


def pending(key: str, rows: int) -> PendingObject:
    return PendingObject("lake", key, f"upload-{key}", (UploadedPart("e", "AAAAAA=="),), "AAAAAA==", 1, rows)


def task_result(number: int, objects: tuple[PendingObject, ...], *splits: SplitResult) -> TaskResult:
    rejected = {
        ("line", item.split.file.uri, item.split.file.version, reason): count
        for item in splits
        for reason, count in item.rejects.items()
    }
    quarantine = (pending(f"q{number}", len(splits)),)
    content = QuarantineContent(1, len(splits), rejected)
    return TaskResult("m", number, objects, quarantine, splits, (), (), 5, (content,))


TASKS = (task(0, LEFT), task(1, RIGHT, WHOLE))
GOOD = (
    task_result(0, (pending("k0", 3),), counted(LEFT, 3)),
    task_result(1, (pending("k1", 4), pending("k2", 1)), counted(RIGHT, 4), counted(WHOLE, 1, bytes=999)),
)


def test_results_that_add_up_pass_in_the_order_of_the_manifest() -> None:
    plain, packed = audit(MANIFEST, TASKS, tuple(reversed(GOOD)))
    assert plain == SourceCount(PLAIN.uri, PLAIN.version, 100, 11, 7, 2, {"not JSON": 2}, "at 0", None)
    assert packed == SourceCount(PACKED.uri, PACKED.version, 10, 3, 1, 1, {"not JSON": 1}, "at 0", None)


def test_an_excluded_file_counts_nothing_and_has_its_reason() -> None:
    tasks = (task(0, LEFT), task(1, RIGHT), replace(task(2), excluded=((PACKED, "gone"),)))
    content = QuarantineContent(1, 1, {("file", PACKED.uri, PACKED.version, "gone"): 1})
    reference = TaskResult("m", 2, (), (pending("q2", 1),), (), (), (), 5, (content,))
    results = (GOOD[0], task_result(1, (pending("k1", 4),), counted(RIGHT, 4)), reference)
    _, packed = audit(MANIFEST, tasks, results)
    assert packed == SourceCount(PACKED.uri, PACKED.version, 10, 0, 0, 0, {}, None, "gone")
    with pytest.raises(AuditError, match=r"1 files of s3://input/b\.gz .* holds 0"):
        audit(MANIFEST, tasks, (*results[:2], replace(reference, quarantine=(), quarantine_contents=())))


@pytest.mark.parametrize(
    ("results", "message"),
    [
        (GOOD[:1], "2 tasks returned 1 result"),
        ((GOOD[0], GOOD[0]), "or results of other tasks"),
        (
            (GOOD[0], replace(GOOD[1], splits=(GOOD[1].splits[1],), objects=(pending("k1", 1),))),
            NOT_TILED,
        ),
        ((replace(GOOD[0], splits=(), objects=()), GOOD[1]), NOT_TILED),
        # No part of a file.
        ((GOOD[0], replace(GOOD[1], splits=GOOD[1].splits[:1], objects=(pending("k1", 4),))), NOT_TILED),
        ((replace(GOOD[0], splits=GOOD[0].splits * 2, objects=(pending("k0", 6),)), GOOD[1]), NOT_TILED),
        ((replace(GOOD[0], objects=(pending("k0", 2),)), GOOD[1]), "footers count 2"),
        ((replace(GOOD[0], splits=(counted(LEFT, 3, lines=6),)), GOOD[1]), "neither row nor reject nor blank"),
        ((replace(GOOD[0], splits=(counted(LEFT, 3, bytes=49),)), GOOD[1]), "do not add up to its 100 bytes"),
        ((replace(GOOD[0], objects=(pending("k1", 3),)), GOOD[1]), "objects of the same name"),
        ((replace(GOOD[0], quarantine=()), GOOD[1]), "are not the files that it wrote"),
        ((replace(GOOD[0], quarantine=(), quarantine_contents=()), GOOD[1]), "quarantine holds 1"),
        (
            (replace(GOOD[0], splits=(counted(Split(replace(PLAIN, key="x"), 0, 50), 3),)), GOOD[1]),
            "not one of its files",
        ),
    ],
)
def test_results_that_do_not_add_up_are_refused(results: tuple[TaskResult, ...], message: str) -> None:
    with pytest.raises(AuditError, match=message):
        audit(MANIFEST, TASKS, results)
