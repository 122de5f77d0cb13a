"""A task without Spark and S3: every split size gives the same rows and rejects, and the audit accepts them.

A file that uses too much processor time is excluded with a reason; waiting for S3 uses none.
"""

import errno
import gzip
import itertools
import json
import pickle
import tempfile
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ndjson_arrow import can_split

from lake.commit import PendingObject
from lake.manifest import Lane, Manifest, ObjectVersion
from lake.settings import ConvertSettings, parse_settings
from tests.oracle import ndjson_oracle
from tests.unit.transform.job import PARTITION, FakeSource, pending, task_of
from transform import run_task as module
from transform.audit import audit
from transform.plan_attempt import HEAD_BYTES, pack_tasks, split_files
from transform.run_task import SlowFileError, SplitDeadline, run_partition, run_task
from transform.source import UnreadableNowError
from transform.task_model import GRACE_SECONDS, Split, Task, TaskResult, stream_seconds

LINE = st.sampled_from(
    [
        b'{"a":1.10}',
        b'{"a":"\xc3\xa4\\n","B":[1, 2]}',
        b'{"date":null,"c":"x"}',
        b"",
        b"  \t",
        b"broken",
        b"[1]",
        b'{"a":"\xff"}',
    ]
)
BODY = st.builds(
    lambda lines, ends, last: b"".join(line + end for line, end in zip(lines, ends, strict=False)) + last,
    st.lists(LINE, max_size=12),
    st.lists(st.sampled_from([b"\n", b"\r\n"]), min_size=12, max_size=12),
    st.one_of(st.just(b""), LINE),
)


class ReadingUploads:
    """Uploads that read each file immediately, as a reader of the lake would."""

    def __init__(self) -> None:
        self.rows: list[dict[str, str]] = []
        self.rejected: list[tuple[int, str]] = []

    def add(self, path: Path, bucket: str, key: str, rows: int) -> Future[PendingObject]:
        if bucket == "lake":
            table = pq.read_table(path).to_pylist()
            self.rows += [{name: value for name, value in row.items() if value is not None} for row in table]
        else:
            records = [json.loads(line) for line in path.read_bytes().splitlines()]
            self.rejected += [(record["offset"], record["reason"]) for record in records]
        future: Future[PendingObject] = Future()
        future.set_result(pending(key, rows, bucket, path.stat().st_size))
        return future


def version(key: str, body: bytes) -> ObjectVersion:
    return ObjectVersion("input", key, "e", len(body), "2026-03-04T12:00:00Z", "v")


def run(
    files: dict[str, bytes],
    split_bytes: int,
    target: int,
    *,
    lost: dict[str, bytes] | None = None,
    **settings: Any,
) -> tuple[list[Task], list[TaskResult], ReadingUploads]:
    bodies = {**files, **(lost or {})}
    versions = [version(key, body) for key, body in bodies.items()]
    unsplit = {item for item in versions if not can_split(bodies[item.key][:HEAD_BYTES])}
    packed = pack_tasks(split_files(versions, unsplit, split_bytes), target, 1.0)
    options = {"split_bytes": split_bytes, "target_file_bytes": target, **settings}
    tasks = [task_of(*part, number=number, known=("c",), **options) for number, part in enumerate(packed)]
    reads, results = ReadingUploads(), []
    for task in tasks:
        with tempfile.TemporaryDirectory() as folder:
            results.append(run_task(task, FakeSource(files).fetch, reads.add, Path(folder)))
    return tasks, results, reads


@settings(max_examples=60)
@given(BODY, BODY, st.integers(1, 150), st.integers(20, 400))
def test_every_split_size_gives_the_same_rows_and_rejects(
    first: bytes, second: bytes, split_bytes: int, target: int
) -> None:
    files = {"a.json": first, "b.json.gz": gzip.compress(second, mtime=0)}
    tasks, results, reads = run(files, split_bytes, target)
    expected = [ndjson_oracle.read(first), ndjson_oracle.read(second)]
    assert reads.rows == [row for outcome in expected for _, row in outcome.rows]
    assert reads.rejected == [(offset, reason) for outcome in expected for offset, _, reason, _ in outcome.rejects]
    manifest = Manifest("m", Lane.BATCH, PARTITION, "", tuple(version(key, body) for key, body in files.items()))
    sources = audit(manifest, tasks, results)
    assert [source.lines for source in sources] == [outcome.lines for outcome in expected]
    assert [source.blank_lines for source in sources] == [outcome.blank_lines for outcome in expected]


