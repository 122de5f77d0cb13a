"""Finds the files to convert, with dataset and hour; and reads ranges of local files and of S3 objects."""

import os
import stat
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, partial
from itertools import chain, islice
from pathlib import Path, PurePosixPath
from urllib.parse import quote_from_bytes

from lake.aws_types import Buffer
from lake.cut import cut
from lake.dataset_rules import matching_rule, reason_without_dataset
from lake.errors import InvalidInputError, TransientError
from lake.layout import list_objects
from lake.manifest import ObjectVersion, Partition
from lake.settings import Settings
from lake.settings.routing import name_of_folder
from offline.output_folder import LAKE, OWN, QUARANTINE, TABLES, OutputFolder, identity
from transform.clients import s3_client
from transform.source import DeniedFileError, Source, UnreadableFileError, UnreadableNowError

OnRefusal = Callable[[str, str], None]
OnLeftOut = Callable[[str], None]
_Named = tuple[str, Callable[[], ObjectVersion], str, str]

SCHEME = "s3://"
HIDDEN = (".", "_")
WRITTEN = (LAKE, QUARANTINE, TABLES)
"""Folders next to ``OWN``: the quarantine of another conversion looks like input."""
MAX_GROUP_BYTES = 512 << 20
MAX_GROUP_FILES = 10_000


@dataclass(frozen=True, slots=True, order=True)
class LocalFile(ObjectVersion):
    """A file as it was found: its size and its time of change are its version."""

    inode: int = field(default=0, compare=False)
    """Not part of the version: a copy at the same path is the same version."""
    address: str = field(default="", compare=False)
    """``file:///path``, with escapes (RFC 8089); computed once, because it takes a tenth of a small file's time."""

    @classmethod
    def found(cls, path: str) -> "LocalFile":
        """Return the file at an absolute path without links.

        Raises ``InvalidInputError`` if it is not a regular file, or its time of change is not a date; ``OSError`` if it
        is gone, or its folder may not be read.
        """
        state = os.lstat(path)
        _check_regular(state)
        try:
            arrived_at = datetime.fromtimestamp(state.st_mtime, UTC).isoformat(timespec="milliseconds")
        except (ValueError, OverflowError, OSError) as error:
            raise InvalidInputError("its time of change is not a date: set it, for example with 'touch'") from error
        address = f"file://{quote_from_bytes(os.fsencode(path))}"
        return cls("", path, _version(state), state.st_size, arrived_at, inode=state.st_ino, address=address)

    @property
    def uri(self) -> str:
        return self.address


@dataclass(frozen=True, slots=True)
class InputFile:
    file: ObjectVersion
    partition: Partition
    folder: str | None = None


