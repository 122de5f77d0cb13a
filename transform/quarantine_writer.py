"""Lines that could not become rows, as JSON lines: verbatim where they are small, by reference where they are not."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from ndjson_arrow import Reject

    from lake.manifest import ObjectVersion


def line_record(file: ObjectVersion, reject: Reject) -> dict[str, Any]:
    """One rejected line. ``line`` is its text, ``line_base64`` its bytes when they are no UTF-8; neither: look it up.

    ``offset`` and ``length`` are bytes, in the inflated file where it is compressed.
    """
    record: dict[str, Any] = {
        "kind": "line",
        "source": file.uri,
        "version": file.version,
        "offset": reject.offset,
        "length": reject.length,
        "reason": reject.reason,
    }
    if reject.line is not None:
        try:
            record["line"] = reject.line.decode()
        except UnicodeDecodeError:
            record["line_base64"] = base64.b64encode(reject.line).decode()
    return record


def remainder_records(
    file: ObjectVersion, start: int, end: int, counted: Mapping[str, int], kept: Mapping[str, int]
) -> list[dict[str, Any]]:
    """Rejected lines beyond the sample of one split, by reason: ``count`` lines somewhere in [start, end)."""
    return [
        {
            "kind": "lines",
            "source": file.uri,
            "version": file.version,
            "offset": start,
            "length": end - start,
            "reason": reason,
            "count": count - kept.get(reason, 0),
        }
        for reason, count in counted.items()
        if count > kept.get(reason, 0)
    ]


def file_record(file: ObjectVersion, reason: str) -> dict[str, Any]:
    """A file that could not be read as a whole, by reference."""
    return {
        "kind": "file",
        "source": file.uri,
        "version": file.version,
        "offset": 0,
        "length": file.size,
        "reason": reason,
    }


def encode(record: Mapping[str, Any]) -> bytes:
    """One line; what is no text in it was encoded before, so any reader of JSON lines can read it."""
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


class QuarantineFiles:
    """Writes records to local files; hands over each finished one.

    Parameters
    ----------
    finished
        Called with the path of a whole file and the number of its records.
    """

    def __init__(self, folder: Path, target_bytes: int, finished: Callable[[Path, int], None]) -> None:
        self._folder = folder
        self._target_bytes = target_bytes
        self._finished = finished
        self._path: Path | None = None
        self._bytes = 0
        self._records = 0
        self._count = 0

    def write(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Append the records."""
        lines = [encode(record) for record in records]
        if not lines:
            return
        if self._path is None:
            self._path = self._folder / f"{self._count}.jsonl"
            self._count += 1
        with self._path.open("ab") as file:
            file.writelines(lines)
        self._records += len(lines)
        self._bytes += sum(map(len, lines))
        if self._bytes >= self._target_bytes:
            self.close()

    def close(self) -> None:
        """Finish the file that is open."""
        if self._path is not None:
            self._finished(self._path, self._records)
            self._path, self._bytes, self._records = None, 0, 0
