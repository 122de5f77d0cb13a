"""The code of the Glue jobs: one zip of pure Python packages, the same bytes on every machine."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

from infra.lambda_asset import AssetError

if TYPE_CHECKING:
    from pathlib import Path

PACKAGES = ("batch_job", "lake", "streaming_job", "transform")
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The oldest time a zip can hold: real times would change the asset's hash at every checkout."""


def build_job_zip(checkout: Path, target: Path) -> Path:
    """Write the packages both jobs import to ``target``; returns ``target``.

    Raises
    ------
    AssetError
        A package or a job's ``main.py`` is missing in the checkout.
    """
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in PACKAGES:
            files = sorted((checkout / package).rglob("*.py"))
            if not files:
                raise AssetError(f"the package {package} is missing in {checkout}: deploy from a complete checkout")
            for file in files:
                entry = zipfile.ZipInfo(file.relative_to(checkout).as_posix(), _EPOCH)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, file.read_bytes())
    return target


def job_script(checkout: Path, package: str) -> Path:
    """The file Glue starts."""
    script = checkout / package / "main.py"
    if not script.is_file():
        raise AssetError(f"{package}/main.py is missing in {checkout}: deploy from a complete checkout")
    return script
