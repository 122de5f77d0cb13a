"""The output of commands, for a person and for a program, and its JSON Schemas."""

import json
from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from cli.commands import Answer
from lake.documents import to_json
from tests.unit.docs.pages import CHECKOUT

Printed = Callable[..., str]
Answered = Callable[..., Any]


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Printed:
    """Call a command with these arguments and return what it prints; ``code`` is the expected exit code."""

    def call(command: Callable[..., Answer | int | None], *given: Any, code: int | None = None, **options: Any) -> str:
        capsys.readouterr()
        answer = command(*given, **options)
        ended = answer.print(as_json=False) if isinstance(answer, Answer) else answer
        assert code is None or ended == code
        return capsys.readouterr().out

    return call


@pytest.fixture
def answered(printed: Printed) -> Answered:
    """Call a command as ``printed`` does, with ``--json``; return its document, checked against its schema."""

    def call(command: Callable[..., Any], *given: Any, schema: str | None = None, **options: Any) -> Any:
        printing = command if "as_json" in signature(command).parameters else partial(_print_document, command)
        document = json.loads(printed(printing, *given, **options, as_json=True))
        return document if schema is None else valid_json(schema, document)

    return call


def _print_document(command: Callable[..., Answer], *given: Any, as_json: bool, **options: Any) -> int:
    return command(*given, **options).print(as_json=as_json)


def valid_json(command: str, document: object) -> dict[str, Any]:
    """The output of ``hybrid-router <command> --json`` for a document, checked by its schema."""
    schema = json.loads((CHECKOUT / "docs" / "schemas" / f"{command}.json").read_text(encoding="utf-8"))
    body: dict[str, Any] = to_json(document)
    jsonschema.validate(body, schema, cls=jsonschema.Draft202012Validator)
    return body
