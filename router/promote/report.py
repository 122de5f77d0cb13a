"""What a promote has done: counts of files, and sentences for people."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection

    from lake.manifest import ObjectVersion

MAX_MESSAGES = 100
COUNTS = ("promoted", "inStream", "tooLate", "notMoved", "ignored", "notRouted", "unknown", "manifests")
"""Of object versions by what became of them; ``unknown`` of names; ``manifests`` are new ones of the stream lane."""


@dataclass(slots=True)
class Report:
    """Collects both."""

    counts: Counter[str] = field(default_factory=Counter)
    messages: list[str] = field(default_factory=list)

    def add(self, name: str, number: int, message: str) -> None:
        """So many files came to this."""
        self.counts[name] += number
        self.messages.append(message)

    def answer(self, *, dry_run: bool) -> dict[str, Any]:
        """As the function returns it; of very many sentences only the first."""
        counts = {name: self.counts[name] for name in COUNTS}
        omitted = max(len(self.messages) - MAX_MESSAGES, 0)
        return {"dryRun": dry_run, **counts, "messages": self.messages[:MAX_MESSAGES], "omitted": omitted}


def format_files(files: Collection[ObjectVersion]) -> str:
    """``s3://bucket/key is``, or ``3 files (first: s3://bucket/key) are``."""
    first = min(file.uri for file in files)
    return f"{first} is" if len(files) == 1 else f"{len(files):,} files (first: {first}) are"
