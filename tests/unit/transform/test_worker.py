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


def test_the_results_of_as_many_files_as_a_job_may_have_fit_the_driver(tmp_path: Path) -> None:
    # Given files with the longest keys and lines that are rejected for every reason, and their quarantine
    many, quarantine, splits = 1 << 40, tmp_path / "quarantine.jsonl", list[SplitResult]()
    with quarantine.open("wb") as stream:
        for number in range(500):
            key = f"{number:05d}".ljust(1024, "x")
            file = ObjectVersion("b" * 63, key, f"{number:032d}", many, "2026-11-20T09:30:00+00:00", f"{number:032d}")
            rejects, first = dict.fromkeys(REASONS, many), f"{REASONS[0]} at byte {many}"
            splits.append(SplitResult(Split(file, 0, many), many, 1, 1, rejects, many, False, first))
            names = {"kind": "lines", "source": file.uri, "version": file.version}
            stream.writelines(encode_document({**names, "reason": name, "count": many}) + b"\n" for name in REASONS)
    # When their results are sent to the driver
    size = len(pickle.dumps((splits, read_back(quarantine)))) / len(splits)
    # Then a job with the most files that the settings allow stays below Spark's limit
    assert size * RUN_FILES < MAX_RESULT_BYTES
