"""Finds the error message of a failed run in its log."""

from __future__ import annotations

import re
import signal
from pathlib import Path

_MAX_TAIL_BYTES = 256 * 1024
_MAX_MESSAGE_CHARACTERS = 2000
_TRACEBACK = "Traceback (most recent call last):"
_NOISE = re.compile(r"^(\d\d/\d\d/\d\d \d\d:\d\d:\d\d |\s|at |Caused by: |\.\.\. \d+ more|SLF4J|WARNING: )")


def last_error(log_file: Path, exit_code: int) -> str:
    """The signal or the exception that ended the run's script, else the last meaningful line; 2,000 characters at most.

    ``exit_code`` is that of the run's first process: 128 + the number of a signal that killed the script.
    """
    signal_number = exit_code - 128
    if signal_number in set(signal.Signals):
        return f"The process was ended by {signal.Signals(signal_number).name}."
    lines = _tail(log_file).splitlines()
    for index in range(len(lines) - 1, -1, -1):
        if lines[index].startswith(_TRACEBACK):
            return _exception_after(lines[index + 1 :]) or f"SystemExit: {exit_code}"
    meaningful = [line for line in lines if line.strip() and not _NOISE.match(line)]
    return meaningful[-1][:_MAX_MESSAGE_CHARACTERS] if meaningful else f"SystemExit: {exit_code}"


def _exception_after(lines: list[str]) -> str:
    return next((line for line in lines if line.strip() and not line.startswith((" ", "\t"))), "")[
        :_MAX_MESSAGE_CHARACTERS
    ]


def _tail(log_file: Path) -> str:
    with log_file.open("rb") as log:
        log.seek(max(0, log_file.stat().st_size - _MAX_TAIL_BYTES))
        return log.read().decode("utf-8", errors="replace")
