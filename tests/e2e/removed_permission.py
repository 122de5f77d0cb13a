"""Takes one action away from one role of a deployed stack, and finds the sentences that tell of it."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from local.isolation import AwsClient


@contextmanager
def without(iam: AwsClient, role: str, action: str) -> Iterator[None]:
    """No statement of the role's policies has the action until the block is left."""
    names = iam.list_role_policies(RoleName=role)["PolicyNames"]
    own = {name: _document(iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"]) for name in names}
    assert any(action in _actions(statement) for document in own.values() for statement in document["Statement"])
    try:
        for name, document in own.items():
            _put(iam, role, name, {**document, "Statement": _reduced(document["Statement"], action)})
        yield
    finally:
        for name, document in own.items():
            _put(iam, role, name, document)


def sentences(text: str, role: str, action: str) -> list[str]:
    """Lines that say that the role may not do the action."""
    return [
        line for line in text.splitlines() if f"/{role}/" in line and f"not authorized to perform: {action}" in line
    ]


def role_name(iam: AwsClient, part: str) -> str:
    """The name of the one role whose name has this part."""
    pages = iam.get_paginator("list_roles").paginate()
    (name,) = [role["RoleName"] for page in pages for role in page["Roles"] if part in role["RoleName"]]
    return str(name)


def logs(folder: Path, pattern: str) -> str:
    """The text of the log files that match the pattern."""
    return "\n".join(path.read_text(errors="replace") for path in sorted(folder.glob(pattern)))


def _reduced(statements: list[dict[str, Any]], action: str) -> list[dict[str, Any]]:
    kept = [{**item, "Action": [name for name in _actions(item) if name != action]} for item in statements]
    return [item for item in kept if item["Action"]]


def _actions(statement: dict[str, Any]) -> list[str]:
    value = statement["Action"]
    return [value] if isinstance(value, str) else list(value)


def _document(value: Any) -> dict[str, Any]:
    return json.loads(value) if isinstance(value, str) else value


def _put(iam: AwsClient, role: str, name: str, document: dict[str, Any]) -> None:
    iam.put_role_policy(RoleName=role, PolicyName=name, PolicyDocument=json.dumps(document))
