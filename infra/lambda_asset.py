"""The one code folder of all Lambda functions: pure Python, the same bytes on every machine.

Pure Python makes one asset good for arm64, x86 and the local cloud; the AWS SDK comes from the Lambda runtime.
"""

from __future__ import annotations

import shutil
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from lake.errors import TerminalError
from lake.settings import Settings, dump_settings

SETTINGS_FILE = "settings.json"
OWN_PACKAGES = ("lake", "router")
LIBRARIES = {
    "aws-lambda-powertools": "aws_lambda_powertools",
    "jmespath": "jmespath",
    "typing-extensions": "typing_extensions.py",
    "tzdata": "tzdata",
}
"""Distribution -> what is taken of it. zoneinfo reads tzdata: the runtime's image has no time zones of its own."""
COMPILED = frozenset({".so", ".pyd", ".dylib", ".pyc"})


class AssetError(TerminalError):
    """The code of a function or a job cannot be put together."""


def build_lambda_asset(checkout: Path, settings: Settings, folder: Path) -> Path:
    """Fill ``folder`` with the code, its libraries and the settings; returns ``folder``.

    Raises
    ------
    AssetError
        A library is not installed, or would bring a compiled file.
    """
    for package in OWN_PACKAGES:
        copy_package(checkout / package, folder / package)
    for name, part in LIBRARIES.items():
        _copy_library(name, part, folder)
    (folder / SETTINGS_FILE).write_text(dump_settings(settings), encoding="utf-8")
    return folder


def copy_package(source: Path, target: Path) -> None:
    """Copy a package's Python sources (and ``py.typed``), nothing that a run left behind."""
    if not source.is_dir():
        raise AssetError(f"the package {source.name} is missing in {source.parent}: deploy from a complete checkout")
    for file in sorted(source.rglob("*")):
        if file.suffix == ".py" or file.name == "py.typed":
            copy = target / file.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)


def _copy_library(name: str, part: str, folder: Path) -> None:
    try:
        files = distribution(name).files or []
    except PackageNotFoundError as error:
        raise AssetError(f"the library {name} is not installed: run `uv sync`") from error
    for file in files:
        if file.parts[0] != part or file.suffix == ".pyc":
            continue
        if file.suffix in COMPILED:
            raise AssetError(f"the library {name} holds the compiled file {file}: Lambda code must be pure Python")
        copy = folder / Path(*file.parts)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(Path(str(file.locate())), copy)
