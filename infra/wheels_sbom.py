"""The bill of materials of the zip of wheels: a CycloneDX document with the wheels and the crates inside them.

maturin writes the crates of a wheel, with hashes and licences, into the wheel itself (https://peps.python.org/pep-0770/);
this module puts the documents of the wheels together.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import tomllib
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.metadata import Metadata
from packaging.utils import parse_wheel_filename

from infra.glue_wheels import READER
from infra.lambda_asset import AssetError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SBOM = Path("dist") / "hybrid-router.gluewheels.cdx.json"
"""Path in the checkout."""


def write_sbom(wheels: Sequence[Path], zip_file: Path, crates: Iterable[tuple[str, str, str]], target: Path) -> None:
    """Write the bill of materials of ``zip_file``, which holds ``wheels``, to ``target``.

    ``crates`` are those that the reader must name: name, version and SHA-256, as ``linked_crates`` returns them.

    Raises
    ------
    AssetError
        A wheel states no licence or does not say what is inside, a crate is missing, or the document is not valid.
    """
    parts = [_describe(wheel) for wheel in wheels]
    root = zip_file.name
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": SchemaVersion.V1_5.to_version(),
        "version": 1,
        "metadata": {
            "component": {"type": "file", "bom-ref": root, "name": root, "hashes": [_sha256(zip_file)]},
        },
        "components": [component for component, _ in parts],
        "dependencies": [
            {"ref": root, "dependsOn": [component["bom-ref"] for component, _ in parts]},
            *(dependency for _, dependencies in parts for dependency in dependencies),
        ],
    }
    _check_crates(document, crates)
    text = json.dumps(document, indent=1)
    invalid = JsonStrictValidator(SchemaVersion.V1_5).validate_str(text)
    if invalid is not None:
        raise AssetError(f"{target} would not be a valid CycloneDX document: {invalid}")
    target.write_text(text + "\n", encoding="utf-8")


def linked_crates(checkout: Path, target: str) -> set[tuple[str, str, str]]:
    """Name, version and SHA-256 of every crate that cargo links into the reader for this Rust target, by Cargo.lock."""
    command = ["cargo", "tree", "--manifest-path", str(checkout / "native" / "Cargo.toml"), "--locked"]
    command += ["--edges", "normal,no-proc-macro", "--target", target, "--prefix", "none", "--format", "{p}"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False)
    if listed.returncode:
        raise AssetError(f"cargo cannot list the crates of the reader: {listed.stderr.strip()}")
    lock = tomllib.loads((checkout / "native" / "Cargo.lock").read_text(encoding="utf-8"))
    checksums = {(package["name"], package["version"]): package.get("checksum") for package in lock["package"]}
    found = {(line.split()[0], line.split()[1].removeprefix("v")) for line in listed.stdout.splitlines() if line}
    # The reader itself has no checksum.
    return {(*crate, checksums[crate]) for crate in found if checksums[crate] is not None}


def _describe(wheel: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The component of a wheel with what is inside, and the edges between all of them."""
    name, version, _, _ = parse_wheel_filename(wheel.name)
    purl = f"pkg:pypi/{name}@{version}"
    with zipfile.ZipFile(wheel) as archive:
        entries = archive.namelist()
        metadata_file = next(entry for entry in entries if entry.endswith(".dist-info/METADATA"))
        metadata = Metadata.from_email(archive.read(metadata_file), validate=False)
        documents = [
            json.loads(archive.read(entry))
            for entry in entries
            if ".dist-info/sboms/" in entry and entry.endswith(".json")
        ]
    has_machine_code = any(".so" in Path(entry).suffixes for entry in entries)
    if has_machine_code and not documents:
        raise AssetError(
            f"{wheel.name} has machine code and does not say from what it was built: it has no sboms folder"
        )
    licenses = [{"expression": metadata.license_expression}] if metadata.license_expression else []
    crates: list[dict[str, Any]] = []
    dependencies: list[dict[str, Any]] = []
    for document in documents:
        described = document["metadata"]["component"]
        licenses = licenses or described.get("licenses", [])
        # Both wheels link some of the same crates, with other features: a reference is unique within a wheel only.
        references = {item["bom-ref"]: f"{purl}#{item['bom-ref']}" for item in document["components"]}
        references[described["bom-ref"]] = purl
        crates += [{**item, "bom-ref": references[item["bom-ref"]]} for item in document["components"]]
        dependencies += [
            {"ref": references[edge["ref"]], "dependsOn": [references[ref] for ref in edge.get("dependsOn", [])]}
            for edge in document.get("dependencies", [])
        ]
    if not licenses:
        raise AssetError(f"{wheel.name} states no licence, neither in its metadata nor in a bill of materials")
    component = {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": str(version),
        "hashes": [_sha256(wheel)],
        "licenses": licenses,
        "purl": purl,
        "components": crates,
    }
    return component, dependencies or [{"ref": purl, "dependsOn": []}]


def _check_crates(document: dict[str, Any], crates: Iterable[tuple[str, str, str]]) -> None:
    readers = [component for component in document["components"] if component["name"] == READER]
    named = {
        (crate["name"], crate["version"], digest["content"])
        for reader in readers
        for crate in reader["components"]
        for digest in crate.get("hashes", [])
    }
    missing = sorted(set(crates) - named)
    if missing:
        listed = ", ".join(f"{name} {version}" for name, version, _ in missing)
        raise AssetError(f"the wheel of {READER} does not name crates of native/Cargo.lock with their hashes: {listed}")


def _sha256(file: Path) -> dict[str, str]:
    return {"alg": "SHA-256", "content": hashlib.sha256(file.read_bytes()).hexdigest()}
