"""Writes rejected lines as JSON lines: verbatim if they are small, by reference if they are large.

The last quarantine object of an attempt lists the files that it skips because they cannot be read to their end.
"""

import base64
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ndjson_arrow import Reject

from lake.errors import AuditError
from lake.manifest import ObjectVersion
from transform.task_model import Split

MAX_EXPANSION = 20
"""Maximum bytes of records of single lines, for each byte of the input."""
FREE_BYTES = 64 << 10
"""Additional bytes of such records for each task, for small files."""
QuarantinedThing = tuple[str, str, str, str]
"""``"line"`` or ``"file"``, URI and version of the file, reason."""


@dataclass(frozen=True, slots=True)
class QuarantineContent:
    size: int
    records: int
    counts: Mapping[QuarantinedThing, int]
    """Numbers of rejected lines and whole files; a record of kind ``lines`` counts its ``count``."""


def line_record(file: ObjectVersion, reject: Reject) -> dict[str, Any]:
    """One rejected line: ``line`` is its text, or ``line_base64`` its bytes if they are not valid UTF-8.

    A line that was too large to keep has neither; ``offset`` and ``length`` locate it.

    They are in bytes, in the decompressed file if it is compressed.
    """
    record = _record("line", file, reject.offset, reject.length, reject.reason)
    if reject.line is not None:
        try:
            record["line"] = reject.line.decode()
        except UnicodeDecodeError:
            record["line_base64"] = base64.b64encode(reject.line).decode()
    return record


def file_record(file: ObjectVersion, reason: str) -> dict[str, Any]:
    return _record("file", file, 0, file.size, reason)


def _record(kind: str, file: ObjectVersion, offset: int, length: int, reason: str, **more: int) -> dict[str, Any]:
    place = {"source": file.uri, "version": file.version, "offset": offset, "length": length}
    return {"kind": kind, **place, "reason": reason, **more}


def encode_record(record: Mapping[str, Any]) -> bytes:
    """The record as one line of UTF-8 JSON with its newline."""
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


class QuarantineFiles:
    """Writes the records of one task to local files, and passes each finished file on.

    A file ends when it has at least ``target_bytes``. ``on_finished`` gets the path of a finished file and the content
    that was read back from it, and removes the file.
    """

    def __init__(self, folder: Path, target_bytes: int, on_finished: Callable[[Path, QuarantineContent], None]) -> None:
        self._folder = folder
        self._target_bytes = target_bytes
        self._on_finished = on_finished
        self._path: Path | None = None
        self._bytes = 0
        self._count = 0
        self._left = FREE_BYTES

    def write_rejects(self, split: Split, counted: Mapping[str, int], rejects: Iterable[Reject]) -> None:
        """Write the first rejects of a split, and for each reason the number of its other lines.

        Records of single lines have a budget, because each one repeats the URI of its file: records of short lines
        would take a thousand times their size.
        """
        self._left += MAX_EXPANSION * split.size
        records, others = [], Counter(counted)
        for reject in rejects:
            record = line_record(split.file, reject)
            size = len(encode_record(record))
            if size > self._left:
                break
            self._left -= size
            records.append(record)
            others[reject.reason] -= 1
        records += [
            _record("lines", split.file, split.start, split.size, reason, count=count)
            for reason, count in others.items()
            if count
        ]
        self.write(records)

    def write(self, records: Iterable[Mapping[str, Any]]) -> None:
        lines = [encode_record(record) for record in records]
        if not lines:
            return
        if self._path is None:
            self._path = self._folder / f"{self._count}.jsonl"
            self._count += 1
        with self._path.open("ab") as file:
            file.writelines(lines)
        self._bytes += sum(map(len, lines))
        if self._bytes >= self._target_bytes:
            self.close()

    def close(self) -> None:
        """Finish the open file, if any. Raises ``AuditError`` if it cannot be read back."""
        if self._path is not None:
            self._on_finished(self._path, read_back(self._path))
            self._path, self._bytes = None, 0


def read_back(path: Path) -> QuarantineContent:
    """Count the records of a file. Raises ``AuditError`` if a record cannot be read."""
    counts: Counter[QuarantinedThing] = Counter()
    size = records = 0
    with path.open("rb") as file:
        for line in file:
            size += len(line)
            records += 1
            try:
                record = json.loads(line)
                kind = "file" if record["kind"] == "file" else "line"
                # One text object for all records of a file, so that the result for the driver contains each name once.
                source, version = sys.intern(record["source"]), sys.intern(record["version"])
                counts[kind, source, version, record["reason"]] += record.get("count", 1)
            except (ValueError, KeyError, TypeError) as error:
                raise AuditError(
                    f"record {records} of {path.name} in the quarantine cannot be read ({error}): "
                    "the attempt is discarded, and the manifest is retried"
                ) from error
    return QuarantineContent(size, records, counts)
