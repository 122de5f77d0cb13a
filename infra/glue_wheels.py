"""The zip of wheels that the Glue jobs install: what belongs into it, its format, and the check of its bytes.

``make wheels`` builds it (``infra.make_wheels``); this module needs no compiler and no package index.
"""

from __future__ import annotations

import hashlib
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.markers import Marker
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from infra.job_asset import ZIP_TIME
from infra.lambda_asset import AssetError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

WHEELS_ZIP = Path("dist") / "hybrid-router.gluewheels.zip"
"""Path in the checkout."""
WHEELS_SUFFIX = ".gluewheels.zip"
"""Glue recognises a zip of wheels by this double suffix."""
REQUIREMENTS = "wheels/requirements.txt"
"""The pinned packages, one ``name==version`` per line; Glue installs what it lists."""
READER = "ndjson-arrow"
JOB_LIBRARIES = ("boto3", READER, "obstore", "pyarrow", "pyspark")
"""The distributions that the jobs' packages import."""
REBUILD = "run `make wheels`, then the same command again"
_READER_SOURCES = ("Cargo.toml", "Cargo.lock", "pyproject.toml", "src/**/*.rs", "python/**/*.py", "python/**/*.pyi")


@dataclass(frozen=True, slots=True)
class JobRuntime:
    """What a service provides to a job."""

    release: str
    """Service and version."""
    python: str
    """Major and minor version."""
    glibc: tuple[int, int]
    packages: Mapping[str, str]
    """Normalised name -> version of each installed package."""
    machine: str = "x86_64"
    """Processor, as Python's ``platform.machine`` names it."""

    @classmethod
    def load(cls, file: str = "glue_runtime.toml", machine: str = "x86_64") -> JobRuntime:
        """The versions of a file next to this one, which also names their sources."""
        body = tomllib.loads(Path(__file__).with_name(file).read_text(encoding="utf-8"))
        runtime = body["runtime"]
        major, minor = runtime["glibc"].split(".")
        return cls(runtime["release"], runtime["python"], (int(major), int(minor)), body["packages"], machine)


def locked_versions(checkout: Path) -> dict[str, str]:
    """Name -> version of every package in ``uv.lock``; that of the reader, which is built here, from Cargo.toml."""
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
    """Write ``wheels`` and the list of ``pins`` to ``target``.

    The comment of the zip has the fingerprint of the reader's sources and the SHA-256 of the reader's wheel: no lock
    knows the hash of what is built here.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    requirements = "".join(f"{name}=={version}\n" for name, version in pins.items()).encode()
    reader_hash = ""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(REQUIREMENTS, ZIP_TIME), requirements)
        for wheel in wheels:
            content = wheel.read_bytes()
            archive.writestr(zipfile.ZipInfo(f"wheels/{wheel.name}", ZIP_TIME), content)
            if parse_wheel_filename(wheel.name)[0] == READER:
                reader_hash = hashlib.sha256(content).hexdigest()
        archive.comment = f"{reader_fingerprint(checkout)} {reader_hash}".encode()


def check_wheels(zip_file: Path, checkout: Path) -> Path:
    """Return ``zip_file`` if it holds exactly the wheels that the jobs need, byte for byte.

    Every wheel must have a SHA-256 that ``uv.lock`` states for its package. The reader's wheel must be the one that
    ``make wheels`` has built from the sources of this checkout.

    Raises
    ------
    AssetError
        The zip is missing or damaged, lacks a wheel, or has another one; names the command that builds it.
    """
    if not zip_file.name.endswith(WHEELS_SUFFIX):
        raise AssetError(f"{zip_file} is not a valid zip of wheels for Glue: its name must end in {WHEELS_SUFFIX}")
    try:
        with zipfile.ZipFile(zip_file) as archive:
            pins = archive.read(REQUIREMENTS).decode().split()
            fingerprint, _, reader_hash = archive.comment.decode().partition(" ")
            entries = archive.namelist()
            entries.remove(REQUIREMENTS)
            hashes = [(entry, hashlib.sha256(archive.read(entry)).hexdigest()) for entry in entries]
    except FileNotFoundError as error:
        raise AssetError(f"the wheels for Glue ({zip_file}) are missing: {REBUILD}") from error
    except (OSError, KeyError, UnicodeDecodeError, zipfile.BadZipFile) as error:
        raise AssetError(f"the wheels for Glue ({zip_file}) cannot be read ({error}): {REBUILD}") from error
    needed = missing_libraries(checkout, JobRuntime.load())
    difference = _pin_difference(pins, needed, checkout)
    if difference is None and fingerprint != reader_fingerprint(checkout):
        difference = "were built from another state of native/"
    if difference is None:
        known = locked_hashes(checkout) | {READER: frozenset({reader_hash})}
        difference = wheel_difference(hashes, {name: known[name] for name in needed})
    if difference is not None:
        raise AssetError(f"the wheels for Glue ({zip_file}) {difference}: {REBUILD}")
    return zip_file


def _pin_difference(pins: Sequence[str], needed: Mapping[str, str], checkout: Path) -> str | None:
    locked = locked_versions(checkout)
    for pin in pins:
        name, _, version = pin.partition("==")
        if locked.get(name) != version:
            expected = f"{name}=={locked[name]}" if name in locked else f"no {name}"
            return f"contain {pin}, uv.lock has {expected}"
    expected_pins = {f"{name}=={version}" for name, version in needed.items()}
    if set(pins) != expected_pins:
        return f"list {', '.join(sorted(pins)) or 'nothing'}, the jobs need {', '.join(sorted(expected_pins))}"
    return None


def wheel_difference(hashes: Sequence[tuple[str, str]], known: Mapping[str, frozenset[str]]) -> str | None:
    """What differs between the entries with their SHA-256 and the known SHA-256 of the wheel of each package."""
    missing = set(known)
    for entry, digest in hashes:
        try:
            name = parse_wheel_filename(entry.removeprefix("wheels/"))[0]
        except InvalidWheelFilename:
            return f"contain {entry}, which is not a wheel"
        if name not in missing:
            return f"contain {entry}, which is not needed or is there twice"
        missing.remove(name)
        if digest not in known[name]:
            source = "its build has recorded" if name == READER else "uv.lock states"
            return f"contain {entry} with the SHA-256 {digest}, which is not what {source}"
    return f"lack the wheel of {', '.join(sorted(missing))}" if missing else None


def _applies(dependency: Mapping[str, Any], runtime: JobRuntime) -> bool:
    environment = {
        "python_version": runtime.python,
        "python_full_version": f"{runtime.python}.0",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "sys_platform": "linux",
        "platform_system": "Linux",
        "platform_machine": runtime.machine,
        "os_name": "posix",
    }
    marker = dependency.get("marker")
    return marker is None or Marker(marker).evaluate(environment)
