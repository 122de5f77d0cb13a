"""The zip of wheels that the Glue jobs install: what is in it, and whether it belongs to this checkout.

``make wheels`` builds it (``infra.make_wheels``); this module needs neither a compiler nor an index.
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
"""Below the checkout. Glue knows a zip of wheels by these last two suffixes."""
SUFFIX = ".gluewheels.zip"
REQUIREMENTS = "wheels/requirements.txt"
READER = "ndjson-arrow"
AGAIN = "type `make wheels`, then the same command again"
_SOURCES = ("Cargo.toml", "Cargo.lock", "pyproject.toml", "src/**/*.rs", "python/**/*.py", "python/**/*.pyi")


@dataclass(frozen=True, slots=True)
class GlueRuntime:
    """What a job finds on Glue: ``packages`` by normalised name."""

    glue: str
    python: str
    glibc: tuple[int, int]
    packages: Mapping[str, str]

    @classmethod
    def load(cls) -> GlueRuntime:
        """The versions of ``glue_runtime.toml``, where their sources stand as well."""
        body = tomllib.loads(Path(__file__).with_name("glue_runtime.toml").read_text(encoding="utf-8"))
        runtime = body["runtime"]
        major, minor = runtime["glibc"].split(".")
        return cls(runtime["glue"], runtime["python"], (int(major), int(minor)), body["packages"])


def locked_versions(checkout: Path) -> dict[str, str]:
    """Package -> version of ``uv.lock``. The reader is built from the checkout: its version is in Cargo.toml."""
    lock = tomllib.loads((checkout / "uv.lock").read_text(encoding="utf-8"))
    cargo = tomllib.loads((checkout / "native" / "Cargo.toml").read_text(encoding="utf-8"))
    versions = {package["name"]: package["version"] for package in lock["package"] if "version" in package}
    return versions | {READER: cargo["package"]["version"]}


def reader_fingerprint(checkout: Path) -> str:
    """SHA-256 over the native reader's sources: the zip carries it as its comment."""
    native = checkout / "native"
    digest = hashlib.sha256()
    for file in sorted({file for pattern in _SOURCES for file in native.glob(pattern)}):
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        digest.update(f"{file.relative_to(native).as_posix()} {content}\n".encode())
    return digest.hexdigest()


def check_wheels(zip_file: Path, checkout: Path) -> Path:
    """``zip_file``, if the jobs of this checkout can be deployed with it.

    Raises
    ------
    AssetError
        It is missing or damaged, or other versions or sources are in it; says what to type.
    """
    if not zip_file.name.endswith(SUFFIX):
        raise AssetError(f"{zip_file} is no zip of wheels for Glue: its name has to end in {SUFFIX}")
    try:
        with zipfile.ZipFile(zip_file) as archive:
            pins = archive.read(REQUIREMENTS).decode().split()
            fingerprint = archive.comment.decode()
    except FileNotFoundError as error:
        raise AssetError(f"the wheels for Glue ({zip_file}) are missing: {AGAIN}") from error
    except (OSError, KeyError, UnicodeDecodeError, zipfile.BadZipFile) as error:
        raise AssetError(f"the wheels for Glue ({zip_file}) cannot be read ({error}): {AGAIN}") from error
    locked = locked_versions(checkout)
    for pin in pins:
        name, _, version = pin.partition("==")
        if locked.get(name) != version:
            other = locked.get(name, "nothing of it")
            raise AssetError(f"the wheels for Glue ({zip_file}) hold {pin}, uv.lock says {other}: {AGAIN}")
    if fingerprint != reader_fingerprint(checkout):
        raise AssetError(f"the wheels for Glue ({zip_file}) hold another state of native/: {AGAIN}")
    return zip_file
