"""The output folder: ``lake/`` and ``quarantine/`` for readers, ``_hybrid-router/`` for what is done and under way.

A manifest is committed by one rename of its commit document. Before it readers see nothing of the manifest, and after
it every next run completes it. So each file is converted once, whenever the process is killed.
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple, Self

from lake.commit import PendingObject, SourceCount, checksum_of
from lake.errors import InvalidInputError
from lake.layout import is_own_key
from lake.manifest import ObjectVersion, Partition, is_manifest_id
from lake.texts import format_count

LAKE, QUARANTINE = "lake", "quarantine"
"""They take the place of the buckets' names."""
TABLES = "tables"
"""Folder of the Iceberg tables and their catalog, where they are asked for."""
FOLDERS = "folders.json"
FORMAT = 1
GENERATION = 1
"""A folder's files are never published again under another generation."""
OBJECT_FOLDER = re.compile(r"([a-z][a-z0-9_]{0,62})/date=(\d{4}-\d\d-\d\d)/hour=(\d\d)/", re.ASCII)
DISK_THREADS = 4
SOURCE_FIELDS = tuple(field.name for field in fields(SourceCount))


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


class PublishedFile(NamedTuple):
    path: Path
    partition: Partition
    rows: int


class StagedFiles:
    """Takes written files over into the staging folder of a manifest, under the name of their bucket and key."""

    def __init__(self, staging: Path) -> None:
        self._staging = staging

    def add(self, path: Path, bucket: str, key: str, rows: int) -> Future[PendingObject]:
        """Rename the file, which is on the same file system; its bytes need not have reached the disk."""
        target = self._staging / bucket / key
        target.parent.mkdir(parents=True, exist_ok=True)
        with path.open("rb") as file:
            checksum = checksum_of(file)
        size = path.stat().st_size
        path.replace(target)
        done: Future[PendingObject] = Future()
        done.set_result(PendingObject(bucket, key, "", (), checksum, size, rows))
        return done

    def finish(self) -> None:
        """Nothing is under way."""

    def abort(self) -> None:
        """The staging folder is removed as a whole."""


