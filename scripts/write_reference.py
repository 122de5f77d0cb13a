"""``make reference``: write the pages that are made from declarations.

These are the reference of the settings, docs/settings.md, and the JSON Schemas of ``--json`` in docs/schemas.
"""

import json
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import is_dataclass
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
    StreamDocument,
    Suggestion,
    TablesDocument,
)
from lake.documents import schema_of
from lake.settings import Settings
from lake.settings.declaration import Field, declared, declared_keys
from router.sweep.hours import HourDocument

DOCS = Path(__file__).parents[1] / "docs"
WIDTH = 160
"""Maximum number of characters in a line of a page."""
DOCUMENTS: dict[str, Any] = {
    "catalog suggest": Suggestion,
    "explain": FileExplanation | ObjectExplanation,
    "failures": FailuresDocument,
    "hour": HourDocument,
    "hours": HoursDocument,
    "night": NightDocument,
    "nights": NightsDocument,
    "status": StatusDocument,
    "stream status": StreamDocument,
    "tables": TablesDocument,
}
"""Command -> type of its document with ``--json``; "hour" is the marker of a complete hour."""


def reference() -> dict[Path, str]:
    """Return path -> text of each file."""
    pages = {DOCS / "settings.md": "\n".join(_settings_page())}
    for command, kind in DOCUMENTS.items():
        title = "Marker of a complete hour" if command == "hour" else f"hybrid-router {command} --json"
        page = DOCS / "schemas" / f"{command.replace(' ', '-')}.json"
        pages[page] = json.dumps(schema_of(kind, title), indent=1) + "\n"
    return pages


def _settings_page() -> Iterator[str]:
    yield from ("# Settings", "")
    yield from wrapped(
        "One TOML file for each stage, such as `settings/dev.toml`. A missing key has its default. "
        "`hybrid-router settings check FILE` reports every wrong value of a file and explains the file in words; "
        "`hybrid-router settings explain KEY` prints this page's entry of a key. `make reference` writes this page."
    )
    yield from _keys((key, field) for key, field in declared_keys(Settings) if "." not in key)
    for table in declared(Settings):
        if is_dataclass(table.kind):
            yield from ("", f"## {table.name}", "")
            yield from wrapped(" ".join((table.kind.__doc__ or "").replace("``", "`").split()))
            yield from _keys(declared_keys(table.kind, f"{table.name}."))
    yield ""


def _keys(keys: Iterable[tuple[str, Field]]) -> Iterator[str]:
    yield ""
    for key, field in keys:
        default = "required" if field.required else f"`{json.dumps(field.default)}`"
        values = "; ".join(filter(None, (field.allowed if field.rules else "", field.unit))).replace(
            "a number from ", ""
        )
        meaning = field.meaning.replace("*", r"\*")
        yield from wrapped(f"- `{key}`: {default}{f' ({values})' if values else ''}. {meaning}", "  ")


def wrapped(text: str, indent: str = "") -> list[str]:
    """The lines of a page for a paragraph or list item; lines after the first begin with ``indent``."""
    return textwrap.wrap(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


if __name__ == "__main__":
    for path, text in reference().items():
        path.write_text(text, encoding="utf-8")
