"""The output folder: ``lake/`` and ``quarantine/`` for readers, ``_hybrid-router/`` for its own records.

A manifest is committed by one rename of its commit document. Before it, readers see nothing of the manifest; after
it, the next run completes the publish, until the manifest has no staging folder. So each file is converted once, no
matter when the process is killed.
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

from lake.commit import PendingObject, SourceCount, checksum_of
from lake.documents import decode, encode
from lake.errors import InvalidInputError
from lake.layout import is_own_key, partition_prefix
from lake.manifest import Manifest, ObjectVersion, Partition, is_manifest_id
from lake.texts import format_count

OWN, LAKE, QUARANTINE = "_hybrid-router", "lake", "quarantine"
TABLES = "tables"
"""Folder of the Iceberg tables and their catalog, if requested."""
FORMAT = 1
GENERATION = 1
"""The only generation: files of a folder are not published again under another one."""
OBJECT_FOLDER = re.compile(r"[a-z][a-z0-9_]{0,62}/date=\d{4}-\d\d-\d\d/hour=\d\d/", re.ASCII)


class Converted(NamedTuple):
    """The last converted version of a file."""

    version: bytes
    manifest: str
    rows: int
    rejects: Mapping[str, int]
    failed: str | None

    def is_of(self, file: ObjectVersion) -> bool:
        return self.version == identity(file.uri, file.version)

    @property
    def has_lines(self) -> bool:
        """Whether it produced rows, or rejected lines in the quarantine."""
        return bool(self.rows) or any(self.rejects.values())


def identity(uri: str, version: str) -> bytes:
    """Return the identity of one version of a file, in 16 bytes."""
    return hashlib.blake2b(f"{uri}\n{version}".encode("utf-8", "surrogateescape"), digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class FolderCommit:
    """The commit document of a manifest."""

    manifest: str
    partition: Partition
    folder: str | None
    """The folder whose name gave the dataset; None if a person or a rule of the settings named it."""
    sources: tuple[SourceCount, ...]
    objects: tuple[PendingObject, ...]


def stage_file(staging: Path, path: Path, bucket: str, key: str, rows: int) -> Future[PendingObject]:
    """Move a written file of the same file system into the staging folder of a manifest, below its bucket and key.

    Its bytes need not be on the disk yet.
    """
    target = staging / bucket / key
    target.parent.mkdir(parents=True, exist_ok=True)
    with path.open("rb") as file:
        checksum = checksum_of(file)
    size = path.stat().st_size
    path.replace(target)
    done: Future[PendingObject] = Future()
    done.set_result(PendingObject(bucket, key, "", "", checksum, size, rows))
    return done


class OutputFolder:
    """A context manager, so that one process at a time uses a folder."""

    def __init__(self, root: Path, *, with_tables: bool = False) -> None:
        """``with_tables``: the folder gets Iceberg tables if it has none yet."""
        self.root = root
        self.has_tables = with_tables or (root / TABLES).exists()
        self._own = root / OWN
        self._results = self._own / "results"
        self._withdrawn = self._own / "withdrawn"
        self._files: dict[bytes, Converted] = {}
        """Files by URI; some hundred bytes each."""
        self._folders: dict[str, str] = {}

    def __enter__(self) -> Self:
        """Lock the folder, complete committed manifests, and remove uncommitted ones.

        Others may be able to write to the folder: nothing in it makes this process move or remove anything elsewhere.
        Raises ``InvalidInputError`` if another process uses it, it cannot be written to, or something in it was not
        written by a conversion.
        """
        for folder in (self._results, self._withdrawn, self._own / "staging", self.root / TABLES):
            self._refuse_links(folder)
        try:
            for folder in (self._results, self._withdrawn):
                folder.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self._own / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise InvalidInputError(f"the output folder {self.root} cannot be used: {error}") from error
        with ExitStack() as after_error:
            after_error.callback(os.close, self._lock)
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise InvalidInputError(
                    f"another process converts into {self.root}: wait for it, or pass another --output"
                ) from error
            self._recover()
            after_error.pop_all()
        return self

    def _recover(self) -> None:
        for path in sorted(self._results.glob("*.json")):
            body = self._read(path)
            # A published manifest has no staging folder.
            if self.staging(body.manifest).exists():
                self._publish(body)
            self._add(body)
        if not self.has_tables:
            self.remove_withdrawn()
        shutil.rmtree(self._own / "staging", ignore_errors=True)

    def _add(self, commit: FolderCommit) -> None:
        for source in commit.sources:
            file, version = identity(source.uri, ""), identity(source.uri, source.version)
            found = Converted(version, commit.manifest, source.rows, source.rejects, source.failed)
            # Only ``withdraw`` forgets lines: after the clock was set back, a later document is read first.
            if found.has_lines or file not in self._files or not self._files[file].has_lines:
                self._files[file] = found
        if commit.folder is not None:
            self.folder_of(commit.partition.dataset, commit.folder)

    def __exit__(self, *_: object) -> None:
        os.close(self._lock)

    def converted(self, file: ObjectVersion) -> Converted | None:
        """Return the converted version of the file, this one or another."""
        return self._files.get(identity(file.uri, ""))

    def folder_of(self, dataset: str, folder: str) -> str:
        """The folder whose files the dataset has: ``folder`` unless another has it, now or in an earlier call."""
        return self._folders.setdefault(dataset, folder)

    def staging(self, manifest: str) -> Path:
        return self._own / "staging" / manifest

    def discard(self, manifest: str) -> None:
        shutil.rmtree(self.staging(manifest), ignore_errors=True)

    def commit(
        self, manifest: Manifest, folder: str | None, sources: Iterable[SourceCount], objects: Iterable[PendingObject]
    ) -> None:
        """Publish all staged objects of a manifest, once, even if the process is killed; their bytes are on the disk.

        Thread-safe for different manifests without a common file.
        """
        staging = self.staging(manifest.id)
        body = FolderCommit(manifest.id, manifest.partition, folder, tuple(sources), tuple(objects))
        self._synchronize({(staging / item.bucket / item.key).parent for item in body.objects})
        beside, result = staging / "commit.json", self._results / f"{manifest.id}.json"
        # ASCII: the path of a file need not be UTF-8.
        beside.write_text(json.dumps({"format": FORMAT, **encode(body)}), encoding="ascii")
        synchronize(beside)
        beside.replace(result)
        self._synchronize([result.parent])
        self._publish(body)
        self._add(body)

    def _publish(self, body: FolderCommit) -> None:
        staging, published = self.staging(body.manifest), set()
        for item in body.objects:
            staged, final = (base / item.bucket / item.key for base in (staging, self.root))
            self._refuse_links(staged)
            self._refuse_links(final)
            # A run that was killed here has renamed some of them.
            if staged.exists():
                final.parent.mkdir(parents=True, exist_ok=True)
                staged.replace(final)
            published.add(final.parent)
        self._synchronize(folder for folder in published if folder.exists())
        self._refuse_links(staging)
        shutil.rmtree(staging, ignore_errors=True)

    def withdraw_changed(self, found: Iterable[ObjectVersion]) -> dict[str, str]:
        """Withdraw the manifests of changed files; all files of such a manifest can then be converted again.

        ``found`` are the files of this call. Files of a manifest share its Parquet files: if a file with lines is not
        in the call, nothing is withdrawn. Returns URIs of files that cannot be replaced, with the reason.
        """
        same: Counter[str] = Counter()
        changed: defaultdict[str, list[str]] = defaultdict(list)
        for file in found:
            converted = self.converted(file)
            if converted is None or not converted.has_lines:
                continue
            if converted.is_of(file):
                same[converted.manifest] += 1
            else:
                changed[converted.manifest].append(file.uri)
        refused: dict[str, str] = {}
        files = Counter(item.manifest for item in self._files.values() if item.has_lines)
        for manifest, uris in changed.items():
            missing = files[manifest] - same[manifest] - len(uris)
            if missing > 0:
                others = format_count(missing, "file that is", "files that are")
                refused |= dict.fromkeys(
                    uris,
                    f"it has changed, and its Parquet files have rows of {others} not among those of this call: name "
                    "those too, or convert into a new folder",
                )
            else:
                self._withdraw(manifest)
        return refused

    def _withdraw(self, manifest: str) -> None:
        """Remove a published manifest: its files count as not converted, even if the process is killed.

        If tables still show its objects, these stay until ``remove_withdrawn``.
        """
        result, withdrawn = (folder / f"{manifest}.json" for folder in (self._results, self._withdrawn))
        for file in (identity(source.uri, "") for source in self._read(result).sources):
            if file in self._files and self._files[file].manifest == manifest:
                del self._files[file]
        result.replace(withdrawn)
        self._synchronize([self._results, self._withdrawn])
        if not self.has_tables:
            self.remove_withdrawn()

    def remove_withdrawn(self) -> None:
        for withdrawn in sorted(self._withdrawn.glob("*.json")):
            objects = [self.root / item.bucket / item.key for item in self._read(withdrawn).objects]
            for path in objects:
                self._refuse_links(path)
                path.unlink(missing_ok=True)
            self._synchronize({path.parent for path in objects if path.parent.exists()})
            withdrawn.unlink()

    def published_files(self) -> Iterator[tuple[Partition, Path, PendingObject]]:
        """Yield hour, path and object of the Parquet files of published manifests, except those a person deleted."""
        root = self.root.resolve()
        for result in sorted(self._results.glob("*.json")):
            commit = self._read(result)
            for item in commit.objects:
                path = root / item.bucket / item.key
                if item.bucket == LAKE and path.exists():
                    yield commit.partition, path, item

    def _read(self, path: Path) -> FolderCommit:
        try:
            if path.is_symlink() or not path.is_file():
                raise ValueError("it is not a file")
            document = json.loads(path.read_text(encoding="utf-8"))
            body = decode(FolderCommit, document)
            is_named = is_manifest_id(body.manifest) and path.name == f"{body.manifest}.json"
            is_placed = OBJECT_FOLDER.fullmatch(partition_prefix(body.partition))
            if document["format"] != FORMAT or not is_named or not is_placed:
                raise ValueError("its manifest is not valid")
            for item in body.objects:
                is_own = is_own_key(item.key, body.partition, body.manifest, GENERATION)
                if not is_own or item.bucket not in (LAKE, QUARANTINE):
                    raise ValueError(f"{item.bucket}/{item.key} is not the name of an object")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise InvalidInputError(
                f"{path} was not written by a conversion ({error}): find out who has written it, and move it away"
            ) from error
        return body

    def _refuse_links(self, path: Path) -> None:
        """Raise an error if the path below the folder leads elsewhere."""
        # `Path.resolve` raises a RuntimeError for a link to itself, to which nothing can be written.
        leads, root = (Path(os.path.realpath(place)) for place in (path, self.root))
        if leads != root / path.relative_to(self.root):
            raise InvalidInputError(
                f"{path} is a link to {leads}, and nothing is written outside of {self.root}: remove the link"
            )

    def _synchronize(self, folders: Iterable[Path]) -> None:
        """Write the names in these folders and their parents to the disk: a power failure must not undo a rename."""
        found = {above for folder in folders for above in (folder, *folder.parents) if above.is_relative_to(self.root)}
        for folder in found:
            synchronize(folder)


def synchronize(path: Path) -> None:
    """Write the bytes of a file, or the names in a folder, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
