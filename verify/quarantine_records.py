"""The quarantine of one manifest, by input file, in a form that lines of the input are compared with one by one."""

import base64
import hashlib
import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lake.texts import format_count
from verify.elements import Line


@dataclass(slots=True)
class QuarantinedFile:
    lines: dict[int, tuple[int, str, bytes | None]] = field(default_factory=dict)
    """By offset: length, reason and digest of the bytes; None if the record has the line by reference only."""
    counted: Counter[str] = field(default_factory=Counter)
    """Lines without a record of their own, by reason."""
    whole: list[str] = field(default_factory=list)
    """Reasons of records for the whole file."""
    problems: list[str] = field(default_factory=list)

    def take(self, line: Line, reason: str) -> str | None:
        """Compare a rejected line with its record, which is used up; returns what is wrong with it.

        A line without a record is one of those that are only counted.
        """
        record = self.lines.pop(line.offset, None)
        if record is None:
            self.counted[reason] -= 1
            return None
        length, recorded, digest = record
        if (length, recorded) != (line.length, reason):
            return f"is {reason}, and its quarantine record says {recorded}, {format_count(length, 'byte')}"
        if digest is not None and digest != line_digest(line.body or b""):
            return "is in the quarantine with other bytes"
        return None

    def remaining(self) -> list[str]:
        """What does not match after all lines were taken."""
        found = [f"the quarantine has a record of byte {offset}, which is not a rejected line" for offset in self.lines]
        for reason, count in sorted(self.counted.items()):
            if count < 0:
                lines = format_count(-count, f"rejected line ({reason}) is", f"rejected lines ({reason}) are")
                found.append(f"{lines} not in the quarantine")
            elif count > 0:
                found.append(f"the quarantine counts {format_count(count, 'rejected line')} ({reason}) too many")
        return [*self.problems, *found]


def line_digest(line: bytes) -> bytes:
    return hashlib.blake2b(line, digest_size=16).digest()


def add_records(path: Path, files: dict[tuple[str, str], QuarantinedFile]) -> None:
    """Add the records of a quarantine object to ``files``, by URI and version of the input file.

    Raises ``ValueError``: a record cannot be read; the message says which.
    """
    with path.open("rb") as stream:
        for number, text in enumerate(stream, 1):
            try:
                record = json.loads(text)
                _add(record, files.setdefault((record["source"], record["version"]), QuarantinedFile()))
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"its record {number} cannot be read ({error})") from error


def _add(record: dict[str, Any], file: QuarantinedFile) -> None:
    kind, reason = record["kind"], record["reason"]
    if kind == "file":
        file.whole.append(reason)
    elif kind == "lines":
        file.counted[reason] += record["count"]
    elif record["offset"] in file.lines:
        file.problems.append(f"the quarantine has two records of byte {record['offset']}")
    else:
        body = base64.b64decode(record["line_base64"]) if "line_base64" in record else None
        body = record["line"].encode() if "line" in record else body
        file.lines[record["offset"]] = (record["length"], reason, None if body is None else line_digest(body))
