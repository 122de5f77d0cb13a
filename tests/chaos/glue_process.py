"""Loaded by a Glue run next to the product: injects one fault into this process, which kills or stalls it."""

import importlib
import json
import os
import signal
import sys
import time
from pathlib import Path

from lake.aws_types import Buffer
from lake.manifest import ObjectVersion
from tests.chaos import injection
from tests.chaos.injection import Actor, Fault
from transform.source import Source

PLAN_VARIABLE = "CHAOS"
"""Environment variable that hands the run's fault to the Python workers."""
MAX_RENEWAL_SECONDS = 30
"""Longer than the interval between two renewals of a lease."""


class RealProcess(Actor):
    """The driver, or a Python worker of its Spark. ``marks``: a folder whose file ``fired`` gets the process id."""

    def __init__(self, marks: Path, fault: Fault) -> None:
        super().__init__("process", (fault,), {})
        self._mark = marks / "fired"

    def kill(self, _: Fault) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def stall(self) -> None:
        """Stop all threads, including the renewal of leases, until the history sends SIGCONT."""
        os.kill(os.getpid(), signal.SIGSTOP)

    def fired(self, fault: Fault) -> bool:
        """True once per run: in the first of its processes that reaches the fault."""
        try:
            with self._mark.open("x") as mark:
                mark.write(f"{os.getpid()} {fault}")
        except FileExistsError:
            return False
        return True


def install(text: str) -> None:
    """Install the fault of ``{"marks": folder, "fault": [point, when, nth, action] or null}``."""
    plan = json.loads(text)
    if plan["fault"]:
        injection.WHOLE_PROCESS.append(RealProcess(Path(plan["marks"]), Fault(*plan["fault"])))
        injection.install()


def delay_reads_until_renewal(text: str) -> None:
    """For a fault at a renewal: delay reads until it is injected, because production tasks outlast a renewal."""
    plan = json.loads(text)
    if not plan["fault"] or plan["fault"][0] != "renew":
        return
    mark, original_fetch = Path(plan["marks"]) / "fired", Source.fetch

    def fetch(self: Source, file: ObjectVersion, start: int, end: int) -> Buffer:
        deadline = time.monotonic() + MAX_RENEWAL_SECONDS
        while not mark.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        return original_fetch(self, file, start, end)

    Source.fetch = fetch  # type: ignore[method-assign]


def run_job(argv: list[str]) -> str | None:
    """Install the fault of ``--chaos`` for the driver and its workers, then run the product's job ``--job``."""
    arguments = dict(zip(argv[::2], argv[1::2], strict=True))
    os.environ[PLAN_VARIABLE] = arguments["--chaos"]
    install(arguments["--chaos"])
    failure: str | None = importlib.import_module(f"{arguments['--job']}.main").main(argv)
    return failure


if __name__ == "__main__":
    if (failed := run_job(sys.argv[1:])) is not None:
        sys.exit(failed)
