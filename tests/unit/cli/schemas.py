"""The JSON Schemas of the documents that commands print."""

import json
from typing import Any

import jsonschema  # type: ignore[import-untyped]

from lake.documents import to_json
from tests.unit.docs.pages import CHECKOUT


def valid_json(command: str, document: object) -> dict[str, Any]:
    """What ``hybrid-router <command> --json`` prints of a document, which is as its schema says."""
    schema = json.loads((CHECKOUT / "docs" / "schemas" / f"{command}.json").read_text(encoding="utf-8"))
    body: dict[str, Any] = to_json(document)
    jsonschema.validate(body, schema, cls=jsonschema.Draft202012Validator)
    return body