def test_a_task_with_a_lost_file_reads_on_and_has_no_objects() -> None:
    # Given a good file, a deleted one, a truncated one whose last line has no end, and a good one after it
    good = b'{"a":1}\n'
    files = {"a.json": good, "b.json.gz": gzip.compress(b'{"a":2}\n{"a', mtime=0)[:-4], "c.json": good}

    # When
    _, (result,), reads = run(files, 1000, 10_000, lost={"gone.json": b"x" * 10})

    # Then both failures are found, and no file is finished
    assert {failure.file.key: failure.reason for failure in result.failures} == {
        "gone.json": "it was deleted",
        "b.json.gz": "truncated gzip at byte 27",
    }
    assert [(split.split.file.key, split.rows, split.rejects) for split in result.splits] == [
        ("a.json", 1, {}),
        ("c.json", 1, {}),
    ]
    assert (result.objects, result.quarantine, reads.rows) == ((), (), [])


def test_provenance_distinguishes_two_versions_of_a_key(tmp_path: Path) -> None:
    # Given two versions of a key with the same bytes, and a file of a bucket without versions
    bodies, reads = {"a.json": b'\n{"a":1}\n', "b.json": b"{}"}, ReadingUploads()
    first = version("a.json", bodies["a.json"])
    second = replace(first, version_id="w", arrived_at="2026-03-04T13:00:00Z")
    unversioned = replace(version("b.json", bodies["b.json"]), version_id=None)
    splits = split_files([first, second, unversioned], (), 100)
    # When
    run_task(task_of(*splits, provenance=True), FakeSource(bodies).fetch, reads.add, tmp_path)
    # Then
    assert [(row["_source"], row["_offset"], row["_arrived_at"]) for row in reads.rows] == [
        ("s3://input/a.json?versionId=v", "1", "2026-03-04T12:00:00Z"),
        ("s3://input/a.json?versionId=w", "1", "2026-03-04T13:00:00Z"),
        ("s3://input/b.json", "0", "2026-03-04T12:00:00Z"),
    ]


def test_a_schema_in_a_binary_file_is_not_a_row_of_concatenated_objects() -> None:
    files = {"a.json": b'{"a":1}{"a":2}', "b.avro": b'Obj\x01\x04\x16avro.schema\x1a{"type":"int"}\x00\x02'}
    _, (result,), _ = run(files, 1000, 10_000, concatenated=True)
    assert {failure.file.key: failure.reason for failure in result.failures} == {
        "b.avro": "it looks like an Avro file; expected JSON objects"
    }


