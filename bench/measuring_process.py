"""The handle of a process that measures conversions: starts it, sends it requests, and waits for its end."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Self

CHECKOUT = Path(__file__).resolve().parents[1]
END_SECONDS = 60
"""Twice the time that Hadoop gives the shutdown hooks of Spark's JVM (hadoop.service.shutdown.timeout, 30 s)."""


class MeasuringProcessError(Exception):
    """A measuring process ended without a result, or left a process behind; the message names its log."""


class MeasuringProcess:
    """Runs a command whose input are requests and whose output are responses, each of them a line of JSON.

    The command writes a first line when it is ready, before any request. It ends at the end of its input.

    A context manager: after the block the process and every process that it started have ended, so the caller can
    remove the files of all of them. ``command``: the program and its arguments. ``environment``: the whole environment
    of the process. ``log_file``: receives what the process and the processes that it starts write to their standard
    error.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], log_file: Path) -> None:
        self._command = command
        self._environment = environment
        self._log_file = log_file

    def request(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Send one request; returns the response."""
        with suppress(BrokenPipeError):
            print(json.dumps(fields), file=_pipe(self._process.stdin), flush=True)
        return self._read_response()

    def __enter__(self) -> Self:
        # Every process that this one starts inherits its standard error, Spark's JVM as well. So this pipe reaches
        # its end when the last of them has ended: the JVM outlives the Python process and then removes its folders.
        source, stderr = os.pipe()
        try:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=self._environment,
                text=True,
            )
        finally:
            os.close(stderr)
        self._log_copier = threading.Thread(target=self._copy_log, args=(source,), daemon=True)
        self._log_copier.start()
        try:
            self._read_response()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        with suppress(BrokenPipeError):
            _pipe(self._process.stdin).close()
        self._process.wait()
        _pipe(self._process.stdout).close()
        self._log_copier.join(END_SECONDS)
        if self._log_copier.is_alive():
            raise MeasuringProcessError(
                f"a process that a measuring process started still runs {END_SECONDS} s after its end: "
                f"see {self._log_file}"
            )

    def _copy_log(self, source: int) -> None:
        with open(source, "rb") as lines, self._log_file.open("ab", buffering=0) as log:
            for line in lines:
                log.write(line)

    def _read_response(self) -> dict[str, Any]:
        line = _pipe(self._process.stdout).readline()
        if not line:
            raise MeasuringProcessError(f"a measuring process ended without a result: see {self._log_file}")
        response: dict[str, Any] = json.loads(line)
        return response


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe
