"""Runs the tests of the reader and writer on an emulated Arm processor: ``make arm-tests``, on Debian 12, x86-64.

QEMU's user emulation and Debian's Python for arm64 are unpacked into a folder of the checkout: nothing is installed.
The reader, pyarrow and what else has machine code come from the archive for EMR Serverless and from locked wheels, pure
Python from the environment of the checkout. Two files need what cannot run there: a process of their own, and Polars.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from infra.emr_libraries import check_libraries, emr_runtime, libraries_zip
from infra.glue_wheels import locked_versions
from infra.lambda_asset import AssetError
from infra.make_wheels import CHECKOUT, download_wheels
from lake.errors import HybridRouterError

ARCHITECTURE = "arm64"
FOLDER = CHECKOUT / ".cache" / "arm64"
PYTHON = "usr/bin/python3.11"
"""Debian 12's, which is the version of the archive's wheels."""
TEST_LIBRARIES = ("duckdb", "hypothesis")
"""With machine code, and imported by the tests only."""
LEFT_OUT = ("tests/unit/native/test_native_fuzz.py", "tests/unit/native/test_native_stub.py")


def main() -> int:
    """Prepare what is missing and run the tests; returns pytest's exit code, or 1 after one sentence on stderr."""
    try:
        archive = check_libraries(CHECKOUT / libraries_zip(ARCHITECTURE), CHECKOUT, ARCHITECTURE)
        emulator, root = _emulator(FOLDER / "qemu"), _debian(FOLDER / "debian")
        with tempfile.TemporaryDirectory(prefix="hybrid-router-arm-") as workspace:
            libraries = _libraries(archive, Path(workspace))
            return _run_tests(emulator, root, libraries)
    except HybridRouterError as error:
        sys.stderr.write(f"{error}\n")
        return 1


def _emulator(folder: Path) -> Path:
    """QEMU for programs of Linux on Arm."""
    program = folder / "usr/bin/qemu-aarch64-static"
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        _run(["apt-get", "download", "qemu-user-static"], folder)
        _unpack(folder, folder)
    return program


def _debian(folder: Path) -> Path:
    """The folder with Debian's Python for arm64 and its libraries; apt gets an empty state of its own."""
    root = folder / "root"
    if not (root / PYTHON).exists():
        for name in ("state/lists/partial", "cache/archives/partial", "root"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / "state/status").touch()
        places = {"State": "state", "State::status": "state/status", "Cache": "cache"}
        options = [f"-oDir::{key}={folder / value}" for key, value in places.items()]
        options += ["-oAPT::Architecture=arm64", "-oAPT::Architectures=arm64", "-oAPT::Install-Recommends=false"]
        options += ["-oAPT::Sandbox::User=", "-oDebug::NoLocking=1"]
        _run(["apt-get", *options, "update"], folder)
        _run(["apt-get", *options, "--yes", "--download-only", "install", Path(PYTHON).name, "libstdc++6"], folder)
        _unpack(folder / "cache/archives", root)
    return root


def _libraries(archive: Path, workspace: Path) -> Path:
    """The unpacked archive with the libraries that the tests need besides."""
    versions, wheels, libraries = locked_versions(CHECKOUT), workspace / "wheels", workspace / "libraries"
    wheels.mkdir()
    download_wheels({name: versions[name] for name in TEST_LIBRARIES}, CHECKOUT, wheels, emr_runtime(ARCHITECTURE))
    for file in (archive, *sorted(wheels.glob("*.whl"))):
        with zipfile.ZipFile(file) as content:
            content.extractall(libraries)
    return libraries


def _run_tests(emulator: Path, root: Path, libraries: Path) -> int:
    (packages,) = (CHECKOUT / ".venv" / "lib").glob("python3.*/site-packages")
    path = os.pathsep.join(map(str, (libraries, packages, CHECKOUT)))
    environment = {"HOME": str(libraries.parent), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": path}
    ignored = [f"--ignore={file}" for file in LEFT_OUT]
    pytest = ["-m", "pytest", "tests/unit/native", "-q", "-p", "no:cacheprovider", *ignored]
    command: list[str | Path] = [emulator, "-L", root, root / PYTHON, *pytest]
    return subprocess.run(command, cwd=CHECKOUT, env=environment, check=False).returncode


def _unpack(folder: Path, root: Path) -> None:
    for package in sorted(folder.glob("*.deb")):
        _run(["dpkg", "-x", package, root], folder)


def _run(command: list[str | Path], folder: Path) -> None:
    if shutil.which(str(command[0])) is None:
        raise AssetError(f"{command[0]} is missing: run `make arm-tests` on Debian 12")
    if subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=False).returncode:
        raise AssetError(f"{command[0]} failed: see its output above, then run `make arm-tests` again")


if __name__ == "__main__":
    sys.exit(main())