@dataclass(frozen=True, slots=True)
class Search:
    names: Sequence[str]
    """Paths of files and folders, and URIs that begin with ``s3://``."""
    settings: Settings
    dataset: str | None = None
    """Dataset of all files; None: it follows from the file, as the hour does."""
    hour: datetime | None = None
    region: str = ""

    def find(self, output: OutputFolder, on_refusal: OnRefusal, on_left_out: OnLeftOut) -> Iterator[InputFile]:
        """Yield once every named file, and every file in a named folder with one of ``input.suffixes``.

        Hidden entries, ``output``, and folders of other conversions are left out; a link in a folder may only lead to
        files of the folder. The key of a file in a folder is its path below it: where no rule of ``[[datasets]]``
        matches, the dataset has the folder's name. ``on_refusal``: called with path or URI, and the reason, of an entry
        that looks like input but cannot be converted; ``on_left_out``: with the path of an entry that is left out,
        except ``output``, or has none of the suffixes. Raises ``InvalidInputError`` if a path does not exist, or is
        ``output``, or a URI names no bucket; botocore's errors if S3 refused the listing or did not answer.
        """
        found: set[bytes] = set()
        named = chain(self._of_this_machine(output.root, on_refusal, on_left_out), self._of_s3(on_left_out))
        for name, find, key, above in named:
            try:
                file = find()
                item = self._input_file(file, key, above, output)
            except InvalidInputError as error:
                on_refusal(name, str(error))
                continue
            version = identity(file.uri, file.version)
            if version not in found:
                found.add(version)
                yield item

    def _of_this_machine(self, output: Path, on_refusal: OnRefusal, on_left_out: OnLeftOut) -> Iterator[_Named]:
        written = output.resolve()
        for path in (Path(name) for name in self.names if not name.startswith(SCHEME)):
            if path.is_dir():
                base = path.resolve()
                if base == written:
                    raise InvalidInputError(f"{path} is the output folder: pass another one with -o")
                top = f"{str(base).rstrip('/')}/"
                for place in _walk(str(base), str(written), on_refusal, on_left_out):
                    key = place.removeprefix(top)
                    if self.settings.input.suffix_of(key) is None:
                        on_left_out(place)
                    else:
                        yield place, partial(_find, place, base), key, base.name
            elif not path.exists():
                raise InvalidInputError(f"{path} does not exist: pass NDJSON files, or folders that hold some")
            else:
                yield str(path), partial(_find, str(path), None), path.name, path.parent.resolve().name

    def _of_s3(self, on_left_out: OnLeftOut) -> Iterator[_Named]:
        """Yield the object of each named URI, and the objects below it as a folder."""
        for uri in (name for name in self.names if name.startswith(SCHEME)):
            bucket, _, named = uri.removeprefix(SCHEME).partition("/")
            if not bucket:
                raise InvalidInputError(f"{uri!r} names no bucket: pass s3://bucket/key or s3://bucket/folder/")
            folder = named if named.endswith("/") or not named else f"{named}/"
            exists = not named
            for item in list_objects(s3_client(self.region), bucket, named):
                key, version = item["Key"], (item["ETag"], item["Size"], item["LastModified"], None)
                name, find = f"{SCHEME}{bucket}/{key}", partial(ObjectVersion.of, bucket, key, *version)
                if key != named and not key.startswith(folder):
                    continue
                exists = True
                if key == named or self.settings.input.suffix_of(key) is not None:
                    yield name, find, key, PurePosixPath("/", bucket, key).parent.name
                elif not key.endswith("/"):
                    on_left_out(name)
            if not exists:
                raise InvalidInputError(f"{uri} does not exist: pass s3://bucket/key or s3://bucket/folder/")

    def _input_file(self, file: ObjectVersion, key: str, above: str, output: OutputFolder) -> InputFile:
        """Return the file with its dataset; ``above``: its folder if no rule matches its key.

        Raises ``InvalidInputError`` if its folder gives no name of a dataset, or another folder's name.
        """
        rules, hour = self.settings.datasets, self.hour or datetime.fromisoformat(file.arrived_at)
        if self.dataset is not None:
            return InputFile(file, Partition.of(self.dataset, hour))
        rule, dataset = matching_rule(key, rules)
        folder = above if rule is None else rule.folder_of(key)
        name = name_of_folder(above) if rule is None else dataset
        if not name:
            reason = None if rule is None else reason_without_dataset(key, rules)
            raise InvalidInputError(reason or f"the folder {above!r} cannot become a dataset name: pass --dataset")
        if folder is not None and (owner := output.folder_of(name, folder)) != folder:
            raise InvalidInputError(
                f"the folder {folder!r} would share the dataset {name}, which the folder {owner!r} uses: pass "
                "--dataset, or settings with a rule for it"
            )
        return InputFile(file, Partition.of(name, hour), folder)


def groups(files: Iterable[InputFile]) -> Iterator[Sequence[InputFile]]:
    """Return groups of files of one dataset and hour, limited by bytes and number."""
    by_partition: defaultdict[Partition, list[InputFile]] = defaultdict(list)
    for item in files:
        by_partition[item.partition].append(item)
    for items in by_partition.values():
        yield from cut(items, lambda item: (item.file.size, 1), (MAX_GROUP_BYTES, MAX_GROUP_FILES))


