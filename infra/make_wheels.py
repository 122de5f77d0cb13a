"""Builds a zip of wheels, in the dependency group ``wheels``: ``make wheels`` for Glue, ``make emr-libraries``.

maturin and zig compile the native reader, and pip downloads the other wheels: both for an old glibc, which all
machines of the services have (Amazon Linux 2023: 2.34).
"""

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from infra.wheels import (
    MACHINES,
    READER,
    AssetError,
    JobRuntime,
    check_wheels,
    locked_hashes,
    missing_libraries,
    write_zip,
)
from lake.errors import HybridRouterError

CHECKOUT = Path(__file__).parents[1]
MANYLINUX_TAGS = ("manylinux_2_28", "manylinux_2_24", "manylinux_2_17", "manylinux2014")
"""Platforms that Glue's machines can load, newest first; the native reader is compiled for the first."""


def _check_rust() -> None:
    """Refuse every Rust but the version in ``native/Cargo.toml``; raises ``AssetError`` with the command for it."""
    manifest = tomllib.loads((CHECKOUT / "native" / "Cargo.toml").read_text(encoding="utf-8"))
    pinned = manifest["package"]["metadata"]["toolchain"]["rust"]
    rustc = shutil.which("rustc")
    # Like "rustc 1.95.0 (59807616e 2026-04-14)".
    printed = ""
    if rustc is not None:
        printed = subprocess.run([rustc, "--version"], capture_output=True, text=True, check=False).stdout.strip()
    if printed.split()[1:2] != [pinned]:
        raise AssetError(
            f"this machine has {printed or 'no Rust'}, native/Cargo.toml names {pinned}: run "
            f"`rustup toolchain install {pinned}` (https://rustup.rs), then `RUSTUP_TOOLCHAIN={pinned} make wheels`"
        )


def _download_wheels(pins: Mapping[str, str], folder: Path, runtime: JobRuntime) -> None:
    """Download the wheels of ``pins`` (name -> version) for ``runtime`` into the existing ``folder``.

    pip accepts only files whose hashes are in uv.lock. Raises ``AssetError``.
    """
    hashes = locked_hashes(CHECKOUT)
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
            folder, pins = Path(workspace), missing_libraries(CHECKOUT, runtime)
            _check_rust()
            arguments = ["build", "--manifest-path", str(CHECKOUT / "native" / "Cargo.toml"), "--release", "--locked"]
            arguments += ["--zig", "--compatibility", MANYLINUX_TAGS[0]]
            arguments += ["--target", f"{runtime.machine}-unknown-linux-gnu"]
            _run("maturin", [*arguments, "--target-dir", str(CHECKOUT / "build" / "wheels"), "--out", str(folder)])
            others = {name: version for name, version in pins.items() if name != READER}
            _download_wheels(others, folder, runtime)
            wheels = sorted(folder.glob("*.whl"))
            write_zip(wheels, pins, CHECKOUT, CHECKOUT / runtime.zip)
        check_wheels(CHECKOUT, runtime)
    except HybridRouterError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{runtime.zip}: {', '.join(wheel.name for wheel in wheels)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else None))
