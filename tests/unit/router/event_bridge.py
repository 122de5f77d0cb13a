"""An EventBridge in memory."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass
class FakeEventBridge:
    """Accepts events, or refuses them."""

    sent: list[dict[str, Any]] = field(default_factory=list)
    refuses: bool = False

    def put_events(self, **request: Sequence[Mapping[str, str]]) -> dict[str, Any]:
        if self.refuses:
            return {"FailedEntryCount": 1, "Entries": [{"ErrorMessage": "it is busy"}]}
        self.sent += [dict(entry) for entry in request["Entries"]]
        return {"FailedEntryCount": 0, "Entries": [{"EventId": "e"}]}

    @property
    def announced(self) -> list[tuple[str, int, int]]:
        """Detail type, revision and rows of each event."""
        details = [(entry["DetailType"], json.loads(entry["Detail"])) for entry in self.sent]
        return [(kind.removeprefix("Dataset Hour "), detail["revision"], detail["rows"]) for kind, detail in details]