def test_a_task_writes_more_than_a_thousand_objects_under_keys_of_their_own() -> None:
    # Given a target so small that every row is a Parquet file, and two tasks
    body = b"".join(b'{"c":"%d"}\n' % row for row in range(2200))
    _, results, reads = run({"a.json": body}, len(body) // 2 + 1, 1, row_group_bytes=1)
    # Then each object has its own key, and no row is missing
    keys = [item.key for result in results for item in result.objects]
    assert min(len(result.objects) for result in results) > 1000
    assert len(set(keys)) == len(keys) == len(reads.rows) == 2200


def fail_with(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    monkeypatch.setattr(module, "run_task", Mock(side_effect=error))
    monkeypatch.setattr(module, "s3_client", lambda _: None)


def test_a_full_disk_is_a_result_that_spark_can_carry(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_with(monkeypatch, OSError(errno.ENOSPC, "no space left on device"))
    (result,) = pickle.loads(pickle.dumps(list(run_partition([task_of()]))))
    assert result.manifest == "m"
    assert result.fault is not None
    assert result.fault.cause.startswith("the disk of a worker is full")


def test_a_defect_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_with(monkeypatch, ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        list(run_partition([task_of()]))


SETTINGS = ConvertSettings(split_bytes=1000, min_bytes_per_second=100, max_core_minutes=10)
PLAIN, GZIP = b"{}\n" * 1000, gzip.compress(b"{}\n", mtime=0) + bytes(3000)


def spend(seconds: float, read_bytes: int, head: bytes = PLAIN, settings: ConvertSettings = SETTINGS) -> None:
    """Read a number of bytes of a file in a given processor time; the first two take no time."""
    file = version("orders/a.json", head)
    clock = iter([5.0, 5.0, 5.0 + seconds])
    deadline = SplitDeadline(Split(file, 0, file.size), settings, lambda: next(clock))
    for piece in (memoryview(head)[:2], memoryview(bytes(read_bytes - 2))):
        deadline.add(piece)
        deadline.check()


@pytest.mark.parametrize(
    ("seconds", "read_bytes", "head"),
    [(0, 2, PLAIN), (GRACE_SECONDS, 2, PLAIN), (61, 6100, PLAIN), (600, 60_000, PLAIN), (61, 610, GZIP)],
)
def test_a_file_within_its_time_or_above_the_speed_continues(seconds: float, read_bytes: int, head: bytes) -> None:
    spend(seconds, read_bytes, head)
    # And without a minimum speed only the time is limited
    spend(3600, 2, settings=parse_settings({"stage": "t", "convert": {"min_bytes_per_second": 0}}).convert)


@pytest.mark.parametrize(
    ("seconds", "read_bytes", "head", "limit"),
    [
        (61, 6099, PLAIN, "slower than convert.min_bytes_per_second (100)"),
        (61, 609, GZIP, "slower than convert.min_bytes_per_second (100) allows a compressed file"),
        (601, 1_000_000, PLAIN, "more than convert.max_core_minutes (10)"),
    ],
)
def test_a_slower_file_is_unreadable_and_the_reason_names_the_limit(
    seconds: float, read_bytes: int, head: bytes, limit: str
) -> None:
    with pytest.raises(UnreadableNowError) as error:
        spend(seconds, read_bytes, head)
    reason, minutes = str(error.value), round(seconds / 60, 1)
    assert reason.startswith(f"{read_bytes:,} bytes took {minutes:g} minutes of processor time, {limit}: ")
    assert reason.endswith("reprocess s3://input/orders/a.json")


@pytest.mark.parametrize(
    ("seconds", "read_bytes", "limit"),
    [(301, 40_000, "stream.latency_goal_seconds"), (61, 6099, "slower than convert.min_bytes_per_second")],
)
def test_in_the_stream_lane_a_slow_file_is_not_called_unreadable(seconds: float, read_bytes: int, limit: str) -> None:
    file, clock = version("orders/a.json", PLAIN), iter([0.0, seconds])
    goal = stream_seconds(parse_settings({"stage": "t"}).stream)
    deadline = SplitDeadline(Split(file, 0, file.size), SETTINGS, lambda: next(clock), goal)
    deadline.add(memoryview(bytes(read_bytes)))
    with pytest.raises(SlowFileError, match=limit):
        deadline.check()


@pytest.mark.parametrize(("goal", "seconds"), [(1, 60), (300, 300), (7200, 7200)])
def test_the_stream_has_a_file_for_its_latency_goal_and_at_least_a_minute(goal: int, seconds: float) -> None:
    assert stream_seconds(parse_settings({"stage": "t", "stream": {"latency_goal_seconds": goal}}).stream) == seconds


def test_the_parts_of_a_slow_file_are_excluded_with_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a file of eight parts in one task, the first of which is too slow
    reads: list[float] = []

    def hours() -> float:
        reads.append(3600.0 * len(reads))
        return reads[-1]

    monkeypatch.setattr("transform.run_task.thread_time", hours)
    # When
    _, (result,), _ = run({"a.json": b'{"a":1}\n' * 100}, 100, 10_000)
    # Then the others are not read
    assert [failure.file.key for failure in result.failures] == ["a.json"]
    assert len(reads) == 2


def test_a_piece_that_inflates_to_many_batches_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given 8 KB of gzip, each batch of which takes 40 seconds
    reads = itertools.count(0, 40)
    monkeypatch.setattr("transform.run_task.thread_time", lambda: float(next(reads)))
    # When
    _, (result,), _ = run({"a.json.gz": gzip.compress(b"{}\n" * 2_500_000)}, 1 << 20, 10_000)
    # Then the file is excluded after the second batch
    [failure] = result.failures
    assert "took 1.3 minutes of processor time" in failure.reason
