"""The zip of wheels that the Glue jobs install: its format, and the check that it belongs to this checkout.

``make wheels`` builds it (``infra.make_wheels``); this module needs no compiler and no package index.
"""

from __future__ import annotations

import hashlib
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from infra.lambda_asset import AssetError

if TYPE_CHECKING:
    from collections.abc import Mapping

WHEELS_ZIP = Path("dist") / "hybrid-router.gluewheels.zip"
"""Path in the checkout."""
WHEELS_SUFFIX = ".gluewheels.zip"
"""Glue recognises a zip of wheels by this double suffix."""
REQUIREMENTS = "wheels/requirements.txt"
"""The pinned packages, one ``name==version`` per line; Glue installs what it lists."""
READER = "ndjson-arrow"
REBUILD = "run `make wheels`, then the same command again"
_READER_SOURCES = ("Cargo.toml", "Cargo.lock", "pyproject.toml", "src/**/*.rs", "python/**/*.py", "python/**/*.pyi")


@dataclass(frozen=True, slots=True)
class GlueRuntime:
    """What Glue provides to a job."""

    glue: str
    """Version of Glue."""
    python: str
    """Major and minor version."""
    glibc: tuple[int, int]
    packages: Mapping[str, str]
    """Normalised name -> version of each installed package."""

    @classmethod
    def load(cls) -> GlueRuntime:
        """The versions of ``glue_runtime.toml``, which also names their sources."""
        body = tomllib.loads(Path(__file__).with_name("glue_runtime.toml").read_text(encoding="utf-8"))
        runtime = body["runtime"]
        major, minor = runtime["glibc"].split(".")
        return cls(runtime["glue"], runtime["python"], (int(major), int(minor)), body["packages"])


def locked_versions(checkout: Path) -> dict[str, str]:
    """Name -> version of every package in ``uv.lock``; that of the reader, which is built here, from Cargo.toml."""
    lock = tomllib.loads((checkout / "uv.lock").read_text(encoding="utf-8"))
    cargo = tomllib.loads((checkout / "native" / "Cargo.toml").read_text(encoding="utf-8"))
    versions = {package["name"]: package["version"] for package in lock["package"] if "version" in package}
    return versions | {READER: cargo["package"]["version"]}


def reader_fingerprint(checkout: Path) -> str:
    """SHA-256 (hexadecimal) over names and contents of the native reader's sources; the comment of the zip."""
    native = checkout / "native"
    digest = hashlib.sha256()
    for file in sorted({file for pattern in _READER_SOURCES for file in native.glob(pattern)}):
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        digest.update(f"{file.relative_to(native).as_posix()} {content}\n".encode())
    return digest.hexdigest()


def check_wheels(zip_file: Path, checkout: Path) -> Path:
    """Return ``zip_file`` if it holds the locked versions and this checkout's reader.

    Raises
    ------
    AssetError
        The zip is missing or damaged, or was built from other versions or sources; names the command that builds it.
    """
    if not zip_file.name.endswith(WHEELS_SUFFIX):
        raise AssetError(f"{zip_file} is not a valid zip of wheels for Glue: its name must end in {WHEELS_SUFFIX}")
    try:
        with zipfile.ZipFile(zip_file) as archive:
            pins = archive.read(REQUIREMENTS).decode().split()
            fingerprint = archive.comment.decode()
    except FileNotFoundError as error:
        raise AssetError(f"the wheels for Glue ({zip_file}) are missing: {REBUILD}") from error
    except (OSError, KeyError, UnicodeDecodeError, zipfile.BadZipFile) as error:
        raise AssetError(f"the wheels for Glue ({zip_file}) cannot be read ({error}): {REBUILD}") from error
    locked = locked_versions(checkout)
    for pin in pins:
        name, _, version = pin.partition("==")
        if locked.get(name) != version:
            expected = f"{name}=={locked[name]}" if name in locked else f"no {name}"
            raise AssetError(f"the wheels for Glue ({zip_file}) contain {pin}, uv.lock has {expected}: {REBUILD}")
    if fingerprint != reader_fingerprint(checkout):
        raise AssetError(f"the wheels for Glue ({zip_file}) were built from another state of native/: {REBUILD}")
    return zip_file
