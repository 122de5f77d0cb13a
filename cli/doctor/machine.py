"""What is installed on this machine, and the files of the checkout that a deployment needs."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from cli.doctor.finding import Finding, Readiness
from lake.errors import HybridRouterError
from lake.settings import Settings

FIRST_PYTHON, LAST_PYTHON = (3, 11), (3, 13)
"""``requires-python`` of pyproject.toml."""
MIN_JAVA = 17
"""Spark 4.1 (Spark documentation, "Overview")."""
MIN_NODE = 22
"""For the CDK command line (docs/deploy.md)."""
ANSWER_SECONDS = 10
"""Time that a program may take to name its version."""


def examine_machine(checkout: Path, settings: Settings | None) -> Iterator[Finding]:
    """Python, Java, Node, uv and the wheels; ``settings``: of the stage, None where they cannot be read."""
    yield _python()
    yield examine_java()
    yield _node()
    yield _uv(checkout)
    yield from _libraries(checkout, settings)


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    if FIRST_PYTHON <= sys.version_info[:2] <= LAST_PYTHON:
        return Finding("python", Readiness.OK, version)
    return Finding("python", Readiness.TO_DO, f"{version}: run 'make setup' with Python 3.11, 3.12 or 3.13")


def examine_java() -> Finding:
    """Whether Spark finds a Java that it can run on."""
    from local.spark_jars import java_command

    advice = "the local cloud and the demo need Java 17 or newer: install OpenJDK 17, then run 'make setup'"
    try:
        java = java_command()
    except HybridRouterError:
        return Finding("java", Readiness.TO_DO, f"missing; {advice}")
    major, modules = _major([java, "-version"], r'version "(\d+)'), _answer([java, "--list-modules"]) or ""
    if major is None or major < MIN_JAVA:
        return Finding("java", Readiness.TO_DO, f"{java} is not Java {MIN_JAVA} or newer; {advice}")
    if "jdk.incubator.vector" not in modules:
        return Finding("java", Readiness.TO_DO, f"{java} lacks the module jdk.incubator.vector; {advice}")
    return Finding("java", Readiness.OK, f"{major}, {java}")


def _node() -> Finding:
    major = _major(["node", "--version"], r"v(\d+)")
    if major is None or major < MIN_NODE:
        found = "missing" if major is None else f"{major} is too old"
        return Finding("node", Readiness.TO_DO, f"{found}; 'cdk deploy' needs Node {MIN_NODE} or newer: docs/deploy.md")
    return Finding("node", Readiness.OK, str(major))


def _uv(checkout: Path) -> Finding:
    pins = checkout / "scripts" / "uv.txt"
    if not pins.is_file():
        return Finding("uv", Readiness.SKIPPED, "needed in a checkout only")
    pinned = re.search(r"^uv==([\d.]+)", pins.read_text(encoding="utf-8"), re.MULTILINE)
    wanted = pinned[1] if pinned else ""
    for command in (str(checkout / ".cache" / "uv" / "bin" / "uv"), "uv"):
        if f"uv {wanted}" == " ".join((_answer([command, "--version"]) or "").split()[:2]):
            return Finding("uv", Readiness.OK, wanted)
    return Finding("uv", Readiness.TO_DO, f"{wanted} is missing: run 'make setup', which installs it for this checkout")


def _libraries(checkout: Path, settings: Settings | None) -> Iterator[Finding]:
    """The zips of wheels of the jobs; a check reads one whole."""
    if not (checkout / "uv.lock").is_file() or find_spec("packaging") is None:
        yield Finding("wheels", Readiness.SKIPPED, "needed in a checkout after 'make setup' only")
        return
    from infra.wheels import JobRuntime, check_wheels

    runtimes = {"wheels": JobRuntime.glue()}
    if settings is not None and settings.uses_emr:
        runtimes["emr libraries"] = JobRuntime.emr(settings.emr.architecture)
    for name, runtime in runtimes.items():
        try:
            yield Finding(name, Readiness.OK, str(check_wheels(checkout, runtime)))
        except HybridRouterError as error:
            yield Finding(name, Readiness.TO_DO, str(error))


def _major(command: list[str], pattern: str) -> int | None:
    match = re.search(pattern, _answer(command) or "")
    return int(match[1]) if match else None


def _answer(command: list[str]) -> str | None:
    """What a program prints; None: it is missing, fails, or does not answer in time."""
    if shutil.which(command[0]) is None:
        return None
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=ANSWER_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    return done.stdout + done.stderr
