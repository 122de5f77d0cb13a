"""Builds the archive of libraries for EMR Serverless: ``make emr-libraries``, in the dependency group ``wheels``."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from infra.emr_libraries import MACHINES, emr_runtime, libraries_zip, write_libraries
from infra.lambda_asset import AssetError
from infra.make_wheels import CHECKOUT, collect_wheels
from lake.errors import HybridRouterError


def main(architecture: str) -> int:
    """Build the archive for a value of ``emr.architecture``, print the names of its wheels; returns the exit code.

    If the build fails, it prints one sentence to stderr and returns 1.
    """
    target = libraries_zip(architecture)
    try:
        if architecture not in MACHINES:
            raise AssetError(f"ARCHITECTURE={architecture} is not known: pass one of {', '.join(MACHINES)}")
        with tempfile.TemporaryDirectory(prefix="hybrid-router-wheels-") as workspace:
            wheels = collect_wheels(CHECKOUT, Path(workspace), emr_runtime(architecture))
            write_libraries(wheels, CHECKOUT, CHECKOUT / target)
            names = ", ".join(wheel.name for wheel in wheels)
    except HybridRouterError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{target}: {names}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
