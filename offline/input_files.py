"""Which files are converted, to which dataset and hour; and ranges of files of this machine and of S3."""

import errno
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from itertools import chain
from pathlib import Path, PurePosixPath
from urllib.parse import quote_from_bytes

from lake.aws_types import Buffer, S3Client
from lake.dataset_rules import matching_rule, reason_without_dataset
from lake.errors import InvalidInputError, TransientError
from lake.layout import list_objects
from lake.manifest import ObjectVersion, Partition
from lake.settings import Settings
from lake.settings.routing import name_of_folder
from offline.output_folder import identity
from transform.clients import s3_client
from transform.source import DeniedFileError, Source, UnreadableFileError, UnreadableNowError

OnRefusal = Callable[[Path, str], None]
OnLeftOut = Callable[[str], None]

NO_DATASET = "-"
NO_NAME = "gives no name of a dataset: pass --dataset"
MAX_GROUP_BYTES = 512 << 20
MAX_GROUP_FILES = 10_000
MAX_WAITING_GROUPS = 64
"""Dataset and hour change from file to file where files were copied together."""

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


@dataclass(frozen=True, slots=True)
class Destination:
    """What a person has fixed for all files; None: it follows from the file."""

    dataset: str | None = None
    hour: datetime | None = None


@dataclass(frozen=True, slots=True)
class InputFile:
    file: ObjectVersion
    partition: Partition
    folder: str | None = None
    """The folder whose name gave the dataset; None: a person or a rule of the settings has named it."""
    refused: str | None = None
    """Why it cannot be converted: its folder gives no name of a dataset."""


@dataclass(frozen=True, slots=True)
class Search:
    names: Sequence[str]
    """Files, folders, and what begins with ``s3://``."""
    settings: Settings
    destination: Destination
    region: str

    def find(self, output: Path, on_refusal: OnRefusal, on_left_out: OnLeftOut) -> Iterator[InputFile]:
        """Every file that was named, and every one in a named folder with one of ``input.suffixes``, once; by name.

        What lies in ``output`` was written by a conversion, and hidden names are left out as well. A link in a folder
        is followed to files of the folder only.

        The key of a file in a folder is its path below the folder: ``[[datasets]]`` of the settings give the dataset. A
        file that no rule matches goes to a dataset of its folder's name (``name_of_folder``). ``on_refusal``: called
        with the path of an entry that looks like input and cannot be converted, and with the reason. ``on_left_out``:
        called with the path of an entry in a folder that has none of ``input.suffixes``. Raises ``InvalidInputError``:
        a path does not exist, or is ``output``; and what ``list_named`` raises.
        """
        found: set[bytes] = set()
        for item in chain(self._of_this_machine(output, on_refusal, on_left_out), self._of_s3(on_left_out)):
            key = identity(item.file.uri, item.file.version)
            if key not in found:
                found.add(key)
                yield item

    def _of_this_machine(self, output: Path, on_refusal: OnRefusal, on_left_out: OnLeftOut) -> Iterator[InputFile]:
        written = output.resolve()
        for path in (Path(name) for name in self.names if not name.startswith(SCHEME)):
            if path.is_dir():
                base = path.resolve()
                if base == written:
                    raise InvalidInputError(f"{path} is the output folder: pass another one with -o")
                top = f"{str(base).rstrip('/')}/"
                for key, is_link, error in _walk(top, str(written)):
                    if error is not None:
                        on_refusal(path / key, error)
                    elif self.settings.input.suffix_of(key) is None:
                        on_left_out(str(path / key))
                    elif isinstance(file := _find(top + key, is_link=is_link, folder=base), str):
                        on_refusal(path / key, file)
                    elif file is not None:
                        yield self._input_file(file, key, base.name)
            elif not path.exists():
                raise InvalidInputError(f"{path} does not exist: pass NDJSON files, or folders that hold some")
            elif isinstance(file := _find(str(path), is_link=True, folder=None), str):
                on_refusal(path, file)
            elif file is not None:
                yield self._input_file(file, path.name, path.parent.resolve().name)

    def _of_s3(self, on_left_out: OnLeftOut) -> Iterator[InputFile]:
        for uri in (name for name in self.names if name.startswith(SCHEME)):
            named = uri.removeprefix(SCHEME).partition("/")[2]
            for file in list_named(s3_client(self.region), uri):
                if file.key == named or self.settings.input.suffix_of(file.key) is not None:
                    yield self._input_file(file, file.key, PurePosixPath("/", file.bucket, file.key).parent.name)
                elif not file.key.endswith("/"):
                    on_left_out(file.uri)

    def _input_file(self, file: ObjectVersion, key: str, above: str) -> InputFile:
        """``above`` is the folder of a file whose key has none that a rule takes."""
        rules, hour = self.settings.datasets, self.destination.hour or datetime.fromisoformat(file.arrived_at)
        if self.destination.dataset is not None:
            return InputFile(file, Partition.of(self.destination.dataset, hour))
        rule, dataset = matching_rule(key, rules)
        folder = above if rule is None else rule.folder_of(key)
        name = name_of_folder(above) if rule is None else dataset
        if name:
            return InputFile(file, Partition.of(name, hour), folder)
        refused = None if rule is None else reason_without_dataset(key, rules)
        return InputFile(file, Partition.of(NO_DATASET, hour), folder, refused or f"the folder {above!r} {NO_NAME}")


