"""``python -m scripts.write_schemas``: write the JSON Schema of each document of ``--json`` into docs/schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cli.documents import (
    FailuresDocument,
    FileExplanation,
    HoursDocument,
    NightDocument,
    NightsDocument,
    ObjectExplanation,
    StatusDocument,
    Suggestion,
)
from lake.json_document import schema_of
from router.sweep.hour_marker import HourDocument

FOLDER = Path(__file__).parents[1] / "docs" / "schemas"
DOCUMENTS: dict[str, Any] = {
    "catalog suggest": Suggestion,
    "explain": FileExplanation | ObjectExplanation,
    "failures": FailuresDocument,
    "hour": HourDocument,
    "hours": HoursDocument,
    "night": NightDocument,
    "nights": NightsDocument,
    "status": StatusDocument,
}
"""Command -> the type of what it prints with ``--json``; "hour" is the marker of a complete hour."""


def schemas() -> dict[Path, str]:
    """Path of each file -> its text."""
    return {FOLDER / f"{command.replace(' ', '-')}.json": _text(command, kind) for command, kind in DOCUMENTS.items()}


def _text(command: str, kind: Any) -> str:  # noqa: ANN401
    title = "Marker of a complete hour" if command == "hour" else f"hybrid-router {command} --json"
    return json.dumps(schema_of(kind, title), indent=1) + "\n"


if __name__ == "__main__":
    for path, text in schemas().items():
        path.write_text(text, encoding="utf-8")