def _walk(base: str, output: str, on_refusal: OnRefusal, on_left_out: OnLeftOut) -> Iterator[str]:
    """Yield paths of entries that are not folders, and of links to folders outside; no link is followed.

    Paths are strings: to make a ``Path`` takes longer than to read a small file.
    """
    waiting = [base]
    while waiting:
        walk = os.walk(waiting.pop(), onerror=lambda error: on_refusal(error.filename, _format_error(error)))
        # On Python 3.11 it is recursive, and folders can be nested deeper than calls.
        for folder, folders, files in islice(walk, 1):
            prefix = f"{folder.rstrip('/')}/"
            written = WRITTEN if OWN in folders else ()
            left_out = {prefix + name for name in (*folders, *files) if name.startswith(HIDDEN) or name in written}
            for path in sorted(left_out - {prefix + OWN, output}):
                on_left_out(path)
            visible = [path for name in sorted(folders, reverse=True) if (path := prefix + name) not in left_out]
            # `Path.is_symlink` raises an error for a path that is too long.
            links = {path for path in visible if os.path.islink(path)}  # noqa: PTH114
            waiting += (path for path in visible if path not in links and path != output)
            outside = (link for link in links if not Path(os.path.realpath(link)).is_relative_to(base))
            yield from sorted((*(path for name in files if (path := prefix + name) not in left_out), *outside))


def _find(path: str, folder: Path | None) -> LocalFile:
    """Return the file at a path; ``folder``: the named folder that must contain it. Raises ``InvalidInputError``."""
    try:
        if folder is None:
            # A shell's link to a pipe, such as /dev/fd/63, leads to a name that is in no folder.
            _check_regular(Path(path).stat())
        if folder is None or stat.S_ISLNK(os.lstat(path).st_mode):
            path = os.path.realpath(path, strict=True)
            if folder is not None and not Path(path).is_relative_to(folder):
                raise InvalidInputError(f"it is a link to {path}, outside of the folder: name that file, or copy it")
        return LocalFile.found(path)
    except OSError as error:
        raise InvalidInputError(_format_error(error)) from error


def _check_regular(state: os.stat_result) -> None:
    if not stat.S_ISREG(state.st_mode):
        raise InvalidInputError("it is not a regular file: remove it, or write its content to a file")


def _format_error(error: OSError) -> str:
    return f"it could not be read ({error.strerror}): remove the cause and convert again"


def _fetch_local(file: LocalFile, start: int, end: int) -> bytes:
    try:
        # A pipe that has replaced the file does not block the task.
        handle = os.open(file.key, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        try:
            _check_state(handle, file)
            data = _read(handle, start, end)
            _check_state(handle, file)
            return data
        finally:
            os.close(handle)
    except PermissionError as error:
        raise DeniedFileError(denial(error.strerror)) from error
    except OSError as error:
        # One damaged or removed file does not stop the others.
        raise UnreadableNowError(f"it could not be read: {error.strerror}", file) from error


def denial(answer: object) -> str:
    """Return why a denied file was not converted, and what a person can do."""
    return f"reading it is denied ({answer}): allow it, then run the command again"


def _version(state: os.stat_result) -> str:
    return f"{state.st_size}-{state.st_mtime_ns}"


def _check_state(handle: int, file: LocalFile) -> None:
    state = os.fstat(handle)
    if (_version(state), state.st_ino) != (file.etag, file.inode):
        raise UnreadableNowError("it was changed while it was converted: wait until it is complete", file)


def _read(handle: int, start: int, end: int) -> bytes:
    """One call may return less than requested, and at most 2 GiB."""
    parts: list[bytes] = []
    while start < end and (part := os.pread(handle, end - start, start)):
        parts.append(part)
        start += len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


@dataclass
class InputFiles:
    region: str

    def fetch(self, file: ObjectVersion, start: int, end: int) -> Buffer:
        """Return the bytes [start, end).

        Raises ``UnreadableNowError`` if the file is gone, damaged, or has changed before the end of the read;
        ``DeniedFileError`` if it may not be read; botocore's errors if S3 fails.
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
            # Nothing retries it here.
            raise (error.__cause__ or error) from None

    @cached_property
    def _source(self) -> Source:
        return Source(self.region, None)
