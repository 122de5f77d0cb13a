"""The first process of a local Glue run: runs the job's script, and ends all of it when the emulator is gone.

It leads the run's session, so that killing the session is killing the run. Its standard input is a pipe that the
emulator holds: end of file means that the emulator died, even by SIGKILL.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from local.processes import kill_session


def main(launch_file: Path) -> int:
    """Run what ``launch_file`` says; the exit code of the script, or 128 + the signal that killed it."""
    launch = json.loads(launch_file.read_text())
    threading.Thread(target=_end_with_the_emulator, daemon=True).start()
    code = subprocess.run(
        launch["command"], env=launch["environment"], cwd=launch["folder"], stdin=subprocess.DEVNULL, check=False
    ).returncode
    return code if code >= 0 else 128 - code


def _end_with_the_emulator() -> None:
    # Not sys.stdin: its buffer's lock, held by this thread, would abort the interpreter's regular end.
    while os.read(0, 1):
        pass
    kill_session(os.getpid())


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(main(Path(sys.argv[1])))