class OutputFolder:
    """A context manager: one process at a time uses a folder."""

    def __init__(self, root: Path, *, with_tables: bool = False) -> None:
        """``with_tables``: the folder gets Iceberg tables, unless it has them already."""
        self.root = root
        self.has_tables = with_tables or (root / TABLES).exists()
        self._own = root / "_hybrid-router"
        self._results = self._own / "results"
        self._commits = self._own / "commits"
        self._withdrawn = self._own / "withdrawn"
        self.converted = ConvertedFiles()
        self._folders: dict[str, str] = {}
        """The folder of each dataset whose name a folder gave."""
        self._disk = ThreadPoolExecutor(DISK_THREADS)
        self._written: dict[Path, Future[None]] = {}
        """Staged files that reach the disk now, or have done so."""

    def __enter__(self) -> Self:
        """Lock the folder, complete what was committed, and remove what was not.

        Others may be able to write to the folder: nothing in it makes this process move or remove anything elsewhere.
        Raises ``InvalidInputError``: another process uses it, it cannot be written to, or something in it was not
        written by a conversion.
        """
        for folder in (self._results, self._commits, self._withdrawn, self._own / "staging", self.root / TABLES):
            self._refuse_links(folder)
        if self.has_tables and not _is_utf8(self.root.resolve()):
            raise InvalidInputError(
                f"the path of {self.root} is not UTF-8, which Iceberg tables need for its files: pass another --output"
            )
        try:
            for folder in (self._results, self._commits, self._withdrawn):
                folder.mkdir(parents=True, exist_ok=True)
            lock = os.open(self._own / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
            self._lock = os.fdopen(lock, "w")
        except OSError as error:
            raise InvalidInputError(f"the output folder {self.root} cannot be used: {error}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock.close()
            raise InvalidInputError(
                f"another process converts into {self.root}: wait for it, or pass another --output"
            ) from error
        try:
            self._recover()
        except BaseException:
            self._lock.close()
            raise
        return self

    def _recover(self) -> None:
        commits, withdrawn = (sorted(folder.glob("*.json")) for folder in (self._commits, self._withdrawn))
        # All of them are read before anything is moved.
        bodies = {document: self._read(document) for document in (*commits, *withdrawn)}
        for commit in commits:
            self._publish(commit, bodies[commit])
        if not self.has_tables:
            self.remove_withdrawn()
        shutil.rmtree(self._own / "staging", ignore_errors=True)
        for result in self._results.glob("*.json"):
            self.converted.add(self._read(result))
        self._folders = self._read_folders()

    def __exit__(self, *_: object) -> None:
        self._disk.shutdown()
        self._lock.close()

    def folder_of(self, dataset: str, folder: str) -> str:
        """The folder whose files the dataset has: ``folder`` if no other one has it, now or in an earlier call."""
        return self._folders.setdefault(dataset, folder)

    def keep_folders(self) -> None:
        """Remember them for later calls; before a file of theirs is converted."""
        beside = self._own / "folders.json.new"
        self._refuse_links(beside)
        self._write(self._folders, beside, self._own / FOLDERS)

    def _read_folders(self) -> dict[str, str]:
        path = self._own / FOLDERS
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            if (
                path.is_symlink()
                or not isinstance(found, dict)
                or not all(isinstance(name, str) for name in found.values())
            ):
                raise ValueError("it does not name folders")
        except FileNotFoundError:
            return {}
        except (ValueError, RecursionError) as error:
            raise InvalidInputError(
                f"{path} was not written by a conversion ({error}): find out who has written it, and move it away"
            ) from error
        return found

    def staging(self, manifest: str) -> Path:
        return self._own / "staging" / manifest

    def write_back(self, manifest: str, objects: Iterable[PendingObject]) -> None:
        """Have staged files reach the disk while others are converted: ``commit`` waits for them."""
        for item in objects:
            path = self.staging(manifest) / item.bucket / item.key
            self._written[path] = self._disk.submit(_synchronize_file, path)

    def discard(self, manifest: str) -> None:
        for path in [path for path in self._written if path.is_relative_to(self.staging(manifest))]:
            del self._written[path]
        shutil.rmtree(self.staging(manifest), ignore_errors=True)

    def commit(self, manifest: str, sources: Iterable[SourceCount], objects: Iterable[PendingObject]) -> None:
        """Publish the staged objects of a manifest: all of them, once, also after the process was killed."""
        staged = [(item, self.staging(manifest) / item.bucket / item.key) for item in objects]
        self.write_back(manifest, (item for item, path in staged if path not in self._written))
        for _, path in staged:
            self._written.pop(path).result()
        self._synchronize(path.parent for _, path in staged)
        body = {
            "format": FORMAT,
            "manifest": manifest,
            "sources": [{name: getattr(source, name) for name in SOURCE_FIELDS} for source in sources],
            "objects": [{"bucket": item.bucket, "key": item.key, "rows": item.rows} for item, _ in staged],
        }
        beside, commit = self.staging(manifest) / "commit.json", self._commits / f"{manifest}.json"
        beside.parent.mkdir(parents=True, exist_ok=True)
        self._write(body, beside, commit)
        self._publish(commit, body)
        self.converted.add(body)

    def _write(self, body: Mapping[str, Any], beside: Path, path: Path) -> None:
        """Write a document at once, and let it reach the disk; ``beside`` holds it until it is complete."""
        with beside.open("w", encoding="utf-8") as file:
            # `json.dump` does not use the encoder in C.
            file.write(json.dumps(body))
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        self._synchronize([path.parent])

    def _publish(self, commit: Path, body: Mapping[str, Any]) -> None:
        staging, published = self.staging(body["manifest"]), set()
        for item in body["objects"]:
            staged, final = (base / item["bucket"] / item["key"] for base in (staging, self.root))
            self._refuse_links(staged)
            self._refuse_links(final)
            # A run that was killed here has renamed some of them.
            if staged.exists():
                final.parent.mkdir(parents=True, exist_ok=True)
                staged.replace(final)
            published.add(final.parent)
        self._synchronize(folder for folder in published if folder.exists())
        commit.replace(self._results / commit.name)
        self._refuse_links(staging)
        shutil.rmtree(staging, ignore_errors=True)

    def sources(self, manifest: str) -> list[dict[str, Any]]:
        """The files of a published manifest with their counts, as ``SourceCount``."""
        found: list[dict[str, Any]] = self._read(self._results / f"{manifest}.json")["sources"]
        return found

    def withdraw(self, manifest: str) -> None:
        """Remove a published manifest: its files count as not converted, also after the process was killed.

        Where there are tables, which still show its objects, these stay until ``remove_withdrawn``.
        """
        result, withdrawn = (folder / f"{manifest}.json" for folder in (self._results, self._withdrawn))
        self.converted.discard(self._read(result))
        result.replace(withdrawn)
        self._synchronize([self._results, self._withdrawn])
        if not self.has_tables:
            self._remove_objects(withdrawn)

    def remove_withdrawn(self) -> None:
        for document in sorted(self._withdrawn.glob("*.json")):
            self._remove_objects(document)

    def published_files(self) -> Iterator[PublishedFile]:
        """The Parquet files of published manifests, without those that a person has deleted since."""
        root = self.root.resolve()
        for result in sorted(self._results.glob("*.json")):
            for item in self._read(result)["objects"]:
                path = root / item["bucket"] / item["key"]
                if item["bucket"] == LAKE and path.exists():
                    yield PublishedFile(path, _partition_of(item["key"]), item["rows"])

    def _remove_objects(self, withdrawn: Path) -> None:
        objects = [self.root / item["bucket"] / item["key"] for item in self._read(withdrawn)["objects"]]
        for path in objects:
            self._refuse_links(path)
            path.unlink(missing_ok=True)
        self._synchronize({path.parent for path in objects if path.parent.exists()})
        withdrawn.unlink()

    def _read(self, path: Path) -> dict[str, Any]:
        try:
            if path.is_symlink() or not path.is_file():
                raise ValueError("it is not a file")
            body: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            manifest = body["manifest"]
            if body["format"] != FORMAT or not is_manifest_id(manifest) or path.name != f"{manifest}.json":
                raise ValueError("its manifest is not valid")
            for source in body["sources"]:
                identity(source["uri"], source["version"])
                if not isinstance(source["rows"], int) or not isinstance(source["rejects"], dict):
                    raise ValueError("it does not count the lines of a file")
            for item in body["objects"]:
                if item["bucket"] not in (LAKE, QUARANTINE) or not (
                    OBJECT_FOLDER.match(key := item["key"])
                    and is_own_key(key, _partition_of(key), manifest, GENERATION)
                ):
                    raise ValueError(f"{item['bucket']}/{item['key']} is not the name of an object")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise InvalidInputError(
                f"{path} was not written by a conversion ({error}): find out who has written it, and move it away"
            ) from error
        return body

    def _refuse_links(self, path: Path) -> None:
        """Raise an error if the path below the folder leads elsewhere."""
        for part in (path, *path.parents):
            if part == self.root:
                return
            if part.is_symlink():
                raise InvalidInputError(f"{part} is a link, and nothing is written outside of {self.root}: remove it")

    def _synchronize(self, folders: Iterable[Path]) -> None:
        """The names in these folders and in those above them reach the disk: a power failure does not undo a rename."""
        found = {above for folder in folders for above in (folder, *folder.parents) if above.is_relative_to(self.root)}
        for folder in found:
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def _partition_of(key: str) -> Partition:
    parts = OBJECT_FOLDER.match(key)
    assert parts is not None
    dataset, date, hour = parts.groups()
    return Partition(dataset, date, int(hour))


def _is_utf8(path: Path) -> bool:
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def _synchronize_file(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def withdraw_changed(output: OutputFolder, found: Iterable[ObjectVersion]) -> dict[str, str]:
    """Withdraw the manifests of files that have changed; all files of such a manifest can then be converted again.

    ``found`` are the files of this call. Files of a manifest share its Parquet files: where one that has lines is not
    among those of the call, nothing is withdrawn. Returns URIs of files that cannot be replaced, with the reason.
    """
    same: Counter[str] = Counter()
    changed: defaultdict[str, list[str]] = defaultdict(list)
    for file in found:
        version = output.converted.version_with_lines(file)
        if version is None:
            continue
        if version.is_of(file):
            same[version.manifest] += 1
        else:
            changed[version.manifest].append(file.uri)
    refused: dict[str, str] = {}
    for manifest, uris in changed.items():
        missing = sum(map(has_lines, output.sources(manifest))) - same[manifest] - len(uris)
        if missing > 0:
            verb = "is" if missing == 1 else "are"
            refused |= dict.fromkeys(
                uris,
                f"it has changed, and its Parquet files have rows of {format_count(missing, 'file')} that {verb} not "
                "among those of this call: name those too, or convert into a new folder",
            )
        else:
            output.withdraw(manifest)
    return refused
