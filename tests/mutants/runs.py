"""Judges mutants in processes of their own, which have the product, the tests and warm caches from their parent."""

from __future__ import annotations

import gc
import json
import os
import resource
import select
import signal
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.mutants import mutating_code
from tests.mutants.judges import noticed_by

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from tests.mutants.operators import Mutant

MAX_PROCESSOR_SECONDS = 240
"""For one mutant, however busy the machine is. Many times what one that survives takes: a mutant that takes longer
is in an endless loop."""
MAX_SECONDS = 1800
"""For one mutant by the clock: one that takes longer waits for itself."""
ERROR, TIMEOUT, NOT_MADE = "an error", "no end", "nothing, because it was not made"


@dataclass
class _Process:
    mutant: Mutant
    pid: int
    pipe: int
    started: float


@dataclass(frozen=True)
class Judged:
    """A mutant, and the first judge that has noticed it; empty: none."""

    mutant: Mutant
    noticed_by: str
    seconds: float


def judge_unchanged(paths: Collection[str]) -> str:
    """The first judge of the modules at ``paths`` that notices something in the product as it is; empty: none.

    It runs in this process, so that the processes of the mutants begin with everything imported and cached.
    """
    with _silent():
        result = noticed_by(*paths)
    gc.collect()
    gc.freeze()
    assert threading.active_count() == 1, f"these threads would be lost: {threading.enumerate()}"
    return result


def judge_all(mutants: Iterable[Mutant], workers: int, proceed: Callable[[], bool]) -> Iterator[Judged]:
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


def _start(mutant: Mutant) -> _Process:
    read, write = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        _judge(mutant, write)
    os.close(write)
    return _Process(mutant, pid, read, time.monotonic())


def _judge(mutant: Mutant, pipe: int) -> None:
    """The whole life of a mutant's process."""
    result = NOT_MADE
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (MAX_PROCESSOR_SECONDS, MAX_PROCESSOR_SECONDS))
        mutating_code.install(mutant.path, mutant.number)
        mutating_code.forget_tests()
        result = ERROR
        with _silent():
            result = noticed_by(mutant.path)
    finally:
        os.write(pipe, json.dumps(result).encode())
        os._exit(0)


@contextmanager
def _silent() -> Iterator[None]:
    """Without the input, the output and the errors of the process."""
    saved = [os.dup(descriptor) for descriptor in (0, 1, 2)]
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    try:
        yield
    finally:
        sys.stdout.flush()
        for descriptor, copy in enumerate(saved):
            os.dup2(copy, descriptor)
            os.close(copy)
        os.close(null)


def _end(process: _Process) -> Judged:
    seconds = time.monotonic() - process.started
    late = seconds > MAX_SECONDS
    if late:
        os.kill(process.pid, signal.SIGKILL)
    answer = os.read(process.pipe, 1 << 16)
    os.close(process.pipe)
    os.waitpid(process.pid, 0)
    noticed = TIMEOUT if late or not answer else json.loads(answer)
    assert noticed != NOT_MADE, process.mutant.name
    return Judged(process.mutant, noticed, seconds)