def groups(files: Iterable[InputFile]) -> Iterator[list[InputFile]]:
    """Files of one dataset and hour, to be converted together; bounded by bytes and number, and so is what waits."""
    waiting: dict[Partition, list[InputFile]] = {}
    sizes: Counter[Partition] = Counter()
    for item in files:
        partition = item.partition
        is_full = partition in waiting and (
            sizes[partition] + item.file.size > MAX_GROUP_BYTES or len(waiting[partition]) == MAX_GROUP_FILES
        )
        if is_full or (partition not in waiting and len(waiting) == MAX_WAITING_GROUPS):
            ready = partition if is_full else next(iter(waiting))
            sizes.pop(ready)
            yield waiting.pop(ready)
        waiting.setdefault(partition, []).append(item)
        sizes[partition] += item.file.size
    yield from waiting.values()


def _walk(top: str, output: str) -> Iterator[tuple[str, bool, str | None]]:
    """Keys of what is not a folder, by name, whether each is a link, and the reason if it is a folder that is refused.

    ``top`` is the path of the named folder, without links, ending in a slash. Links to folders are not followed.
    Paths are texts: a ``Path`` for each entry takes longer than to read a small file.
    """
    waiting = [("", True, False)]
    while waiting:
        key, is_folder, is_link = waiting.pop()
        if not is_folder:
            yield key, is_link, None
            continue
        if (top + key).rstrip("/") == output:
            continue
        prefix = f"{key}/" if key else ""
        try:
            with os.scandir(top + key) as entries:
                visible = [
                    (prefix + entry.name, entry.is_dir(follow_symlinks=False), entry.is_symlink())
                    for entry in entries
                    if not entry.name.startswith((".", "_"))
                ]
        except OSError as error:
            yield key, False, _format_error(error)
            continue
        # A stack: folders can be nested deeper than calls.
        waiting += sorted(visible, reverse=True)


def _find(path: str, *, is_link: bool, folder: Path | None) -> LocalFile | str | None:
    """The file at a path; a text: why it is refused; None: a link to a folder, which is not followed.

    ``folder`` is the named folder that the file has to be in, without links.
    """
    try:
        if is_link:
            target = Path(os.path.realpath(path, strict=True))
            if folder is not None and not target.is_relative_to(folder):
                return f"it is a link to {target}, outside of the folder: name that file, or copy it"
            if folder is not None and target.is_dir():
                return None
            path = str(target)
        return LocalFile.found(path)
    except InvalidInputError as error:
        return str(error)
    except OSError as error:
        return _format_error(error)


def _format_error(error: OSError) -> str:
    if error.errno == errno.ENAMETOOLONG:
        return "its path is too long: move it to a folder with a shorter path"
    return f"it could not be read ({error.strerror}): remove the cause and convert again"


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
        return Source(self._region, None)


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
