"""The code of the Glue jobs: one zip of pure Python packages, with the same bytes on every machine."""

from __future__ import annotations

import zipfile
from pathlib import Path

from infra.lambda_asset import AssetError

JOB_PACKAGES = ("batch_job", "lake", "streaming_job", "transform", "verify")
ZIP_TIME = (1980, 1, 1, 0, 0, 0)
"""The earliest time a zip can hold, for every entry: real times would change the asset's hash at every checkout."""


def build_job_zip(checkout: Path, target: Path) -> Path:
    """Write the packages that both jobs import to ``target``; returns ``target``.

    Raises ``AssetError``: a package is missing in the checkout.
    """
    with zipfile.ZipFile(target, "w") as archive:
        for package in JOB_PACKAGES:
            files = sorted((checkout / package).rglob("*.py"))
            if not files:
                raise AssetError(f"the package {package} is missing in {checkout}: deploy from a complete checkout")
            for file in files:
                write_entry(archive, file.relative_to(checkout).as_posix(), file.read_bytes())
    return target


def write_entry(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    """Add a compressed file to an archive, with the same bytes on every machine."""
    entry = zipfile.ZipInfo(name, ZIP_TIME)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    archive.writestr(entry, content)


def job_script(checkout: Path, package: str) -> Path:
    """The script that Glue starts for the job in ``package``.

    Raises ``AssetError``: the script is missing in the checkout.
    """
    script = checkout / package / "main.py"
    if not script.is_file():
        raise AssetError(f"{package}/main.py is missing in {checkout}: deploy from a complete checkout")
    return script
