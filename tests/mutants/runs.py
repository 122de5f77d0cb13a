"""Judges mutants in processes of their own, which have the third-party modules from their parent, and no product."""

from __future__ import annotations

import importlib
import json
import os
import resource
import select
import signal
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.mutants import mutating_import

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tests.mutants.operators import Mutant

THIRD_PARTY = (
    "aws_lambda_powertools",
    "aws_lambda_powertools.utilities.data_classes",
    "boto3",
    "botocore.client",
    "hypothesis",
    "moto",
    "ndjson_arrow",
    "pyarrow",
    "pyspark.errors",
    "pyspark.sql",
    "pytest",
)
"""Imported once, because they take longer than the judges of most mutants."""
MAX_PROCESSOR_SECONDS = 240
"""For one mutant, however busy the machine is. Many times what one that survives takes: a mutant that takes longer
is in an endless loop."""
MAX_SECONDS = 1800
"""For one mutant by the clock: one that takes longer waits for itself."""
ERROR, TIMEOUT = "an error", "no end"


@dataclass
class _Process:
    mutant: Mutant | None
    pid: int
    pipe: int
    started: float


@dataclass(frozen=True)
class Judged:
    """A mutant (None: the product as it is), and the first judge that has noticed it; empty: none."""

    mutant: Mutant | None
    noticed_by: str
    seconds: float


def preload() -> None:
    """Import what all processes need, and nothing of the product."""
    for name in THIRD_PARTY:
        importlib.import_module(name)
    product = [name for name in sys.modules if name.partition(".")[0] in ("lake", "router", "transform")]
    assert not product, f"the parent process has imported {product[0]}: its mutants would not be seen"


def judge_all(mutants: Iterable[Mutant | None], workers: int, proceed: Callable[[], bool]) -> Iterator[Judged]:
    """Judge mutants in ``workers`` processes at a time; none is started once ``proceed`` returns False."""
    waiting = iter(mutants)
    running: list[_Process] = []
    while True:
        while len(running) < workers and proceed():
            mutant = next(waiting, _END)
            if isinstance(mutant, _End):
                break
            running.append(_start(mutant))
        if not running:
            return
        ready, _, _ = select.select([process.pipe for process in running], [], [], 1)
        for process in list(running):
            late = time.monotonic() - process.started > MAX_SECONDS
            if process.pipe in ready or late:
                running.remove(process)
                yield _end(process)


class _End:
    pass


_END = _End()


def _start(mutant: Mutant | None) -> _Process:
    read, write = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        _judge(mutant, write)
    os.close(write)
    return _Process(mutant, pid, read, time.monotonic())


def _judge(mutant: Mutant | None, pipe: int) -> None:
    """The whole life of a mutant's process."""
    result = ERROR
    try:
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        resource.setrlimit(resource.RLIMIT_CPU, (MAX_PROCESSOR_SECONDS, MAX_PROCESSOR_SECONDS))
        if mutant is not None:
            mutating_import.install(mutant.path.removesuffix(".py").replace("/", "."), mutant.number)
        judges = importlib.import_module("tests.mutants.judges")
        result = judges.noticed_by("" if mutant is None else mutant.path)
    finally:
        os.write(pipe, json.dumps(result).encode())
        os._exit(0)


def _end(process: _Process) -> Judged:
    seconds = time.monotonic() - process.started
    late = seconds > MAX_SECONDS
    if late:
        os.kill(process.pid, signal.SIGKILL)
    answer = os.read(process.pipe, 1 << 16)
    os.close(process.pipe)
    os.waitpid(process.pid, 0)
    return Judged(process.mutant, TIMEOUT if late or not answer else json.loads(answer), seconds)
