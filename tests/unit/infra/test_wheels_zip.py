"""The zip of wheels has exactly the wheels that the jobs need: those of uv.lock, and the reader as it was built."""

from __future__ import annotations

import hashlib
import zipfile
from typing import TYPE_CHECKING

import pytest

from infra.glue_wheels import REQUIREMENTS, check_wheels, write_zip
from infra.lambda_asset import AssetError
from tests.unit.infra.small_wheels import write_wheel

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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


def with_other_byte(name: str) -> Callable[[dict[str, bytes]], object]:
    """A change of the last byte of a wheel: the zip stays valid."""
    entry = f"wheels/{name}"
    return lambda files: files.update({entry: files[entry][:-1] + bytes([files[entry][-1] ^ 1])})


def test_the_zip_of_this_checkout_is_accepted(made: Path, checkout: Path) -> None:
    assert check_wheels(made, checkout) == made
    assert check_wheels(rewrite(made, lambda files: files), checkout)


@pytest.mark.parametrize(("wheel", "source"), [(OBSTORE, r"uv\.lock states"), (READER_WHEEL, "its build has recorded")])
def test_a_wheel_with_one_changed_byte_is_refused(made: Path, checkout: Path, wheel: str, source: str) -> None:
    # Given a zip whose entry was replaced, with a correct checksum of the zip format.
    changed = rewrite(made, with_other_byte(wheel))
    # Then it is refused by name, and the message says what to do.
    with pytest.raises(
        AssetError, match=rf"contain wheels/{wheel} with the SHA-256 \w+, which is not what {source}"
    ) as error:
        check_wheels(changed, checkout)
    assert "run `make wheels`" in str(error.value)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda files: files.pop(f"wheels/{OBSTORE}"), "lack the wheel of obstore"),
        (lambda files: files.update({f"wheels/{OBSTORE[:-4]}.exe": b""}), r"\.exe, which is not a wheel"),
        (lambda files: files.update({"wheels/idna-3.2-py3-none-any.whl": b""}), "idna.*, which is not needed"),
        (lambda files: files.update({"wheels/obstore-1.0.1-py3-none-any.whl": b""}), "is there twice"),
        (
            lambda files: files.update({REQUIREMENTS: b"obstore==0.1.0"}),
            r"contain obstore==0\.1\.0, uv\.lock has obstore==",
        ),
        (lambda files: files.update({REQUIREMENTS: b"left-pad==1"}), r"uv\.lock has no left-pad"),
        (
            lambda files: files.update({REQUIREMENTS: b"obstore==1.0.0"}),
            "the jobs need ndjson-arrow==0.1.0, obstore==1.0.0",
        ),
        (lambda files: files.update({REQUIREMENTS: b""}), "list nothing, the jobs need"),
    ],
)
def test_a_zip_with_other_files_is_refused(
    made: Path, checkout: Path, change: Callable[[dict[str, bytes]], object], reason: str
) -> None:
    with pytest.raises(AssetError, match=reason) as error:
        check_wheels(rewrite(made, change), checkout)
    assert "run `make wheels`" in str(error.value)


def test_a_reader_of_other_sources_is_refused(made: Path, checkout: Path) -> None:
    (checkout / "native" / "src" / "lib.rs").write_text("// another reader\n")
    with pytest.raises(AssetError, match="another state of native/"):
        check_wheels(made, checkout)


def test_a_damaged_zip_is_refused(tmp_path: Path, made: Path, checkout: Path) -> None:
    (tmp_path / "x.gluewheels.zip").write_bytes(b"PK")
    with pytest.raises(AssetError, match="cannot be read"):
        check_wheels(tmp_path / "x.gluewheels.zip", checkout)
    content = bytearray(made.read_bytes())
    content[content.index(b"obstore.py") + 20] ^= 1
    made.write_bytes(content)
    with pytest.raises(AssetError, match=r"cannot be read \(Bad CRC-32"):
        check_wheels(made, checkout)
    with pytest.raises(AssetError, match=r"must end in \.gluewheels\.zip"):
        check_wheels(tmp_path / "x.zip", checkout)
