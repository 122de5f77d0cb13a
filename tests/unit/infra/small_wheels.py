"""Wheels of a few hundred bytes."""

from __future__ import annotations

import zipfile
from pathlib import Path


def write_wheel(path: Path, files: dict[str, bytes]) -> Path:
    """Write a wheel with these files and the RECORD that lists them; returns its path."""
    info = f"{path.name.split('-')[0]}-1.dist-info"
    record = "".join(f"{name},,\n" for name in (*files, f"{info}/RECORD"))
    with zipfile.ZipFile(path, "w") as wheel:
        for name, content in files.items():
            wheel.writestr(name, content)
        wheel.writestr(f"{info}/RECORD", record)
    return path
