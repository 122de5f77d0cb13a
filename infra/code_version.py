"""Which code a stack was deployed from: a fingerprint in the stack's description. Needs no CDK."""

from __future__ import annotations

import hashlib
from pathlib import Path

PACKAGES = ("batch_job", "infra", "lake", "report", "router", "statemachines", "streaming_job", "transform", "verify")
"""What a deployment reads of a checkout; the libraries of the jobs are checked on their own."""
HASHED_SUFFIXES = frozenset({".css", ".js", ".json", ".py", ".toml"})
CODE_MARK = "code "
"""Before the fingerprint, at the end of the stack's description."""
_DIGITS = 12


def code_version(checkout: Path) -> str:
    """The first 12 hexadecimal digits of the SHA-256 over names and contents of the deployed code."""
    digest = hashlib.sha256()
    for package in PACKAGES:
        for file in sorted((checkout / package).rglob("*")):
            if file.suffix in HASHED_SUFFIXES and file.is_file():
                content = hashlib.sha256(file.read_bytes()).hexdigest()
                digest.update(f"{file.relative_to(checkout).as_posix()} {content}\n".encode())
    return digest.hexdigest()[:_DIGITS]


def version_of(description: str) -> str | None:
    """The fingerprint in a stack's description; None: it was deployed by a version that wrote none."""
    _, mark, version = description.rpartition(CODE_MARK)
    return version if mark else None
