"""A Python worker gives back memory and disk between tasks, and its results fit the driver."""

import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from ndjson_arrow import REASONS

from lake.documents import encode_document
from lake.manifest import ObjectVersion
from lake.settings.lanes import RUN_FILES
from transform.quarantine_writer import read_back
from transform.run_task import task_folder
from transform.spark_job import WORKER_ENVIRONMENT
from transform.task_model import Split, SplitResult

CODE = """
from pathlib import Path
from transform.run_task import tidy_worker

def resident():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) >> 10

before = resident()
blocks = [bytes([1]) * 200_000 for _ in range(500)]
kept = blocks[::50]
del blocks
held = resident()
tidy_worker()
print(before, held, resident())
"""


def test_memory_between_blocks_that_stay_is_given_back() -> None:
    environment = os.environ | WORKER_ENVIRONMENT
    answer = subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=True)
    before, held, after = map(int, answer.stdout.split())
    # Given 100 MB in one heap, of which a fiftieth stays: without tidying all of it would
    assert held - before > 70
    assert after - before < 30


WORKER = """
import sys
from transform.run_task import task_folder

with task_folder() as folder:
    (folder / "part").touch()
    print(folder, flush=True)
    sys.stdin.read()
"""


def test_a_killed_worker_leaves_nothing_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given two workers at their tasks, of which Spark kills the slower one
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with begin_worker(tmp_path) as slower, begin_worker(tmp_path) as other:
        left, used = (Path(str(worker.stdout and worker.stdout.readline()).strip()) for worker in (slower, other))
        slower.kill()
        slower.wait()
        assert (left / "part").exists()
        # When another task begins, Then the folder of the other one is left alone
        with task_folder() as own:
            assert sorted(tmp_path.iterdir()) == sorted([used, own])
        other.communicate()
    assert list(tmp_path.iterdir()) == []


def begin_worker(folder: Path) -> subprocess.Popen[str]:
    environment = os.environ | {"TMPDIR": str(folder)}
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", WORKER], env=environment, stdin=pipe, stdout=pipe, text=True)


MAX_RESULT_BYTES = 1 << 30
"""Default of ``spark.driver.maxResultSize`` (Spark's "Configuration")."""


FILES = 500


MANY = 1 << 40


def file_of(number: int) -> ObjectVersion:
    """A file with the longest key."""
    key = f"{number:05d}".ljust(1024, "x")
    return ObjectVersion("b" * 63, key, f"{number:032d}", MANY, "2026-11-20T09:30:00+00:00", f"{number:032d}")


def result_of(file: ObjectVersion) -> SplitResult:
    rejects = dict.fromkeys(REASONS, MANY)
    return SplitResult(Split(file, 0, MANY), MANY, 1, 1, rejects, MANY, False, f"{REASONS[0]} at byte {MANY}")


def test_the_results_of_as_many_files_as_a_job_may_have_fit_the_driver(tmp_path: Path) -> None:
    # Given files with the longest keys and lines that are rejected for every reason, and their quarantine
    files = [file_of(number) for number in range(FILES)]
    quarantine = tmp_path / "quarantine.jsonl"
    lines = (
        encode_document({"kind": "lines", "source": file.uri, "version": file.version, "reason": reason, "count": MANY})
        for file in files
        for reason in REASONS
    )
    quarantine.write_bytes(b"\n".join(lines))
    # When their results are sent to the driver
    results = ([result_of(file) for file in files], read_back(quarantine))
    size = len(pickle.dumps(results)) / FILES
    # Then a job with the most files that the settings allow stays below Spark's limit
    assert size * RUN_FILES < MAX_RESULT_BYTES
