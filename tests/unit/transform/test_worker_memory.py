"""A Python worker gives back what a task has freed: the next task may need it in blocks of another size."""

import os
import subprocess
import sys

from transform.spark_job import WORKER_ENVIRONMENT

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
