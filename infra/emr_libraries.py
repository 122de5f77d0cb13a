"""The archive of libraries that job runs on EMR Serverless unpack: its format, and the check of its bytes.

EMR Serverless installs nothing: Spark unpacks an archive beside the driver and beside each executor, and its folder is
on the path of Python. So the archive holds the content of the wheels. ``make emr-libraries`` builds it.
"""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.utils import parse_wheel_filename

from infra.glue_wheels import (
    READER,
    JobRuntime,
    locked_hashes,
    missing_libraries,
    reader_fingerprint,
    wheel_difference,
)
from infra.job_asset import ZIP_TIME
from infra.lambda_asset import AssetError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MACHINES = {"x86_64": "x86_64", "arm64": "aarch64"}
"""``emr.architecture`` -> the processor as wheels name it."""
RUNTIME_FILE = "emr_runtime.toml"
LIST = "hybrid_router_wheels.txt"
"""In the archive: file name and SHA-256 of each wheel that was unpacked, one per line."""


def libraries_zip(architecture: str) -> Path:
    """Path of the archive in the checkout, for a value of ``emr.architecture``."""
    return Path("dist") / f"hybrid-router.emr-libraries-{architecture}.zip"


def emr_runtime(architecture: str) -> JobRuntime:
    """What EMR Serverless provides to a job."""
    return JobRuntime.load(RUNTIME_FILE, MACHINES[architecture])


def write_libraries(wheels: Iterable[Path], checkout: Path, target: Path) -> None:
    """Unpack ``wheels`` into the archive ``target``.

    Its comment has the fingerprint of the reader's sources, the SHA-256 of the reader's wheel and that of the content.

    Raises
    ------
    AssetError
        A wheel has files that do not belong beside the others, or two wheels have the same file.
    """
    content: dict[str, bytes] = {}
    lines, reader_hash = [], ""
    for wheel in sorted(wheels):
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        lines.append(f"{wheel.name} {digest}\n")
        if wheel.name.startswith(READER.replace("-", "_")):
            reader_hash = digest
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if ".data/" in name and ".data/scripts/" not in name:
                    raise AssetError(f"{wheel.name} installs {name} outside of the packages: unpacking is not enough")
                if name in content:
                    raise AssetError(f"{name} is in {wheel.name} and in another wheel: they cannot share a folder")
                if not name.endswith("/") and ".data/" not in name:
                    content[name] = archive.read(name)
    content[LIST] = "".join(lines).encode()
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in sorted(content.items()):
            entry = zipfile.ZipInfo(name, ZIP_TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, body)
        archive.comment = f"{reader_fingerprint(checkout)} {reader_hash} {_digest(content)}".encode()


def check_libraries(archive_file: Path, checkout: Path, architecture: str) -> Path:
    """Return ``archive_file`` if it has the content of exactly the wheels that the jobs need, byte for byte.

    Every wheel is for the processor or for any, and had a SHA-256 that ``uv.lock`` states for its package; the reader's
    was the one that ``make emr-libraries`` has built from the sources of this checkout.

    Raises
    ------
    AssetError
        The archive is missing or damaged, or has other libraries; names the command that builds it.
    """
    rebuild = f"run `make emr-libraries ARCHITECTURE={architecture}`, then the same command again"
    try:
        with zipfile.ZipFile(archive_file) as archive:
            fingerprint, reader_hash, digest = archive.comment.decode().split()
            content = {name: archive.read(name) for name in archive.namelist()}
        lines = [line.split() for line in content[LIST].decode().splitlines()]
        wheels = [(f"wheels/{name}", wheel_digest) for name, wheel_digest in lines]
    except FileNotFoundError as error:
        raise AssetError(f"the libraries for EMR Serverless ({archive_file}) are missing: {rebuild}") from error
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise AssetError(
            f"the libraries for EMR Serverless ({archive_file}) cannot be read ({error}): {rebuild}"
        ) from error
    needed = missing_libraries(checkout, emr_runtime(architecture))
    known = locked_hashes(checkout) | {READER: frozenset({reader_hash})}
    difference = wheel_difference(wheels, {name: known[name] for name in needed})
    if difference is None:
        difference = _foreign_wheel([name for name, _ in lines], MACHINES[architecture])
    if difference is None and fingerprint != reader_fingerprint(checkout):
        difference = "were built from another state of native/"
    if difference is None and digest != _digest(content):
        difference = "were changed after they were built"
    if difference is not None:
        raise AssetError(f"the libraries for EMR Serverless ({archive_file}) {difference}: {rebuild}")
    return archive_file


def _foreign_wheel(names: Iterable[str], machine: str) -> str | None:
    """What differs if a wheel is for another processor."""
    for name in names:
        platforms = {tag.platform for tag in parse_wheel_filename(name)[3]}
        if not any(platform == "any" or platform.endswith(f"_{machine}") for platform in platforms):
            return f"contain {name}, which is not for {machine}"
    return None


def _digest(content: Mapping[str, bytes]) -> str:
    """SHA-256 (hexadecimal) over names and contents."""
    digest = hashlib.sha256()
    for name, body in sorted(content.items()):
        digest.update(f"{name} {hashlib.sha256(body).hexdigest()}\n".encode())
    return digest.hexdigest()
