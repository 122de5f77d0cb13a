"""A process that measures conversions, as the process that needs the measurements sees it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CHECKOUT = Path(__file__).resolve().parents[1]


class MeasuringProcessError(Exception):
    """A measuring process ended without a result; the message names its log."""


class MeasuringProcess:
    """Runs a command that answers each JSON line on its input by a JSON line on its output.

    The command writes one line more before the first request, when it is ready.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], log_file: Path) -> None:
        self._log_file = log_file
        with log_file.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=environment, text=True
            )
        self._read_line()

    def request(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Send one request; returns the answer."""
        print(json.dumps(fields), file=_pipe(self._process.stdin), flush=True)
        return self._read_line()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        _pipe(self._process.stdin).close()
        self._process.wait()
        _pipe(self._process.stdout).close()

    def _read_line(self) -> dict[str, Any]:
        line = _pipe(self._process.stdout).readline()
        if not line:
            raise MeasuringProcessError(f"a measuring process ended without a result: see {self._log_file}")
        answer: dict[str, Any] = json.loads(line)
        return answer


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe
