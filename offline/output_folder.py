"""The output folder: ``lake/`` and ``quarantine/`` for readers, ``_hybrid-router/`` for what is done and under way.

A manifest is committed by one rename of its commit document. Before it readers see nothing of the manifest, and after
it every next run completes it. So each file is converted once, whenever the process is killed.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict
from typing import TYPE_CHECKING, Self

from lake.checksum import checksum_of
from lake.commit import PendingObject
from lake.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from lake.commit import SourceCount
    from lake.manifest import ObjectVersion

LAKE, QUARANTINE = "lake", "quarantine"
"""They take the place of the buckets' names."""
FORMAT = 1
DISK_THREADS = 4


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

    def __init__(self, root: Path) -> None:
        self.root = root
        self._own = root / "_hybrid-router"
        self._results = self._own / "results"
        self._commits = self._own / "commits"
        self._done: set[bytes] = set()
        self._disk = ThreadPoolExecutor(DISK_THREADS)
        self._written: dict[Path, Future[None]] = {}
        """Staged files that reach the disk now, or have done so."""

    def __enter__(self) -> Self:
        """Lock the folder, complete what was committed, and remove what was not.

        Raises
        ------
        InvalidInputError
            Another process uses it, or it cannot be written to.
        """
        try:
            for folder in (self._results, self._commits):
                folder.mkdir(parents=True, exist_ok=True)
            self._lock = (self._own / "lock").open("w")
        except OSError as error:
            raise InvalidInputError(f"the output folder {self.root} cannot be used: {error}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock.close()
            raise InvalidInputError(
                f"another process converts into {self.root}: wait for it, or pass another --output"
            ) from error
        for commit in sorted(self._commits.glob("*.json")):
            self._publish(commit)
        shutil.rmtree(self._own / "staging", ignore_errors=True)
        for result in self._results.glob("*.json"):
            self._remember(json.loads(result.read_text(encoding="utf-8")))
        return self

    def __exit__(self, *_: object) -> None:
        self._disk.shutdown()
        self._lock.close()

    def is_done(self, file: ObjectVersion) -> bool:
        """Whether this version of the file is in the lake or in the quarantine."""
        return identity(file.uri, file.version) in self._done

    def staging(self, manifest: str) -> Path:
        """The folder for files of a manifest that is not committed."""
        return self._own / "staging" / manifest

    def write_back(self, manifest: str, objects: Iterable[PendingObject]) -> None:
        """Have staged files reach the disk while others are converted: ``commit`` waits for them."""
        for item in objects:
            path = self.staging(manifest) / item.bucket / item.key
            self._written[path] = self._disk.submit(_synchronize_file, path)

    def discard(self, manifest: str) -> None:
        """Remove what an attempt has written."""
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
            "sources": [asdict(source) for source in sources],
            "objects": [{"bucket": item.bucket, "key": item.key, "rows": item.rows} for item, _ in staged],
        }
        beside = self.staging(manifest) / "commit.json"
        beside.parent.mkdir(parents=True, exist_ok=True)
        with beside.open("w", encoding="utf-8") as file:
            json.dump(body, file)
            file.flush()
            os.fsync(file.fileno())
        commit = self._commits / f"{manifest}.json"
        beside.replace(commit)
        self._synchronize([self._commits])
        self._publish(commit)
        self._remember(body)

    def _publish(self, commit: Path) -> None:
        body = json.loads(commit.read_text(encoding="utf-8"))
        staging, published = self.staging(body["manifest"]), set()
        for item in body["objects"]:
            staged, final = (base / item["bucket"] / item["key"] for base in (staging, self.root))
            # A run that was killed here has renamed some of them.
            if staged.exists():
                final.parent.mkdir(parents=True, exist_ok=True)
                staged.replace(final)
            published.add(final.parent)
        self._synchronize(published)
        commit.replace(self._results / commit.name)
        shutil.rmtree(staging, ignore_errors=True)

    def _synchronize(self, folders: Iterable[Path]) -> None:
        """The names in these folders and in those above them reach the disk: a power failure does not undo a rename."""
        found = {above for folder in folders for above in (folder, *folder.parents) if above.is_relative_to(self.root)}
        for folder in found:
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

    def _remember(self, body: dict[str, object]) -> None:
        sources: Iterator[dict[str, str]] = iter(body["sources"])  # type: ignore[call-overload]
        self._done.update(identity(source["uri"], source["version"]) for source in sources)


def _synchronize_file(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def identity(uri: str, version: str) -> bytes:
    """Of one version of a file, in 16 bytes."""
    return hashlib.blake2b(f"{uri}\n{version}".encode("utf-8", "surrogateescape"), digest_size=16).digest()
