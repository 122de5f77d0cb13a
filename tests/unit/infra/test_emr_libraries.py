"""The archive for EMR Serverless has the content of exactly the wheels that the jobs need there."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest

from infra.emr_libraries import LIST, check_libraries, emr_runtime, write_libraries
from infra.glue_wheels import missing_libraries
from infra.lambda_asset import AssetError
from infra.synth import CHECKOUT
from tests.unit.infra.small_wheels import write_wheel

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NAMES = ("boto3", "obstore", "pyarrow")
READER = "ndjson_arrow-0.1.0-py3-none-any.whl"


def wheel_name(package: str) -> str:
    return f"{package}-1.0.0-py3-none-any.whl"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose uv.lock states the hashes of small wheels."""
    folder = tmp_path / "checkout"
    (folder / "native" / "src").mkdir(parents=True)
    (folder / "native" / "Cargo.toml").write_text('[package]\nversion = "0.1.0"\n')
    (folder / "native" / "src" / "lib.rs").write_text("// the reader\n")
    lock = '[[package]]\nname = "ndjson-arrow"\n'
    for name in NAMES:
        files = {f"{name}/__init__.py": f"NAME = {name!r}\n".encode(), f"{name}/data.bin": b"0"}
        wheel = write_wheel(tmp_path / wheel_name(name), files)
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        lock += f'[[package]]\nname = "{name}"\nversion = "1.0.0"\nwheels = [{{ hash = "sha256:{digest}" }}]\n'
    (folder / "uv.lock").write_text(lock)
    return folder


@pytest.fixture
def made(tmp_path: Path, checkout: Path) -> Path:
    """What ``make emr-libraries`` writes for this checkout."""
    write_wheel(tmp_path / READER, {"ndjson_arrow/__init__.py": b"NAME = 'reader'\n"})
    target = tmp_path / "made.zip"
    write_libraries([tmp_path / name for name in (READER, *map(wheel_name, NAMES))], checkout, target)
    return target


def rewrite(made: Path, change: Callable[[dict[str, bytes]], object]) -> Path:
    """The same archive, comment included, with other files in it."""
    with zipfile.ZipFile(made) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
        comment = archive.comment
    change(files)
    target = made.with_name("changed.zip")
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        archive.comment = comment
    return target


def test_python_imports_what_spark_unpacks(made: Path, checkout: Path, tmp_path: Path) -> None:
    # Given the folder into which Spark unpacks the archive
    assert check_libraries(made, checkout, "x86_64") == made
    with zipfile.ZipFile(made) as archive:
        archive.extractall(tmp_path / "libraries")
    # When it is on the path, then the packages can be imported
    code = "import boto3, ndjson_arrow; print(boto3.NAME, ndjson_arrow.NAME)"
    environment = {"PYTHONPATH": str(tmp_path / "libraries")}
    result = subprocess.run([sys.executable, "-S", "-c", code], env=environment, capture_output=True, check=True)
    assert result.stdout.decode().split() == ["boto3", "reader"]


def test_the_archive_is_the_same_on_every_machine(made: Path, checkout: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.zip"
    write_libraries([tmp_path / name for name in (*map(wheel_name, reversed(NAMES)), READER)], checkout, again)
    assert again.read_bytes() == made.read_bytes()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda files: files.update({"pyarrow/data.bin": b"1"}), "were changed after they were built"),
        (lambda files: files.pop("pyarrow/data.bin"), "were changed after they were built"),
        (lambda files: files.update({"more.py": b""}), "were changed after they were built"),
        (lambda files: files.pop(LIST), "cannot be read"),
        (lambda files: files.update({LIST: files[LIST].split(b"\n", 1)[1]}), "lack the wheel of boto3"),
        (
            lambda files: files.update({LIST: files[LIST] + b"idna-1-py3-none-any.whl 0\n"}),
            "idna.*, which is not needed",
        ),
        (
            lambda files: files.update(
                {LIST: files[LIST].replace(b"1.0.0-py3-none-any.whl ", b"1.0.0-py3-none-any.whl 0")}
            ),
            r"not what uv\.lock states",
        ),
    ],
)
def test_an_archive_with_other_content_is_refused(
    made: Path, checkout: Path, change: Callable[[dict[str, bytes]], object], reason: str
) -> None:
    with pytest.raises(AssetError, match=reason) as error:
        check_libraries(rewrite(made, change), checkout, "x86_64")
    assert "run `make emr-libraries ARCHITECTURE=x86_64`" in str(error.value)


def test_an_archive_for_another_processor_is_refused(tmp_path: Path, checkout: Path) -> None:
    # Given the reader's wheel as it is built for one processor
    reader = write_wheel(
        tmp_path / "ndjson_arrow-0.1.0-cp311-abi3-manylinux_2_28_aarch64.whl", {"ndjson_arrow.py": b""}
    )
    made = tmp_path / "made.zip"
    write_libraries([reader, *(tmp_path / wheel_name(name) for name in NAMES)], checkout, made)
    assert check_libraries(made, checkout, "arm64") == made
    with pytest.raises(AssetError, match=r"aarch64\.whl, which is not for x86_64"):
        check_libraries(made, checkout, "x86_64")


def test_a_reader_of_other_sources_is_refused(made: Path, checkout: Path) -> None:
    (checkout / "native" / "src" / "lib.rs").write_text("// another reader\n")
    with pytest.raises(AssetError, match="another state of native/"):
        check_libraries(made, checkout, "x86_64")


def test_a_missing_archive_names_the_command(tmp_path: Path, checkout: Path) -> None:
    with pytest.raises(AssetError, match="are missing: run `make emr-libraries ARCHITECTURE=arm64`"):
        check_libraries(tmp_path / "none.zip", checkout, "arm64")


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"more-1.data/purelib/more.py": b""}, "outside of the packages"),
        ({"boto3/__init__.py": b""}, "and in another wheel"),
    ],
)
def test_a_wheel_that_cannot_be_unpacked_beside_the_others_is_refused(
    tmp_path: Path, checkout: Path, files: dict[str, bytes], reason: str
) -> None:
    more = write_wheel(tmp_path / "more-1-py3-none-any.whl", files)
    with pytest.raises(AssetError, match=reason):
        write_libraries([tmp_path / wheel_name("boto3"), more], checkout, tmp_path / "out.zip")


def test_the_jobs_bring_everything_but_spark() -> None:
    needed = missing_libraries(CHECKOUT, emr_runtime("arm64"))
    assert {"boto3", "botocore", "ndjson-arrow", "obstore", "pyarrow", "urllib3"} <= needed.keys()
    assert not {"pyspark", "py4j"} & needed.keys()
