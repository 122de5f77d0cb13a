"""The output of commands, for a person and for a program, and its JSON Schemas."""

import json
from collections.abc import Callable
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from lake.documents import to_json
from tests.unit.docs.pages import CHECKOUT

Printed = Callable[..., str]
Answered = Callable[..., Any]


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Printed:
    """Call a command with these arguments and return what it prints; ``code`` is the expected exit code."""

    def call(command: Callable[..., int | None], *given: Any, code: int | None = None, **options: Any) -> str:
        capsys.readouterr()
        ended = command(*given, **options)
        assert code is None or ended == code
        return capsys.readouterr().out

    return call


@pytest.fixture
def answered(printed: Printed) -> Answered:
    """Call a command as ``printed`` does, with ``--json``; return its document, checked against its schema."""

    def call(*given: Any, schema: str | None = None, **options: Any) -> Any:
        document = json.loads(printed(*given, **options, as_json=True))
        return document if schema is None else valid_json(schema, document)

    return call


def valid_json(command: str, document: object) -> dict[str, Any]:
    """The output of ``hybrid-router <command> --json`` for a document, checked by its schema."""
    schema = json.loads((CHECKOUT / "docs" / "schemas" / f"{command}.json").read_text(encoding="utf-8"))
    body: dict[str, Any] = to_json(document)
    jsonschema.validate(body, schema, cls=jsonschema.Draft202012Validator)
    return body
