"""The zip of wheels has exactly the wheels that the jobs need: those of uv.lock, and the reader as it was built."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from infra.code_assets import AssetError
from infra.wheels import REQUIREMENTS, JobRuntime, check_wheels, unpack, write_zip
from tests.unit.infra.small_wheels import write_wheel

OBSTORE = "obstore-1.0.0-py3-none-any.whl"
READER_WHEEL = "ndjson_arrow-0.1.0-py3-none-any.whl"
PINS = {"ndjson-arrow": "0.1.0", "obstore": "1.0.0"}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose uv.lock states the hash of a small wheel of obstore."""
    folder = tmp_path / "checkout"
    (folder / "native" / "src").mkdir(parents=True)
    (folder / "native" / "Cargo.toml").write_text('[package]\nversion = "0.1.0"\n')
    (folder / "native" / "src" / "lib.rs").write_text("// the reader\n")
    digest = hashlib.sha256(write_wheel(tmp_path / OBSTORE, {"obstore.py": b"1"}).read_bytes()).hexdigest()
    lock = f"""
[[package]]
name = "obstore"
version = "1.0.0"
wheels = [{{ hash = "sha256:{digest}" }}, {{ hash = "sha256:{"0" * 64}" }}]

[[package]]
name = "ndjson-arrow"

[[package]]
name = "idna"
version = "3.2"
"""
    (folder / "uv.lock").write_text(lock)
    return folder


@pytest.fixture
def made(tmp_path: Path, checkout: Path) -> Path:
    """What ``make wheels`` writes for this checkout."""
    target = tmp_path / "made.gluewheels.zip"
    reader = write_wheel(tmp_path / READER_WHEEL, {"ndjson_arrow.py": b"2"})
    write_zip([reader, tmp_path / OBSTORE], PINS, checkout, target)
    return target


def check(zip_file: Path, checkout: Path) -> Path:
    return check_wheels(checkout, JobRuntime.glue(), zip_file)


def rewrite(made: Path, change: Callable[[dict[str, bytes]], object]) -> Path:
    """The same zip, comment included, with other files in it."""
    with zipfile.ZipFile(made) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
        comment = archive.comment
    change(files)
    target = made.with_name("changed.gluewheels.zip")
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        archive.comment = comment
    return target


def test_the_zip_of_this_checkout_is_accepted(made: Path, checkout: Path) -> None:
    assert check(made, checkout) == made
    assert check(rewrite(made, lambda files: files), checkout)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda files: files.update({f"wheels/{OBSTORE}": b"other"}), f"contain wheels/{OBSTORE}, whose SHA-256"),
        (lambda files: files.pop(f"wheels/{OBSTORE}"), "not exactly those that the jobs need"),
        (lambda files: files.update({"wheels/idna-3.2-py3-none-any.whl": b""}), "not exactly those"),
        (lambda files: files.update({f"wheels/{OBSTORE[:-4]}.exe": b""}), "cannot be read"),
        (lambda files: files.update({REQUIREMENTS: b"ndjson-arrow==0.1.0\nobstore==0.9.0\n"}), "not exactly those"),
    ],
)
def test_a_zip_with_other_files_is_refused(
    made: Path, checkout: Path, change: Callable[[dict[str, bytes]], object], reason: str
) -> None:
    with pytest.raises(AssetError, match=reason) as error:
        check(rewrite(made, change), checkout)
    assert "run `make wheels`" in str(error.value)


def test_a_reader_of_other_sources_is_refused(made: Path, checkout: Path) -> None:
    (checkout / "native" / "src" / "lib.rs").write_text("// another reader\n")
    with pytest.raises(AssetError, match="another state of native/"):
        check(made, checkout)


def test_a_damaged_zip_is_refused(tmp_path: Path, made: Path, checkout: Path) -> None:
    (tmp_path / "x.gluewheels.zip").write_bytes(b"PK")
    with pytest.raises(AssetError, match="cannot be read"):
        check(tmp_path / "x.gluewheels.zip", checkout)
    content = bytearray(made.read_bytes())
    content[content.index(b"obstore.py") + 20] ^= 1
    made.write_bytes(content)
    with pytest.raises(AssetError, match=r"cannot be read \(Bad CRC-32"):
        check(made, checkout)


def test_python_imports_what_spark_unpacks(made: Path, tmp_path: Path) -> None:
    # Given the archive for EMR Serverless, which is the same each time, and the folder into which Spark unpacks it
    archive = unpack(made, tmp_path / "libraries.zip")
    assert unpack(made, tmp_path / "again.zip").read_bytes() == archive.read_bytes()
    # When it is on the path, then the packages can be imported
    environment = {"PYTHONPATH": str(tmp_path / "libraries")}
    with zipfile.ZipFile(archive) as content:
        content.extractall(environment["PYTHONPATH"])
    command = [sys.executable, "-S", "-c", "import obstore, ndjson_arrow"]
    subprocess.run(command, env=environment, check=True)


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"more-1.data/purelib/more.py": b""}, "outside of the packages"),
        ({"obstore.py": b""}, "and in another wheel"),
    ],
)
def test_a_wheel_that_cannot_be_unpacked_beside_the_others_is_refused(
    tmp_path: Path, made: Path, files: dict[str, bytes], reason: str
) -> None:
    more = write_wheel(tmp_path / "zmore-1-py3-none-any.whl", files)
    changed = rewrite(made, lambda entries: entries.update({f"wheels/{more.name}": more.read_bytes()}))
    with pytest.raises(AssetError, match=reason):
        unpack(changed, tmp_path / "out.zip")
