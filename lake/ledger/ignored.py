"""How many files were IGNORED, by reason: arrival rows are not listed, so each reason has a row that counts them.

The numbers are for people. A lost answer or a crash between the arrival rows and the count can make them differ.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from typing import TYPE_CHECKING

from lake.ledger.arrivals import EXPIRY
from lake.ledger.table import Condition, Key, RefusedError
from lake.time import iso_utc

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from lake.ledger.table import LedgerTable
    from lake.manifest import ObjectVersion

IGNORED_FILES = "ignored-files"
REMEMBERED = timedelta(days=30)
"""How long after its last file a reason is listed."""
MAX_GROUPS = 1_000
"""Maximum number of reasons that are read."""


@dataclass(frozen=True, slots=True)
class IgnoredGroup:
    """Files that were IGNORED for one reason and that nothing has taken since."""

    reason: str
    files: int
    bytes: int
    example: str
    """URI of the last one."""
    since: str
    """When the first one was recorded; ISO 8601, UTC."""


class IgnoredFiles:
    """Counts and lists them."""

    def __init__(self, table: LedgerTable) -> None:
        self._table = table

    def add(self, reason: str, files: Sequence[ObjectVersion], now: datetime) -> None:
        """Count files that were recorded as IGNORED."""
        last = {"reason": reason, "example": files[-1].uri, EXPIRY: int((now + REMEMBERED).timestamp())}
        counts = {"files": len(files), "bytes": sum(file.size for file in files)}
        key, since = _key(reason), {"since": iso_utc(now)}
        try:
            self._table.update(key, assign=last | since, add=counts, conditions=[Condition("since", "missing")])
        except RefusedError:
            self._table.update(key, assign=last, add=counts)

    def take_back(self, reason: str, file: ObjectVersion) -> None:
        """Count no longer a file that has an owner now."""
        with suppress(RefusedError):
            counts = {"files": -1, "bytes": -file.size}
            self._table.update(_key(reason), add=counts, conditions=[Condition("files", ">", 0)])

    def groups(self) -> tuple[list[IgnoredGroup], bool]:
        """The reasons with files, the most files first; and whether all reasons were read."""
        items = list(islice(self._table.query(IGNORED_FILES), MAX_GROUPS + 1))
        groups = [
            IgnoredGroup(item["reason"], item["files"], item["bytes"], item["example"], item["since"])
            for item in items[:MAX_GROUPS]
            if item["files"] > 0
        ]
        return sorted(groups, key=lambda group: (-group.files, group.reason)), len(items) <= MAX_GROUPS


def _key(reason: str) -> Key:
    return Key(IGNORED_FILES, hashlib.sha256(reason.encode("utf-8", "surrogateescape")).hexdigest()[:32])
