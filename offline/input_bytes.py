"""Reads ranges of files of this machine and of S3."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from urllib.parse import quote_from_bytes

from lake.aws_types import Buffer, S3Client
from lake.errors import InvalidInputError, TransientError
from lake.layout import list_objects
from lake.manifest import ObjectVersion
from transform.source import DeniedFileError, Source, UnreadableFileError, UnreadableNowError

FIRST_YEAR = 1000
"""Dates have four digits."""


@dataclass(frozen=True, slots=True, order=True)
class LocalFile(ObjectVersion):
    """A file in the state in which it was found: its size and its time of change are its version."""

    inode: int = field(default=0, compare=False)
    """Not part of the version: a copy of the file in its place is the same version."""
    address: str = field(default="", compare=False)
    """``file:///path``, with escapes (RFC 8089); made once, because a tenth of a small file's time is spent on it."""

    @classmethod
    def found(cls, path: str) -> "LocalFile":
        """The file at an absolute path without links.

        Raises ``InvalidInputError``: it is not a regular file, or its time of change is not a date; ``OSError``: it is
        gone, or its folder may not be read.
        """
        state = os.lstat(path)
        if not stat.S_ISREG(state.st_mode):
            raise InvalidInputError("it is not a regular file: remove it, or write its content to a file")
        try:
            changed = datetime.fromtimestamp(state.st_mtime, UTC)
        except (ValueError, OverflowError, OSError):
            changed = None
        if changed is None or changed.year < FIRST_YEAR:
            raise InvalidInputError(
                f"its time of change is not in the years {FIRST_YEAR} to 9999: set it, for example with 'touch'"
            )
        arrived_at = changed.isoformat(timespec="milliseconds")
        address = f"file://{quote_from_bytes(os.fsencode(path))}"
        return cls("", path, _version(state), state.st_size, arrived_at, inode=state.st_ino, address=address)

    @property
    def uri(self) -> str:
        return self.address


def _fetch_local(file: LocalFile, start: int, end: int) -> bytes:
    try:
        # A pipe that has taken the file's place does not hold up the task.
        handle = os.open(file.key, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except PermissionError as error:
        raise DeniedFileError(denial(error.strerror)) from error
    except (FileNotFoundError, IsADirectoryError) as error:
        raise UnreadableNowError(f"it could not be opened: {error.strerror}", file) from error
    try:
        _check_state(handle, file)
        data = _read(handle, start, end)
        _check_state(handle, file)
        return data
    except OSError as error:
        raise OSError(error.errno, error.strerror, file.key) from error
    finally:
        os.close(handle)


def denial(answer: object) -> str:
    """Why a file was not converted that may not be read, and what a person does about it."""
    return f"it may not be read ({answer}): allow it, then run the command again"


def _version(state: os.stat_result) -> str:
    return f"{state.st_size}-{state.st_mtime_ns}"


def _check_state(handle: int, file: LocalFile) -> None:
    state = os.fstat(handle)
    if (_version(state), state.st_ino) != (file.etag, file.inode):
        raise UnreadableNowError("it was changed while it was converted: wait until it is complete", file)


def _read(handle: int, start: int, end: int) -> bytes:
    """One request may return less than was asked for, 2 GiB at most."""
    parts: list[bytes] = []
    while start < end and (part := os.pread(handle, end - start, start)):
        parts.append(part)
        start += len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


SCHEME = "s3://"


class InputFiles:
    def __init__(self, region: str) -> None:
        self._region = region

    def fetch(self, file: ObjectVersion, start: int, end: int) -> Buffer:
        """The bytes [start, end).

        Raises ``UnreadableNowError``: the file is gone, or is not as it was found, before or after the bytes were
        read; ``DeniedFileError``: it may not be read; ``BotoCoreError``, ``ClientError``: S3 did not give them now;
        ``OSError``: anything else.
        """
        if isinstance(file, LocalFile):
            return _fetch_local(file, start, end)
        try:
            return self._source.fetch(file, start, end)
        except UnreadableNowError:
            raise
        except UnreadableFileError as error:
            # The next call can find this version again, such as a deleted object that was put again.
            raise UnreadableNowError(str(error), file) from error
        except DeniedFileError as error:
            raise DeniedFileError(denial(error.__cause__)) from error.__cause__
        except TransientError as error:
            # Nothing tries it again here.
            raise (error.__cause__ or error) from None

    @cached_property
    def _source(self) -> Source:
        return Source.in_region(self._region, None)


def list_named(s3: S3Client, uri: str) -> Iterator[ObjectVersion]:
    """The object of this name, and every object below the name as a folder; page by page.

    Raises ``InvalidInputError``: no bucket is named; ``BotoCoreError``, ``ClientError``: S3 refused the listing or did
    not answer.
    """
    bucket, _, key = uri.removeprefix(SCHEME).partition("/")
    if not bucket:
        raise InvalidInputError(f"{uri!r} names no bucket: pass s3://bucket/key or s3://bucket/folder/")
    folder = key if key.endswith("/") or not key else f"{key}/"
    for item in list_objects(s3, bucket, key):
        if item["Key"] == key or item["Key"].startswith(folder):
            yield ObjectVersion.of(bucket, item["Key"], item["ETag"], item["Size"], item["LastModified"], None)
