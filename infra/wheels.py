"""The jobs' zips of wheels, one for each service: their content, check and build.

Glue installs the wheels of its zip. EMR Serverless installs nothing: Spark unpacks an archive next to the driver and to
each executor, with its folder on the path of Python, so the archive has the wheels' content (``unpack``). ``make
wheels`` and ``make emr-libraries`` run this module with only ``packaging`` and build tools: maturin and zig compile the
native reader, and pip downloads the other wheels, both for an old glibc that all machines of the services have (Amazon
Linux 2023: 2.34).
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.markers import Marker
from packaging.utils import parse_wheel_filename

from lake.errors import HybridRouterError, TerminalError

WHEELS_SUFFIX = ".gluewheels.zip"
"""Glue recognises a zip of wheels by this double suffix."""
REQUIREMENTS = "wheels/requirements.txt"
"""The pinned packages, one ``name==version`` per line; Glue installs what it lists."""
READER = "ndjson-arrow"
MACHINES = {"x86_64": "x86_64", "arm64": "aarch64"}
"""``emr.architecture`` -> the processor as wheels name it."""
JOB_LIBRARIES = ("boto3", READER, "obstore", "pyarrow", "pyspark")
"""The distributions that the jobs' packages import."""
_READER_SOURCES = ("Cargo.toml", "Cargo.lock", "pyproject.toml", "src/**/*.rs", "python/**/*.py", "python/**/*.pyi")

ZIP_TIME = (1980, 1, 1, 0, 0, 0)
"""The earliest time a zip can hold, for every entry: real times would change the asset's hash at every checkout."""


class AssetError(TerminalError):
    """An asset of a deployment (code, wheels) cannot be built from this checkout."""


@dataclass(frozen=True, slots=True)
class JobRuntime:
    """What a service provides to a job."""

    service: str
    python: str
    """Major and minor version."""
    packages: Mapping[str, str]
    """Normalised name -> version of each installed package."""
    machine: str
    """Processor, as Python's ``platform.machine`` names it."""
    zip: Path
    build: str

    @classmethod
    def glue(cls) -> "JobRuntime":
        return cls._load("Glue", "glue_runtime.toml", "x86_64", f"hybrid-router{WHEELS_SUFFIX}", "make wheels")

    @classmethod
    def emr(cls, architecture: str) -> "JobRuntime":
        """EMR Serverless, for a value of ``emr.architecture``."""
        build = f"make emr-libraries ARCHITECTURE={architecture}"
        file = f"hybrid-router.emr-libraries-{architecture}.zip"
        return cls._load("EMR Serverless", "emr_runtime.toml", MACHINES[architecture], file, build)

    @classmethod
    def _load(cls, service: str, file: str, machine: str, zip_file: str, build: str) -> "JobRuntime":
        """Return the versions in a file next to this one, which also names their sources."""
        body = tomllib.loads(Path(__file__).with_name(file).read_text(encoding="utf-8"))
        zip_path = Path("dist") / zip_file
        return cls(service, body["runtime"]["python"], body["packages"], machine, zip_path, build)


def locked_versions(checkout: Path) -> dict[str, str]:
    """Name -> version of every package in ``uv.lock``; the reader, which is built here, has its version in
    Cargo.toml."""
    lock = tomllib.loads((checkout / "uv.lock").read_text(encoding="utf-8"))
    cargo = tomllib.loads((checkout / "native" / "Cargo.toml").read_text(encoding="utf-8"))
    versions = {package["name"]: package["version"] for package in lock["package"] if "version" in package}
    return versions | {READER: cargo["package"]["version"]}


def locked_hashes(checkout: Path) -> dict[str, frozenset[str]]:
    """Name -> SHA-256 (hexadecimal) of every wheel of that package in ``uv.lock``."""
    lock = tomllib.loads((checkout / "uv.lock").read_text(encoding="utf-8"))
    return {
        package["name"]: frozenset(wheel["hash"].removeprefix("sha256:") for wheel in package.get("wheels", []))
        for package in lock["package"]
    }


def missing_libraries(checkout: Path, runtime: JobRuntime) -> dict[str, str]:
    """Name -> locked version of every package that the jobs need, directly or not, and that the runtime lacks."""
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


