"""What a conversion needs of its storage: S3 (``transform.source``, ``transform.upload``) and folders have it."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from lake.commit import PendingObject
    from lake.manifest import ObjectVersion


class InputRanges(Protocol):
    """Reads files of the input; thread-safe."""

    def fetch(self, file: ObjectVersion, start: int, end: int) -> Buffer:
        """The bytes [start, end) of this version and of no other.

        Raises
        ------
        UnreadableFileError
            They can never be read.
        TransientError
            Anything else.
        """


class OutputFiles(Protocol):
    """Takes written files over under their final keys; no reader can see them yet."""

    def add(self, path: Path, bucket: str, key: str, rows: int) -> Future[PendingObject]:
        """Take the file over; ``path`` is free afterwards."""

    def finish(self) -> None:
        """Wait for every file; raises the error of the first one that failed."""

    def abort(self) -> None:
        """Forget every file."""
