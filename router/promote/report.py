"""The answer of ``promote``: counts of files, and messages for people."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lake.counted import format_count

if TYPE_CHECKING:
    from collections.abc import Collection

    from lake.manifest import ObjectVersion

MAX_MESSAGES = 100
"""Maximum number of messages in the answer."""
COUNTS = ("promoted", "inStream", "tooLate", "notMoved", "ignored", "notRouted", "unknown", "manifests")
"""Object versions by outcome; ``unknown`` counts requested URIs, ``manifests`` new manifests of the stream lane."""


@dataclass(slots=True)
class PromotionReport:
    """Collects counts and messages of one invocation."""

    counts: Counter[str] = field(default_factory=Counter)
    messages: list[str] = field(default_factory=list)

    def add(self, name: str, number: int, message: str) -> None:
        """Add ``number`` to the count ``name``, and a message about them."""
        self.counts[name] += number
        self.messages.append(message)

    def answer(self, *, dry_run: bool) -> dict[str, Any]:
        """As the function returns it: the first ``MAX_MESSAGES`` messages, and the number of ``omitted`` ones."""
        counts = {name: self.counts[name] for name in COUNTS}
        omitted = max(len(self.messages) - MAX_MESSAGES, 0)
        return {"dryRun": dry_run, **counts, "messages": self.messages[:MAX_MESSAGES], "omitted": omitted}


def format_files(files: Collection[ObjectVersion]) -> str:
    """Subject and verb of a message: ``s3://bucket/key is``, or ``3 files (first: s3://bucket/key) are``."""
    first = min(file.uri for file in files)
    return f"{first} is" if len(files) == 1 else f"{format_count(len(files), 'file')} (first: {first}) are"
