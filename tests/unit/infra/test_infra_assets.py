"""The uploaded code is pure Python, complete, and has the same bytes every time."""

import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from infra.assets import COMPILED_SUFFIXES, JOB_PACKAGES, OWN_PACKAGES, build_job_zip, build_lambda_asset
from infra.functions import SPECS
from infra.synth import CHECKOUT
from infra.wheels import AssetError
from lake.settings import Settings
from tests.unit.infra.conftest import Assembly

SETTINGS = Settings(stage="test")
COMPILED_MAGIC = (b"\x7fELF", b"MZ", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")


def test_the_functions_code_is_pure_python(assembly: Assembly) -> None:
    files = [path for path in assembly.asset_folder("Routerroute").rglob("*") if path.is_file()]
    assert len(files) > 100
    for file in files:
        assert file.suffix not in COMPILED_SUFFIXES, file
        # By content as well: time zone files have no suffix either, but are data.
        assert not file.read_bytes().startswith(COMPILED_MAGIC), file


def test_every_handler_can_be_imported_from_the_asset_and_boto3_alone(assembly: Assembly) -> None:
    # Given the asset, the standard library and the packages of the Lambda runtime: boto3 and its dependencies.
    runtime = ("boto3", "botocore", "s3transfer", "dateutil", "six", "urllib3", "jmespath")
    program = f"""
import importlib, sys
from importlib.machinery import PathFinder
class Guard:
    def find_spec(self, name, path=None, target=None):
        if path is None and name.split(".")[0] not in {runtime!r} + ("backports",):
            spec = PathFinder.find_spec(name, [entry for entry in sys.path if "site-packages" not in entry])
            if spec is None:
                raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
            return spec
sys.meta_path.insert(2, Guard())
sys.path[:] = [sys.argv[1]] + [entry for entry in sys.path if entry not in ("", sys.argv[2])]
for name in {[spec.module for spec in SPECS]}:
    module = importlib.import_module(f"router.{{name}}")
    assert module.__file__.startswith(sys.argv[1]), module.__file__
    assert callable(module.handler)
import zoneinfo, tzdata
assert tzdata.__file__.startswith(sys.argv[1])
import report.html
assert (report.html.STATIC / report.html.CHARTS).is_file() and str(report.html.STATIC).startswith(sys.argv[1])
assert "pyspark" not in sys.modules and "pyarrow" not in sys.modules
"""
    folder = assembly.asset_folder("Routerroute")
    # When a fresh interpreter imports every handler.
    result = subprocess.run(
        [sys.executable, "-B", "-c", program, str(folder), str(CHECKOUT)],
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
        env={"POWERTOOLS_SERVICE_NAME": "test", "AWS_DEFAULT_REGION": "us-east-1"},
    )
    assert result.returncode == 0, result.stderr


def test_the_same_checkout_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = (build_lambda_asset(CHECKOUT, SETTINGS, tmp_path / name) for name in ("first", "second"))
    assert _content(first) == _content(second)
    zips = [build_job_zip(CHECKOUT, tmp_path / f"{name}.zip").read_bytes() for name in ("first", "second")]
    assert zips[0] == zips[1]


@pytest.mark.parametrize(
    "build", [build_job_zip, lambda checkout, folder: build_lambda_asset(checkout, SETTINGS, folder)]
)
def test_an_incomplete_checkout_is_refused(tmp_path: Path, build: Callable[[Path, Path], Path]) -> None:
    with pytest.raises(AssetError, match="deploy from a complete checkout"):
        build(tmp_path, tmp_path / "asset")


def test_caches_and_other_files_are_not_uploaded(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    for package in {*OWN_PACKAGES, *JOB_PACKAGES}:
        (checkout / package / "__pycache__").mkdir(parents=True)
        for name in ("__init__.py", "notes.txt", "__pycache__/a.cpython-311.pyc"):
            (checkout / package / name).write_text("")
    asset = build_lambda_asset(checkout, SETTINGS, tmp_path / "asset")
    assert {path.name for path in (asset / "lake").rglob("*") if path.is_file()} == {"__init__.py"}
    with zipfile.ZipFile(build_job_zip(checkout, tmp_path / "jobs.zip")) as code:
        assert all(name.endswith("/__init__.py") for name in code.namelist())


def _content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