def reader_fingerprint(checkout: Path) -> str:
    """SHA-256 (hexadecimal) over names and contents of the native reader's sources."""
    native = checkout / "native"
    digest = hashlib.sha256()
    for file in sorted({file for pattern in _READER_SOURCES for file in native.glob(pattern)}):
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        digest.update(f"{file.relative_to(native).as_posix()} {content}\n".encode())
    return digest.hexdigest()


def write_zip(wheels: Iterable[Path], pins: Mapping[str, str], checkout: Path, target: Path) -> None:
    """Write ``wheels`` and the list of ``pins``; the comment of the zip is the fingerprint of the reader's sources."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(REQUIREMENTS, ZIP_TIME), _requirements(pins))
        for wheel in wheels:
            archive.writestr(zipfile.ZipInfo(f"wheels/{wheel.name}", ZIP_TIME), wheel.read_bytes())
        archive.comment = reader_fingerprint(checkout).encode()


def check_wheels(checkout: Path, runtime: JobRuntime, zip_file: Path | None = None) -> Path:
    """Return ``zip_file`` (None: the checkout's) if it holds exactly the wheels that the jobs need.

    Every wheel has a SHA-256 that ``uv.lock`` states for its package, and the reader was built from the sources of this
    checkout. Raises ``AssetError``, with the command that builds the zip, if it is missing or damaged, or has other
    wheels.
    """
    zip_file = zip_file or checkout / runtime.zip
    what = f"the wheels for {runtime.service} ({zip_file})"
    rebuild = f"run `{runtime.build}`, then the same command again"
    try:
        with zipfile.ZipFile(zip_file) as archive:
            requirements, fingerprint = archive.read(REQUIREMENTS), archive.comment.decode()
            wheels = {entry: archive.read(entry) for entry in archive.namelist() if entry != REQUIREMENTS}
        names = {entry: str(parse_wheel_filename(entry.removeprefix("wheels/"))[0]) for entry in wheels}
    except FileNotFoundError as error:
        raise AssetError(f"{what} are missing: {rebuild}") from error
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise AssetError(f"{what} cannot be read ({error}): {rebuild}") from error
    needed = missing_libraries(checkout, runtime)
    if requirements != _requirements(needed) or sorted(names.values()) != sorted(needed):
        raise AssetError(f"{what} are not exactly the ones that the jobs need ({', '.join(needed)}): {rebuild}")
    if fingerprint != reader_fingerprint(checkout):
        raise AssetError(f"{what} were built from another state of native/: {rebuild}")
    known = locked_hashes(checkout)
    for entry, name in names.items():
        if name != READER and hashlib.sha256(wheels[entry]).hexdigest() not in known[name]:
            raise AssetError(f"{what} contain {entry}, whose SHA-256 is not in uv.lock: {rebuild}")
    return zip_file


def _requirements(pins: Mapping[str, str]) -> bytes:
    return "".join(f"{name}=={version}\n" for name, version in pins.items()).encode()


def unpack(zip_file: Path, folder: Path) -> Path:
    """Write the content of the wheels to ``folder``, and return it."""
    with zipfile.ZipFile(zip_file) as archive:
        for entry in archive.namelist():
            if entry != REQUIREMENTS:
                with archive.open(entry) as stream, zipfile.ZipFile(stream) as wheel:
                    wheel.extractall(folder, (name for name in wheel.namelist() if ".data/" not in name))
    return folder


def _applies(dependency: Mapping[str, Any], runtime: JobRuntime) -> bool:
    environment = {
        "python_version": runtime.python,
        "python_full_version": f"{runtime.python}.0",
        "sys_platform": "linux",
        "platform_system": "Linux",
        "platform_machine": runtime.machine,
    }
    marker = dependency.get("marker")
    return marker is None or Marker(marker).evaluate(environment)


CHECKOUT = Path(__file__).parents[1]
MANYLINUX_TAGS = ("manylinux_2_28", "manylinux_2_24", "manylinux_2_17", "manylinux2014")
"""Platforms that Glue's machines can load, newest first; the native reader is compiled for the first."""


def _check_rust() -> None:
    """Refuse every Rust except ``native/Cargo.toml``'s version; ``AssetError`` has the command that installs it."""
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
