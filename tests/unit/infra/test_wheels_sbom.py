"""The bill of materials names every wheel of the zip and every crate inside, with hashes and licences."""

from __future__ import annotations

import hashlib
import json
import subprocess
import zipfile
from typing import TYPE_CHECKING, Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from infra.lambda_asset import AssetError
from infra.make_wheels import RUST_TARGET, check_rust
from infra.synth import CHECKOUT
from infra.wheels_sbom import linked_crates, write_sbom

if TYPE_CHECKING:
    from pathlib import Path

MEMCHR = ("memchr", "2.8.0", "a" * 64)
SNAP = ("snap", "1.1.0", "b" * 64)


def crate(name: str, version: str, digest: str) -> dict[str, Any]:
    """As maturin writes it."""
    return {
        "type": "library",
        "bom-ref": f"registry#{name}@{version}",
        "name": name,
        "version": version,
        "hashes": [{"alg": "SHA-256", "content": digest}],
        "licenses": [{"expression": "MIT"}],
        "purl": f"pkg:cargo/{name}@{version}",
    }


def wheel(folder: Path, name: str, crates: list[tuple[str, str, str]] | None, metadata: str = "") -> Path:
    """A wheel with machine code and the document that maturin puts into it; without one if ``crates`` is None."""
    path = folder / f"{name}-1.0-cp311-abi3-manylinux_2_28_x86_64.whl"
    root = f"path+file:///home/somebody/{name}#1.0"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}/_native.abi3.so", b"\x7fELF")
        archive.writestr(
            f"{name}-1.0.dist-info/METADATA", f"Metadata-Version: 2.4\nName: {name}\nVersion: 1.0\n{metadata}"
        )
        if crates is not None:
            edges = [f"registry#{item[0]}@{item[1]}" for item in crates]
            document = {
                "bomFormat": "CycloneDX",
                "specVersion": "1.5",
                "version": 1,
                "metadata": {
                    "component": {
                        "type": "library",
                        "name": name,
                        "bom-ref": root,
                        "licenses": [{"expression": "Apache-2.0"}],
                    }
                },
                "components": [crate(*item) for item in crates],
                "dependencies": [{"ref": root, "dependsOn": edges}, *({"ref": edge} for edge in edges)],
            }
            archive.writestr(f"{name}-1.0.dist-info/sboms/{name}.cyclonedx.json", json.dumps(document))
    return path


@pytest.fixture
def zip_file(tmp_path: Path) -> Path:
    path = tmp_path / "x.gluewheels.zip"
    path.write_bytes(b"the zip")
    return path


def test_the_document_is_valid_and_names_all_wheels_and_crates(tmp_path: Path, zip_file: Path) -> None:
    # Given two wheels that link the same crate.
    reader = wheel(tmp_path, "ndjson_arrow", [MEMCHR, SNAP], "License-Expression: Apache-2.0\n")
    other = wheel(tmp_path, "obstore", [MEMCHR])
    # When
    write_sbom([reader, other], zip_file, {MEMCHR, SNAP}, tmp_path / "sbom.json")
    # Then the document is valid CycloneDX.
    text = (tmp_path / "sbom.json").read_text()
    assert JsonStrictValidator(SchemaVersion.V1_5).validate_str(text) is None
    # And it has the hash and the licence of the zip, the wheels and the crates.
    document = json.loads(text)
    assert document["metadata"]["component"]["hashes"][0]["content"] == hashlib.sha256(b"the zip").hexdigest()
    wheels = {item["name"]: item for item in document["components"]}
    assert list(wheels) == ["ndjson-arrow", "obstore"]
    for file in (reader, other):
        name = file.name.split("-")[0].replace("_", "-")
        assert wheels[name]["hashes"][0]["content"] == hashlib.sha256(file.read_bytes()).hexdigest()
        assert wheels[name]["licenses"]
    assert [item["name"] for item in wheels["ndjson-arrow"]["components"]] == ["memchr", "snap"]
    assert [item["name"] for item in wheels["obstore"]["components"]] == ["memchr"]
    # And its edges lead from the zip over the wheels to the crates, without the paths of the machine that built them.
    edges = {edge["ref"]: edge["dependsOn"] for edge in document["dependencies"]}
    assert edges["x.gluewheels.zip"] == ["pkg:pypi/ndjson-arrow@1.0", "pkg:pypi/obstore@1.0"]
    assert edges["pkg:pypi/obstore@1.0"] == ["pkg:pypi/obstore@1.0#registry#memchr@2.8.0"]
    assert "somebody" not in text


@pytest.mark.parametrize(
    "linked", [("flate2", "1.1.0", "c" * 64), ("memchr", "2.9.0", "a" * 64), (*MEMCHR[:2], "c" * 64)]
)
def test_a_linked_crate_that_the_wheel_does_not_name_is_refused(
    tmp_path: Path, zip_file: Path, linked: tuple[str, str, str]
) -> None:
    reader = wheel(tmp_path, "ndjson_arrow", [MEMCHR, SNAP])
    with pytest.raises(AssetError, match=f"does not name crates .*: {linked[0]} {linked[1]}"):
        write_sbom([reader], zip_file, {MEMCHR, linked}, tmp_path / "sbom.json")
    assert not (tmp_path / "sbom.json").exists()


def test_machine_code_of_unknown_origin_is_refused(tmp_path: Path, zip_file: Path) -> None:
    reader = wheel(tmp_path, "ndjson_arrow", None, "License-Expression: MIT\n")
    with pytest.raises(AssetError, match=r"ndjson_arrow-1\.0-.*\.whl has machine code and does not say"):
        write_sbom([reader], zip_file, [], tmp_path / "sbom.json")


def test_a_document_that_is_not_valid_is_refused(tmp_path: Path, zip_file: Path) -> None:
    reader = wheel(tmp_path, "ndjson_arrow", [("memchr", "2.8.0", "not a hash")])
    with pytest.raises(AssetError, match="would not be a valid CycloneDX document: 'not a hash'"):
        write_sbom([reader], zip_file, [], tmp_path / "sbom.json")


def test_the_linked_crates_are_those_of_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a cargo that lists a crate of the lock, and the reader itself.
    lock = (CHECKOUT / "native" / "Cargo.lock").read_text(encoding="utf-8")
    version = lock.partition('name = "memchr"\nversion = "')[2].partition('"')[0]
    program(
        tmp_path, "cargo", f"echo 'ndjson-arrow v0.1.0 (/x)'; echo 'memchr v{version}'; echo 'memchr v{version} (*)'"
    )
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    # Then the crate has its checksum.
    ((name, found, digest),) = linked_crates(CHECKOUT, RUST_TARGET)
    assert (name, found) == ("memchr", version)
    assert f'version = "{version}"\n' in lock.partition(digest)[0].rpartition("[[package]]")[2]


def test_another_rust_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    program(tmp_path, "cargo", "exit 0")
    program(tmp_path, "rustc", "echo 'rustc 1.2.3 (abc 2015-01-01)'")
    with pytest.raises(
        AssetError, match=r"has rustc 1\.2\.3 .*: run `rustup toolchain install 1\.\d+\.\d+`, then `RUSTUP_T"
    ):
        check_rust(CHECKOUT)
    # The script of the releases takes the same version.
    command = [str(CHECKOUT / "scripts" / "reader_release.sh"), "wheel", RUST_TARGET]
    released = subprocess.run(command, capture_output=True, text=True, check=False)
    assert released.returncode == 1
    assert "this machine has rustc 1.2.3" in released.stderr


def program(folder: Path, name: str, line: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{line}\n")
    (folder / name).chmod(0o755)
