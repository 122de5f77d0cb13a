"""The files of some hours and who has them, in a database on disk: memory does not grow with their number."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

from lake.manifest import Identity, ObjectVersion

SCHEMA = """
CREATE TABLE arrived (hour, manifest, bucket, key, etag, size, arrived_at, version_id);
CREATE INDEX by_manifest ON arrived (manifest);
CREATE TABLE published (identity PRIMARY KEY, manifest) WITHOUT ROWID;
"""


class FileIndex:
    """Used by one thread; a context manager that closes its database.

    Parameters
    ----------
    folder
        The database is made in it; the caller removes it.
    """

    def __init__(self, folder: Path) -> None:
        # The file lasts as long as the process that fills it: a crash leaves nothing that is read again.
        self._database = sqlite3.connect(folder / "files.sqlite", isolation_level=None)
        self._database.executescript(f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; {SCHEMA}")

    def __enter__(self) -> FileIndex:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._database.close()

    def add(self, hour: str, manifest: str, files: Iterable[ObjectVersion]) -> None:
        """Files that arrived in an hour (``YYYY-MM-DDTHH``), and belong to this manifest."""
        rows = (
            (hour, manifest, file.bucket, file.key, file.etag, file.size, file.arrived_at, file.version_id)
            for file in files
        )
        self._database.executemany("INSERT INTO arrived VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def manifests(self, hour: str) -> list[str]:
        """Manifests that have files of the hour, sorted."""
        rows = self._database.execute("SELECT DISTINCT manifest FROM arrived WHERE hour = ? ORDER BY 1", (hour,))
        return [manifest for (manifest,) in rows]

    def files_of(self, manifest: str) -> set[ObjectVersion]:
        """The files that were added for a manifest."""
        query = "SELECT bucket, key, etag, size, arrived_at, version_id FROM arrived WHERE manifest = ?"
        return {ObjectVersion(*row) for row in self._database.execute(query, (manifest,))}

    def remove(self, manifest: str) -> None:
        """Forget the files of a manifest: others have them."""
        self._database.execute("DELETE FROM arrived WHERE manifest = ?", (manifest,))

    def publisher(self, identity: Identity, manifest: str) -> str:
        """The first manifest that was named here as the publisher of the file; ``manifest`` itself if it is."""
        digest = hashlib.blake2b("\0".join(identity).encode(), digest_size=16).digest()
        self._database.execute("INSERT OR IGNORE INTO published VALUES (?, ?)", (digest, manifest))
        (first,) = self._database.execute("SELECT manifest FROM published WHERE identity = ?", (digest,)).fetchone()
        return str(first)
