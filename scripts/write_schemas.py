"""``python -m scripts.write_schemas``: write the JSON Schema of each document of ``--json`` into docs/schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cli.documents import FailuresDocument, FileExplanation, HoursDocument, ObjectExplanation
from cli.json_document import schema_of

FOLDER = Path(__file__).parents[1] / "docs" / "schemas"
DOCUMENTS: dict[str, Any] = {
    "explain": FileExplanation | ObjectExplanation,
    "failures": FailuresDocument,
    "hours": HoursDocument,
}
"""Command -> the type of what it prints with ``--json``."""


def schemas() -> dict[Path, str]:
    """Path of each file -> its text."""
    return {
        FOLDER / f"{command.replace(' ', '-')}.json": json.dumps(
            schema_of(kind, f"hybrid-router {command} --json"), indent=1
        )
        + "\n"
        for command, kind in DOCUMENTS.items()
    }


if __name__ == "__main__":
    for path, text in schemas().items():
        path.write_text(text, encoding="utf-8")
