"""The JSON Schemas of the documents that commands print."""

from __future__ import annotations

import json
from typing import Any

import jsonschema  # type: ignore[import-untyped]

from tests.unit.docs.pages import CHECKOUT


def assert_valid(command: str, document: dict[str, Any]) -> None:
    """The document of ``hybrid-router <command> --json`` is as its schema says."""
    schema = json.loads((CHECKOUT / "docs" / "schemas" / f"{command}.json").read_text(encoding="utf-8"))
    jsonschema.validate(document, schema, cls=jsonschema.Draft202012Validator)
