"""Files of this machine as input."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from lake.manifest import ObjectVersion
from transform.source import UnreadableFileError


class LocalFile(ObjectVersion):
    """A file in the state in which it was found: its size and its time of change are its version."""

    __slots__ = ()

    @classmethod
    def found(cls, path: Path, state: os.stat_result) -> LocalFile:
        """The file at an absolute path."""
        changed = datetime.fromtimestamp(state.st_mtime, UTC).isoformat(timespec="milliseconds")
        return cls("", str(path), f"{state.st_size}-{state.st_mtime_ns}", state.st_size, changed)

    @property
    def uri(self) -> str:
        """``file:///path``, with escapes (RFC 8089)."""
        return Path(self.key).as_uri()


class LocalFiles:
    """Reads ranges of local files."""

    def fetch(self, file: ObjectVersion, start: int, end: int) -> bytes:
        """The bytes [start, end).

        Raises
        ------
        UnreadableFileError
            The file is gone, may not be read, was changed after it was found, or is not a file.
        OSError
            Anything else.
        """
        try:
            handle = os.open(file.key, os.O_RDONLY)
        except (FileNotFoundError, PermissionError, IsADirectoryError) as error:
            raise UnreadableFileError(f"it could not be opened: {error.strerror}") from error
        try:
            state = os.fstat(handle)
            if f"{state.st_size}-{state.st_mtime_ns}" != file.etag:
                raise UnreadableFileError("it was changed while it was converted: convert it again when it is complete")
            return _read(handle, start, end)
        finally:
            os.close(handle)


def _read(handle: int, start: int, end: int) -> bytes:
    """One request may return less than was asked for, 2 GiB at most."""
    parts: list[bytes] = []
    while start < end and (part := os.pread(handle, end - start, start)):
        parts.append(part)
        start += len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)
