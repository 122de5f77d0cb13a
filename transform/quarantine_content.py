"""What a written quarantine file holds, read back from the disk: the audit compares it with what was rejected."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lake.errors import AuditError

QuarantinedThing = tuple[str, str, str, str]
"""``"line"`` or ``"file"``, URI and version of the file, reason."""


@dataclass(frozen=True, slots=True)
class QuarantineContent:
    """Counts of one quarantine file."""

    size: int
    """Bytes."""
    records: int
    counts: Mapping[QuarantinedThing, int]
    """Rejected lines and whole files; a record of kind ``lines`` counts as many as it says."""


def read_back(path: Path) -> QuarantineContent:
    """Count the records of a file.

    Raises
    ------
    AuditError
        A record cannot be read.
    """
    counts: Counter[QuarantinedThing] = Counter()
    size = records = 0
    with path.open("rb") as file:
        for line in file:
            size += len(line)
            records += 1
            try:
                record = json.loads(line)
                kind = "file" if record["kind"] == "file" else "line"
                # One text for all records of a file: what is sent to the driver names each file once.
                source, version = sys.intern(record["source"]), sys.intern(record["version"])
                counts[kind, source, version, record["reason"]] += record.get("count", 1)
            except (ValueError, KeyError, TypeError) as error:
                raise AuditError(
                    f"record {records} of {path.name} in the quarantine cannot be read ({error}): "
                    "the attempt is discarded, and the manifest is tried again"
                ) from error
    return QuarantineContent(size, records, counts)
