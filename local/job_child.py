"""The first process of a local job run: it runs the job's script, and ends the run when the emulator ends.

It leads the run's session, so killing the session kills the run. Its standard input is a pipe that the emulator holds
open: end of file means that the emulator has ended, even by SIGKILL.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from local.processes import kill_session


def main(launch_file: Path) -> int:
    """Run the command of ``launch_file``, and return its exit code, or 128 + the signal that killed it."""
    launch = json.loads(launch_file.read_text())
    threading.Thread(target=_end_with_emulator, daemon=True).start()
    code = subprocess.run(
        launch["command"], env=launch["environment"], cwd=launch["folder"], stdin=subprocess.DEVNULL, check=False
    ).returncode
    return code if code >= 0 else 128 - code


def _end_with_emulator() -> None:
    # Not sys.stdin: this thread would hold the lock of its buffer, and the interpreter could not finish.
    while os.read(0, 1):
        pass
    kill_session(os.getpid())


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(main(Path(sys.argv[1])))
