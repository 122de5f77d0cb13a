"""What an output folder has of each file: kept in memory, from the documents of its published manifests."""

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from lake.manifest import ObjectVersion


class ConvertedVersion(NamedTuple):
    """A version of a file whose lines are in the lake or in the quarantine."""

    identity: bytes
    manifest: str
    rows: int

    def is_of(self, file: ObjectVersion) -> bool:
        return self.identity == identity(file.uri, file.version)


class ConvertedFiles:
    """Versions of files that are converted; some hundred bytes each."""

    def __init__(self) -> None:
        self._done: set[bytes] = set()
        self._with_lines: dict[bytes, ConvertedVersion] = {}
        """By the file's URI. A file that had no line, or could not be read, has no entry."""
        self._quarantined: dict[bytes, str] = {}
        """Manifests by the versions that have something in the quarantine."""

    def add(self, body: Mapping[str, Any]) -> None:
        for source in body["sources"]:
            version = identity(source["uri"], source["version"])
            self._done.add(version)
            if has_lines(source):
                found = ConvertedVersion(version, body["manifest"], source["rows"])
                self._with_lines[identity(source["uri"], "")] = found
            if source["failed"] is not None or any(source["rejects"].values()):
                self._quarantined[version] = body["manifest"]

    def discard(self, body: Mapping[str, Any]) -> None:
        for source in body["sources"]:
            version, file = identity(source["uri"], source["version"]), identity(source["uri"], "")
            self._done.discard(version)
            self._quarantined.pop(version, None)
            if (found := self._with_lines.get(file)) is not None and found.manifest == body["manifest"]:
                del self._with_lines[file]

    def is_done(self, file: ObjectVersion) -> bool:
        return identity(file.uri, file.version) in self._done

    def quarantined_by(self, file: ObjectVersion) -> str | None:
        """The manifest that has quarantined something of this version of the file."""
        return self._quarantined.get(identity(file.uri, file.version))

    def version_with_lines(self, file: ObjectVersion) -> ConvertedVersion | None:
        """The version of the file, this one or another, whose lines are in the lake or in the quarantine."""
        return self._with_lines.get(identity(file.uri, ""))


def has_lines(source: Mapping[str, Any]) -> bool:
    """Whether the file has given rows, or records of the quarantine that are lines."""
    return bool(source["rows"]) or any(source["rejects"].values())


def identity(uri: str, version: str) -> bytes:
    """Identity of one version of a file, in 16 bytes."""
    return hashlib.blake2b(f"{uri}\n{version}".encode("utf-8", "surrogateescape"), digest_size=16).digest()
