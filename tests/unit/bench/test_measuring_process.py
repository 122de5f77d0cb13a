"""A measuring process: its responses, its log, and the end of every process that it started."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from bench import measuring_process
from bench.measuring_process import MeasuringProcess, MeasuringProcessError

READY = "import json, os, subprocess, sys\nprint(json.dumps({'ready': True}), flush=True)\n"
LEAVES_A_PROCESS_BEHIND = f"""{READY}
sys.stdin.read()
inherited, own = os.pipe()
subprocess.Popen([sys.executable, "-c", sys.argv[1], sys.argv[2]], stdin=inherited, stdout=subprocess.DEVNULL)
"""
"""At the end of its input it starts a process that outlives it, and ends: ``own`` closes with it."""
REMOVES_ITS_FILES = """
import pathlib, sys, time
sys.stdin.read()
for path in pathlib.Path(sys.argv[1]).iterdir():
    time.sleep(0.01)
    path.unlink()
"""
"""As the shutdown hooks of Spark's JVM: it starts after the end of the Python process that started it."""


def test_the_end_of_the_block_is_the_end_of_all_processes(tmp_path: Path) -> None:
    # Given a process that starts another one, which removes files after the first one has ended
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    for number in range(100):
        (scratch / str(number)).touch()
    command = [sys.executable, "-c", LEAVES_A_PROCESS_BEHIND, REMOVES_ITS_FILES, str(scratch)]

    # When the block ends
    with MeasuringProcess(command, os.environ, tmp_path / "process.log"):
        assert len(list(scratch.iterdir())) == 100

    # Then no process removes files any more, and the folder can be removed
    assert list(scratch.iterdir()) == []
    shutil.rmtree(scratch)


def test_a_process_that_ends_without_a_response_is_an_error_that_names_its_log(tmp_path: Path) -> None:
    # Given a process that writes to its log and ends, before it is ready or at its first request
    log = tmp_path / "process.log"
    dies = "import sys; print('out of memory', file=sys.stderr)"
    for program in (dies, f"{READY}{dies}"):
        log.unlink(missing_ok=True)

        # When it is started and gets a request
        with (
            pytest.raises(MeasuringProcessError, match=r"ended without a result: see .*process\.log"),
            MeasuringProcess([sys.executable, "-c", program], os.environ, log) as process,
        ):
            process.request({"any": 1})

        # Then its log is complete
        assert log.read_text() == "out of memory\n"


def test_a_process_that_is_left_behind_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a process that starts another one, which runs until the test writes to a pipe
    monkeypatch.setattr(measuring_process, "END_SECONDS", 0.1)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    waits = f"open({str(pipe)!r}).read()"
    program = f"{READY}subprocess.Popen([sys.executable, '-c', {waits!r}])"
    process = MeasuringProcess([sys.executable, "-c", program], os.environ, tmp_path / "process.log")

    # When the block ends
    with pytest.raises(MeasuringProcessError, match=r"still runs 0\.1 s after its end: see .*process\.log"), process:
        pass

    # Then the other process was still running: it ends now
    pipe.write_text("end")
    process._log_copier.join()
