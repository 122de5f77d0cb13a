"""Builds the archive of libraries for EMR Serverless: ``make emr-libraries``, in the dependency group ``wheels``."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from infra.emr_libraries import LIBRARIES_ZIP, RUNTIME_FILE, write_libraries
from infra.glue_wheels import JobRuntime
from infra.make_wheels import CHECKOUT, collect_wheels
from lake.errors import HybridRouterError


def main() -> int:
    """Build the archive and print the names of the wheels in it; returns the exit code.

    If the build fails, it prints one sentence to stderr and returns 1.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="hybrid-router-wheels-") as workspace:
            wheels = collect_wheels(CHECKOUT, Path(workspace), JobRuntime.load(RUNTIME_FILE))
            write_libraries(wheels, CHECKOUT, CHECKOUT / LIBRARIES_ZIP)
            names = ", ".join(wheel.name for wheel in wheels)
    except HybridRouterError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{LIBRARIES_ZIP}: {names}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
