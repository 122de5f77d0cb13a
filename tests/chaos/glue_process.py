"""What a Glue run loads beside the product: one fault that strikes this very process, by a signal where it is fatal."""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.chaos import injection
from tests.chaos.injection import Fault, Injector
from transform.source import Source

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from lake.manifest import ObjectVersion

VARIABLE = "CHAOS"
RENEWAL_SECONDS = 30
"""No renewal takes so long to come."""


@dataclass(frozen=True, slots=True)
class RealProcess:
    """The driver, or a Python worker of its Spark."""

    marks: Path
    """Folder in which a fault that has struck leaves the number of the process."""
    name: str = "process"

    def kill(self, fault: Fault) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def stall(self, fault: Fault) -> None:
        """All threads stop, the renewal of leases included, until somebody sends SIGCONT."""
        os.kill(os.getpid(), signal.SIGSTOP)

    def fired(self, fault: Fault) -> bool:
        """In all processes of a run together it fires once."""
        try:
            with (self.marks / "fired").open("x") as mark:
                mark.write(f"{os.getpid()} {fault}")
        except FileExistsError:
            return False
        return True


def install(text: str) -> None:
    """``text`` is ``{"marks": folder, "fault": [point, when, nth, action] or null}``."""
    plan = json.loads(text)
    if plan["fault"]:
        fault = Fault(*plan["fault"])
        injection.WHOLE_PROCESS.append(Injector(RealProcess(Path(plan["marks"])), (fault,)))
        injection.install()


def work_until_renewed(text: str) -> None:
    """For faults at a renewal: tasks read nothing before it, as those of real size last for longer than it takes."""
    plan = json.loads(text)
    if not plan["fault"] or plan["fault"][0] != "renew":
        return
    struck, read = Path(plan["marks"]) / "fired", Source.fetch

    def fetch(self: Source, file: ObjectVersion, start: int, end: int) -> Buffer:
        deadline = time.monotonic() + RENEWAL_SECONDS
        while not struck.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        return read(self, file, start, end)

    Source.fetch = fetch  # type: ignore[method-assign]


def drive(argv: list[str]) -> int:
    """The product's job that ``--job`` names, after ``--chaos`` has been installed here and for the workers."""
    arguments = dict(zip(argv[::2], argv[1::2], strict=True))
    os.environ[VARIABLE] = arguments["--chaos"]
    install(arguments["--chaos"])
    code: int = importlib.import_module(f"{arguments['--job']}.main").main(argv)
    return code


if __name__ == "__main__":
    if code := drive(sys.argv[1:]):
        sys.exit(code)
