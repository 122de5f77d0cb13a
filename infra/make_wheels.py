"""Builds the zip of wheels for Glue: ``make wheels``, in the dependency group ``wheels`` (maturin, zig, pip)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.markers import Marker

from infra.glue_wheels import READER, REQUIREMENTS, WHEELS_ZIP, GlueRuntime, locked_versions, reader_fingerprint
from infra.lambda_asset import AssetError
from lake.errors import HybridRouterError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

CHECKOUT = Path(__file__).parents[1]
JOB_LIBRARIES = ("boto3", READER, "obstore", "pyarrow", "pyspark")
"""The distributions that the jobs' packages import."""
MANYLINUX = ("manylinux_2_28", "manylinux_2_17", "manylinux2014")
"""The newest that our own wheel asks for first; Glue's machines take each of them."""
TARGET = "x86_64-unknown-linux-gnu"
_EPOCH = (1980, 1, 1, 0, 0, 0)
_GLIBC = re.compile(rb"GLIBC_(\d+)\.(\d+)")


def make(checkout: Path, target: Path) -> list[str]:
    """Write the zip to ``target``; returns the names of the wheels in it.

    Raises
    ------
    AssetError
        cargo is missing, a build or download failed, or a wheel needs a newer glibc than Glue has.
    """
    runtime = GlueRuntime.load()
    pins = missing_on_glue(checkout, runtime)
    with tempfile.TemporaryDirectory(prefix="hybrid-router-wheels-") as workspace:
        folder = Path(workspace)
        _build_reader(checkout, folder)
        _download({name: version for name, version in pins.items() if name != READER}, checkout, folder, runtime)
        wheels = sorted(folder.glob("*.whl"))
        if len(wheels) != len(pins):
            raise AssetError(f"{len(pins)} wheels are needed ({', '.join(pins)}), {len(wheels)} were made")
        for wheel in wheels:
            check_glibc(wheel, runtime)
        _write_zip(wheels, pins, reader_fingerprint(checkout), target)
    return [wheel.name for wheel in wheels]


def missing_on_glue(checkout: Path, runtime: GlueRuntime) -> dict[str, str]:
    """Package -> locked version of all that the jobs import, with their dependencies, and Glue does not bring."""
    lock = tomllib.loads((checkout / "uv.lock").read_text(encoding="utf-8"))
    dependencies = {package["name"]: package.get("dependencies", []) for package in lock["package"]}
    versions = locked_versions(checkout)
    found: dict[str, str] = {}
    waiting = list(JOB_LIBRARIES)
    while waiting:
        name = waiting.pop()
        if name in runtime.packages or name in found:
            continue
        found[name] = versions[name]
        waiting += [item["name"] for item in dependencies[name] if _applies(item, runtime)]
    return dict(sorted(found.items()))


def check_glibc(wheel: Path, runtime: GlueRuntime) -> tuple[int, int]:
    """The newest glibc version whose symbols a wheel's libraries name; (0, 0) for pure Python.

    Raises
    ------
    AssetError
        Glue's is older.
    """
    newest = (0, 0)
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if ".so" in Path(name).suffixes:
                named = ((int(major), int(minor)) for major, minor in _GLIBC.findall(archive.read(name)))
                newest = max(newest, *named, (0, 0))
    if newest > runtime.glibc:
        raise AssetError(f"{wheel.name} needs glibc {newest[0]}.{newest[1]}, Glue {runtime.glue} has {runtime.glibc}")
    return newest


def _applies(dependency: Mapping[str, Any], runtime: GlueRuntime) -> bool:
    environment = {
        "python_version": runtime.python,
        "python_full_version": f"{runtime.python}.0",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "sys_platform": "linux",
        "platform_system": "Linux",
        "platform_machine": "x86_64",
        "os_name": "posix",
    }
    marker = dependency.get("marker")
    return marker is None or Marker(marker).evaluate(environment)


def _build_reader(checkout: Path, folder: Path) -> None:
    if shutil.which("cargo") is None:
        raise AssetError("cargo is missing: install Rust (https://rustup.rs), then type `make wheels` again")
    arguments = ["build", "--manifest-path", str(checkout / "native" / "Cargo.toml"), "--release", "--locked", "--zig"]
    arguments += ["--compatibility", MANYLINUX[0], "--target", TARGET]
    _run("maturin", [*arguments, "--target-dir", str(checkout / "build" / "wheels"), "--out", str(folder)])


def _download(pins: Mapping[str, str], checkout: Path, folder: Path, runtime: GlueRuntime) -> None:
    """By exact version, and only the very files that uv.lock names."""
    lock = tomllib.loads((checkout / "uv.lock").read_text(encoding="utf-8"))
    hashes = {package["name"]: [wheel["hash"] for wheel in package.get("wheels", [])] for package in lock["package"]}
    lines = [
        " ".join([f"{name}=={version}", *(f"--hash={digest}" for digest in hashes[name])])
        for name, version in pins.items()
    ]
    requirements = folder / "download.txt"
    requirements.write_text("\n".join(lines), encoding="utf-8")
    arguments = ["download", "--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes", "--dest", str(folder)]
    arguments += ["--implementation", "cp", "--python-version", runtime.python]
    arguments += [f"--abi={abi}" for abi in ("cp" + runtime.python.replace(".", ""), "abi3", "none")]
    arguments += [f"--platform={platform}_x86_64" for platform in MANYLINUX]
    _run("pip", [*arguments, "--requirement", str(requirements)])


def _run(module: str, arguments: Sequence[str]) -> None:
    # The wheel's own zip gets no times, so that the same sources give the same asset.
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "315532800"}
    result = subprocess.run([sys.executable, "-m", module, *arguments], env=environment, check=False)
    if result.returncode:
        raise AssetError(f"{module} {arguments[0]} failed: the reason stands above")


def _write_zip(wheels: Iterable[Path], pins: Mapping[str, str], fingerprint: str, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    requirements = "".join(f"{name}=={version}\n" for name, version in pins.items()).encode()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(REQUIREMENTS, _EPOCH), requirements)
        for wheel in wheels:
            archive.writestr(zipfile.ZipInfo(f"wheels/{wheel.name}", _EPOCH), wheel.read_bytes())
        archive.comment = fingerprint.encode()


def main() -> int:
    """Build, say what is in it; 1 and one sentence on stderr when it did not work."""
    try:
        wheels = make(CHECKOUT, CHECKOUT / WHEELS_ZIP)
    except HybridRouterError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{WHEELS_ZIP}: {', '.join(wheels)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
