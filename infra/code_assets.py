"""The code that a deployment uploads: the folder of all Lambda functions, and the zip of the Glue jobs.

Both are pure Python with the same bytes on every machine; such code runs on arm64, on x86-64 and on the local cloud
alike. The AWS SDK of the functions comes from the Lambda runtime.
"""

import shutil
import zipfile
from importlib.metadata import distribution
from pathlib import Path

from infra.wheels import AssetError, write_entry
from lake.settings import Settings, dump_settings

SETTINGS_FILE = "settings.json"
OWN_PACKAGES = ("lake", "report", "router")
LIBRARIES = {
    "aws-lambda-powertools": "aws_lambda_powertools",
    "fastavro": "fastavro",
    "jmespath": "jmespath",
    "typing-extensions": "typing_extensions.py",
    "tzdata": "tzdata",
}
"""Distribution -> the module or package that is copied. zoneinfo needs tzdata: Lambda's image has no time zones."""
WITHOUT_COMPILED = frozenset({"fastavro"})
"""Libraries that have Python code for each of their compiled files, and take it where they find no such file."""
SOURCE_SUFFIXES = frozenset({".py", ".js", ".css"})
COMPILED_SUFFIXES = frozenset({".so", ".pyd", ".dylib", ".pyc"})


def build_lambda_asset(checkout: Path, settings: Settings, folder: Path) -> Path:
    """Fill ``folder`` with the code, its libraries and the settings; returns ``folder``.

    Raises ``AssetError``: a library has a compiled file.
    """
    for package in OWN_PACKAGES:
        _copy_package(checkout / package, folder / package)
    for name, module in LIBRARIES.items():
        _copy_library(name, module, folder)
    (folder / SETTINGS_FILE).write_text(dump_settings(settings), encoding="utf-8")
    return folder


def _copy_package(source: Path, target: Path) -> None:
    """Copy a package's Python sources, ``py.typed``, and script and style of a page; caches and others stay out."""
    if not source.is_dir():
        raise AssetError(f"the package {source.name} is missing in {source.parent}: deploy from a complete checkout")
    for file in sorted(source.rglob("*")):
        if file.suffix in SOURCE_SUFFIXES or file.name == "py.typed":
            copy = target / file.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)


def _copy_library(name: str, module: str, folder: Path) -> None:
    for file in distribution(name).files or []:
        if file.parts[0] != module or file.suffix == ".pyc":
            continue
        if file.suffix in COMPILED_SUFFIXES and name in WITHOUT_COMPILED:
            continue
        if file.suffix in COMPILED_SUFFIXES:
            raise AssetError(f"the library {name} has the compiled file {file}: Lambda code must be pure Python")
        copy = folder / Path(*file.parts)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(Path(str(file.locate())), copy)


JOB_PACKAGES = ("batch_job", "lake", "streaming_job", "transform", "verify")


def build_job_zip(checkout: Path, target: Path) -> Path:
    """Write the packages that both jobs import to ``target``; returns ``target``."""
    with zipfile.ZipFile(target, "w") as archive:
        for package in JOB_PACKAGES:
            files = sorted((checkout / package).rglob("*.py"))
            if not files:
                raise AssetError(f"the package {package} is missing in {checkout}: deploy from a complete checkout")
            for file in files:
                write_entry(archive, file.relative_to(checkout).as_posix(), file.read_bytes())
    return target
