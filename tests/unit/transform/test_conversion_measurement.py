"""What a conversion measured: plain and compressed files apart, by what the reader found."""

from __future__ import annotations

from dataclasses import replace

from lake.commit import PendingObject, UploadedPart
from lake.ledger import DatasetMeasurement
from lake.manifest import ObjectVersion
from transform.plan_attempt import measure_conversion
from transform.task_model import Split, SplitResult, TaskResult

PLAIN = ObjectVersion("input", "d/a.json", "e1", 100, "2026-03-04T12:00:00Z", "v1")
PACKED = ObjectVersion("input", "d/b.json", "e2", 40, "2026-03-04T12:00:00Z", "v2")


def result(milliseconds: int, output: int, *splits: tuple[ObjectVersion, int, int]) -> TaskResult:
    """A task's result; a split is the file, the stored bytes and the bytes of NDJSON."""
    counted = [
        SplitResult(Split(file, 0, stored), 1, 1, 0, {}, size, file is PACKED, None) for file, stored, size in splits
    ]
    pending = PendingObject("lake", "key", "upload", (UploadedPart("e", "AAAAAA=="),), "AAAAAA==", output, 1)
    return TaskResult("m", 0, (pending,), (), tuple(counted), (), (), milliseconds)


def test_tasks_of_one_kind_count_for_it_alone() -> None:
    tasks = [result(1000, 20, (PLAIN, 100, 100)), result(4000, 60, (PACKED, 40, 300))]
    assert measure_conversion(tasks) == DatasetMeasurement(140, 80, 5000, 40, 4000)


def test_the_time_of_a_task_of_both_kinds_is_divided_by_their_ndjson() -> None:
    task = result(4000, 80, (PLAIN, 100, 100), (PACKED, 40, 300))
    assert measure_conversion([task]) == DatasetMeasurement(140, 80, 4000, 40, 3000)


def test_nothing_is_lost_between_the_kinds() -> None:
    tasks = [replace(result(333, 7, (PLAIN, 10, 11), (PACKED, 3, 22)), number=number) for number in range(9)]
    found = measure_conversion(tasks)
    assert found.task_milliseconds == 9 * 333
    assert 0 < found.compressed_milliseconds < found.task_milliseconds
