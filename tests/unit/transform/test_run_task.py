"""A task without Spark and S3: every split size gives the same rows and rejects, and the audit accepts them."""

import errno
import gzip
import json
import pickle
import resource
import tempfile
from concurrent.futures import Future
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ndjson_arrow import can_split

from lake.commit import PendingObject, UploadedPart
from lake.manifest import Lane, Manifest, ObjectVersion, Partition
from lake.settings import ConvertSettings
from tests.oracle import ndjson_oracle
from transform import run_task as module
from transform.audit import audit
from transform.plan_attempt import HEAD_BYTES, pack_tasks, split_files
from transform.run_task import run_partition, run_task
from transform.source import UnreadableFileError
from transform.task_model import Split, Task, TaskFault, TaskResult

PARTITION = Partition("orders", "2026-03-04", 12)


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


class Bodies:
    """A source of known bodies."""

    def __init__(self, bodies: dict[str, bytes]) -> None:
        self.bodies = bodies

    def fetch(self, file: ObjectVersion, start: int, end: int) -> bytes:
        if file.key not in self.bodies:
            raise UnreadableFileError("it was deleted")
        return self.bodies[file.key][start:end]


class ReadingUploads:
    """Uploads that read each file at once, as a reader of the lake would."""

    def __init__(self) -> None:
        self.rows: list[dict[str, str]] = []
        self.rejected: list[tuple[int, str]] = []
        self.aborted = False

    def add(self, path: Path, bucket: str, key: str, rows: int) -> Future[PendingObject]:
        if bucket == "lake":
            table = pq.read_table(path).to_pylist()
            self.rows += [{name: value for name, value in row.items() if value is not None} for row in table]
        else:
            records = [json.loads(line) for line in path.read_bytes().splitlines()]
            self.rejected += [(record["offset"], record["reason"]) for record in records]
        future: Future[PendingObject] = Future()
        future.set_result(
            PendingObject(bucket, key, "u", (UploadedPart("e", "AAAAAA=="),), "AAAAAA==", path.stat().st_size, rows)
        )
        return future

    def finish(self) -> None:
        return

    def abort(self) -> None:
        self.aborted = True


def version(key: str, body: bytes) -> ObjectVersion:
    return ObjectVersion("input", key, "e", len(body), "2026-03-04T12:00:00Z", "v")


def run(
    files: dict[str, bytes],
    split_bytes: int,
    target: int,
    *,
    concatenated: bool = False,
    lost: dict[str, bytes] | None = None,
) -> tuple[list[Task], list[TaskResult], ReadingUploads]:
    options = ConvertSettings(split_bytes=split_bytes, target_file_bytes=target, concatenated=concatenated)
    bodies = {**files, **(lost or {})}
    versions = [version(key, body) for key, body in bodies.items()]
    whole = {item for item in versions if not can_split(bodies[item.key][:HEAD_BYTES])}
    splits = split_files(versions, whole, split_bytes)
    tasks = [
        Task("m", 1, PARTITION, number, part, ("c",), "lake", "quarantine", "eu-central-1", options)
        for number, part in enumerate(pack_tasks(splits, target, 1.0))
    ]
    source: Any = Bodies(files)
    reads = ReadingUploads()
    uploads: Any = reads
    results = []
    for task in tasks:
        with tempfile.TemporaryDirectory() as folder:
            results.append(run_task(task, source, uploads, Path(folder)))
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
    # Given a good, a deleted and a truncated file
    files = {"a.json": b'{"a":1}\n', "z.json.gz": gzip.compress(b'{"a":2}\n')[:-4]}

    # When
    _, (result,), reads = run(files, 1000, 10_000, lost={"gone.json": b"x" * 10})

    # Then both failures are found, and the uploads are aborted
    assert {failure.file.key: failure.reason for failure in result.failures} == {
        "gone.json": "it was deleted",
        "z.json.gz": "truncated gzip at byte 24",
    }
    assert (result.objects, result.quarantine) == ((), ())
    assert reads.aborted


def test_a_schema_in_a_binary_file_is_not_a_row_of_concatenated_objects() -> None:
    files = {"a.json": b'{"a":1}{"a":2}', "b.avro": b'Obj\x01\x04\x16avro.schema\x1a{"type":"int"}\x00\x02'}
    _, (result,), _ = run(files, 1000, 10_000, concatenated=True)
    assert {failure.file.key: failure.reason for failure in result.failures} == {
        "b.avro": "it looks like an Avro file; expected JSON objects"
    }


def test_a_sample_of_many_rejects_keeps_exact_counts() -> None:
    _, (result,), reads = run({"a.json": b'{"a":1}\n' + b"x\n" * 3000}, 1 << 20, 1 << 20)
    assert result.splits[0].rejects == {"not JSON": 3000}
    assert len(reads.rejected) == 1001


def test_a_task_writes_more_than_a_thousand_objects_under_keys_of_their_own(tmp_path: Path) -> None:
    # Given a target so small that every row is a Parquet file
    settings = ConvertSettings(target_file_bytes=1, row_group_bytes=1)
    uploads: Any = ReadingUploads()
    results = []
    # When two tasks run
    for number, rows in enumerate((1001, 2)):
        body = b"".join(b'{"c":"%d"}\n' % row for row in range(rows))
        file = version("a.json", body)
        source: Any = Bodies({"a.json": body})
        parts = (Split(file, 0, file.size),)
        task = Task("m", 1, PARTITION, number, parts, (), "lake", "quarantine", "eu-central-1", settings)
        results.append(run_task(task, source, uploads, tmp_path))
    # Then each object has a key of its own, and no row is missing
    keys = [item.key for result in results for item in result.objects]
    assert len(set(keys)) == len(keys) == len(uploads.rows) == 1003


TASK = Task(
    "m", 1, Partition("orders", "2026-11-01", 0), 0, (), (), "lake", "quarantine", "eu-central-1", ConvertSettings()
)


def fail_with(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    monkeypatch.setattr(module, "run_task", Mock(side_effect=error))
    monkeypatch.setattr(module, "s3_client", lambda _: None)


def test_a_full_disk_is_a_result_that_spark_can_carry(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_with(monkeypatch, OSError(errno.ENOSPC, "no space left on device"))
    (result,) = pickle.loads(pickle.dumps(list(run_partition([TASK]))))
    assert isinstance(result, TaskFault)
    assert result.manifest == "m"
    assert result.fault.cause.startswith("the disk of a worker is full")


def test_a_disk_that_is_full_before_the_first_temporary_folder_is_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a new Python worker that can write no file: `tempfile` does not tell why
    fail_with(monkeypatch, ZeroDivisionError())
    monkeypatch.setattr(tempfile, "tempdir", None)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    # When
    try:
        (result,) = run_partition([TASK])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    # Then
    assert isinstance(result, TaskFault)
    assert "No usable temporary directory" in result.fault.cause


def test_a_defect_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_with(monkeypatch, ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        list(run_partition([TASK]))
