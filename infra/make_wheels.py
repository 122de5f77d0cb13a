"""Builds a zip of wheels, in the dependency group ``wheels``: ``make wheels`` for Glue, ``make emr-libraries``.

maturin and zig compile the native reader, pip downloads the other wheels, auditwheel checks all of them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from infra.code_assets import AssetError
from infra.wheels import MACHINES, READER, JobRuntime, locked_hashes, missing_libraries, write_zip
from lake.errors import HybridRouterError

CHECKOUT = Path(__file__).parents[1]
MANYLINUX_TAGS = ("manylinux_2_28", "manylinux_2_24", "manylinux_2_17", "manylinux2014")
"""Platforms that Glue's machines can load, newest first; the native reader is compiled for the first."""
_AUDITED_TAG = re.compile(r"manylinux_(\d+)_(\d+)_(\w+)")


def _collect_wheels(checkout: Path, folder: Path, runtime: JobRuntime) -> list[Path]:
    """Build or download the wheels that the jobs need and ``runtime`` lacks, into the existing, empty ``folder``.

    Raises ``AssetError``: rust is missing or has another version, a build or download failed, or the machines cannot
    load a wheel.
    """
    pins = missing_libraries(checkout, runtime)
    _build_reader(checkout, folder, runtime.machine)
    download_wheels({name: version for name, version in pins.items() if name != READER}, checkout, folder, runtime)
    wheels = sorted(folder.glob("*.whl"))
    if len(wheels) != len(pins):
        raise AssetError(f"{len(pins)} wheels are needed ({', '.join(pins)}), but {len(wheels)} were built")
    for wheel in wheels:
        check_compatibility(wheel, runtime)
    return wheels


def check_compatibility(wheel: Path, runtime: JobRuntime) -> tuple[int, int]:
    """The oldest glibc that can load the libraries of a wheel for Linux; (0, 0) for pure Python.

    auditwheel finds it (https://github.com/pypa/auditwheel): it is the glibc of the oldest manylinux platform with all
    symbol versions and system libraries that the wheel needs. glibc versions without a platform of their own count as
    the next one that has one. Raises ``AssetError``: the runtime's glibc is older, no manylinux platform for its
    processor has what the wheel needs, or the wheel cannot be read.
    """
    report = _audit(wheel)
    if report["pure"]:
        return 0, 0
    tag = _AUDITED_TAG.fullmatch(report["overall_tag"])
    if tag is None or tag[3] != runtime.machine:
        libraries = ", ".join(report["external_libs"]) or "newer symbols or CPU instructions"
        raise AssetError(f"{wheel.name} needs {libraries}, which no manylinux platform for {runtime.machine} has")
    glibc = int(tag[1]), int(tag[2])
    if glibc > runtime.glibc:
        has = ".".join(map(str, runtime.glibc))
        raise AssetError(f"{wheel.name} needs glibc {glibc[0]}.{glibc[1]}, {runtime.release} has {has}")
    return glibc


def _audit(wheel: Path) -> dict[str, Any]:
    # Without library paths, the report does not depend on the libraries of the machine that builds.
    arguments = ["show", "--json", "--allow-pure-python-wheel", "--ldpaths="]
    command = [sys.executable, "-m", "auditwheel", *arguments, str(wheel)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        reason = json.loads(result.stdout)["error"] if result.stdout else result.stderr.strip()
        raise AssetError(f"auditwheel cannot check {wheel.name}: {reason}")
    report: dict[str, Any] = json.loads(result.stdout)
    return report


def check_rust(checkout: Path) -> None:
    """Refuse every Rust but the version in ``native/Cargo.toml``.

    Raises ``AssetError``: rust is missing or has another version; names the command that installs it.
    """
    manifest = tomllib.loads((checkout / "native" / "Cargo.toml").read_text(encoding="utf-8"))
    pinned = manifest["package"]["metadata"]["toolchain"]["rust"]
    rustc = shutil.which("rustc")
    if rustc is None or shutil.which("cargo") is None:
        raise AssetError(f"Rust {pinned} is missing: install it (https://rustup.rs), then run `make wheels` again")
    # Like "rustc 1.95.0 (59807616e 2026-04-14)".
    printed = subprocess.run([rustc, "--version"], capture_output=True, text=True, check=False).stdout.strip()
    if printed.split()[1:2] != [pinned]:
        raise AssetError(
            f"this machine has {printed or 'a rustc that does not run'}, native/Cargo.toml names Rust {pinned}: "
            f"run `rustup toolchain install {pinned}`, then `RUSTUP_TOOLCHAIN={pinned} make wheels`"
        )


def _build_reader(checkout: Path, folder: Path, machine: str) -> None:
    check_rust(checkout)
    arguments = ["build", "--manifest-path", str(checkout / "native" / "Cargo.toml"), "--release", "--locked", "--zig"]
    arguments += ["--compatibility", MANYLINUX_TAGS[0], "--target", f"{machine}-unknown-linux-gnu"]
    _run("maturin", [*arguments, "--target-dir", str(checkout / "build" / "wheels"), "--out", str(folder)])


def download_wheels(pins: Mapping[str, str], checkout: Path, folder: Path, runtime: JobRuntime) -> None:
    """Download the wheels of ``pins`` (name -> version) for ``runtime`` into the existing ``folder``.

    pip accepts only files whose hashes are in uv.lock. Raises ``AssetError``.
    """
    hashes = locked_hashes(checkout)
    lines = [
        " ".join([f"{name}=={version}", *(f"--hash=sha256:{digest}" for digest in sorted(hashes[name]))])
        for name, version in pins.items()
    ]
    requirements = folder / "download.txt"
    requirements.write_text("\n".join(lines), encoding="utf-8")
    arguments = ["download", "--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes", "--dest", str(folder)]
    arguments += ["--implementation", "cp", "--python-version", runtime.python]
    arguments += [f"--abi={abi}" for abi in ("cp" + runtime.python.replace(".", ""), "abi3", "none")]
    arguments += [f"--platform={platform}_{runtime.machine}" for platform in MANYLINUX_TAGS]
    _run("pip", [*arguments, "--requirement", str(requirements)])


def _run(module: str, arguments: Sequence[str]) -> None:
    # 1980-01-01, the time of every entry in the reader's wheel: the same sources give the same asset.
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "315532800"}
    result = subprocess.run([sys.executable, "-m", module, *arguments], env=environment, check=False)
    if result.returncode:
        raise AssetError(f"{module} {arguments[0]} failed: see its output above")


def main(architecture: str | None) -> int:
    """Build the zip for EMR Serverless on ``architecture``, or for Glue, and print the names of its wheels.

    Returns the exit code: if the build fails, it prints one sentence to stderr and returns 1.
    """
    try:
        if architecture is not None and architecture not in MACHINES:
            raise AssetError(f"ARCHITECTURE={architecture} is not known: pass one of {', '.join(MACHINES)}")
        runtime = JobRuntime.glue() if architecture is None else JobRuntime.emr(architecture)
        with tempfile.TemporaryDirectory(prefix="hybrid-router-wheels-") as workspace:
            wheels = _collect_wheels(CHECKOUT, Path(workspace), runtime)
            write_zip(wheels, missing_libraries(CHECKOUT, runtime), CHECKOUT, CHECKOUT / runtime.zip)
    except HybridRouterError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{runtime.zip}: {', '.join(wheel.name for wheel in wheels)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else None))
