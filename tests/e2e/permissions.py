"""Permissions that roles have and used while a local cloud ran; and one action removed from a role for a while."""

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from local.isolation import AwsClient

MADE_BY_CLOUDFORMATION = re.compile(r"-[0-9A-Fa-f]{12,13}\b")
HASH_OF_CDK = re.compile(r"[0-9A-F]{8}$")


@dataclass(frozen=True, order=True, slots=True)
class Permission:
    """One action of one statement of a role; its names are the same for two stacks."""

    role: str
    action: str
    resources: tuple[str, ...]


OTHER_USES: set[Permission] = set()
"""Permissions that were used on other clouds than the common one; their folders are removed at their end."""


def granted(iam: AwsClient, stack: str) -> set[Permission]:
    """The permissions in the policies of the stack's roles."""
    names = [role["RoleName"] for page in iam.get_paginator("list_roles").paginate() for role in page["Roles"]]
    return {
        Permission(_role(name, stack), action, _resources(statement["Resource"], stack))
        for name in names
        if name.startswith(f"{stack}-")
        for document in (*_documents(iam, name).values(), *_attached(iam, name))
        for statement in document["Statement"]
        if statement["Effect"] == "Allow"
        for action in _listed(statement["Action"])
    }


def used(record: Path, stack: str) -> set[Permission]:
    """The permissions that the stack's roles used, from the record of a local cloud."""
    uses = map(json.loads, record.read_text().splitlines())
    return {
        Permission(_role(use["role"], stack), use["action"], _resources(use["resources"], stack))
        for use in uses
        if use["role"].startswith(f"{stack}-")
    }


def collect(logs: Path, stack: str) -> None:
    """Add the permissions that the stack's roles have used so far, on another cloud than the common one."""
    record = logs / "permissions.jsonl"
    if record.is_file():
        OTHER_USES.update(used(record, stack))


def never_used(grants: Iterable[Permission], uses: Iterable[Permission]) -> set[tuple[str, str]]:
    """Role and action of each unused grant."""
    known = {(use.role, use.resources, use.action) for use in uses}

    def is_used(grant: Permission) -> bool:
        statement = (grant.role, grant.resources)
        return any(item[:2] == statement and fnmatchcase(item[2], grant.action) for item in known)

    return {(grant.role, grant.action) for grant in grants if not is_used(grant)}


def _documents(iam: AwsClient, role: str) -> dict[str, Any]:
    """The policies of a role, by name."""
    names = iam.list_role_policies(RoleName=role)["PolicyNames"]
    documents: dict[str, Any] = {
        name: iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"] for name in names
    }
    return {name: json.loads(value) if isinstance(value, str) else value for name, value in documents.items()}


def _attached(iam: AwsClient, role: str) -> Iterator[dict[str, Any]]:
    """The managed policies of a role, without AWS's own."""
    arns = [policy["PolicyArn"] for policy in iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"]]
    for arn in arns:
        if not arn.startswith("arn:aws:iam::aws:"):
            version = iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]
            yield iam.get_policy_version(PolicyArn=arn, VersionId=version)["PolicyVersion"]["Document"]


def _listed(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _role(name: str, stack: str) -> str:
    return HASH_OF_CDK.sub("", MADE_BY_CLOUDFORMATION.sub("", name.removeprefix(f"{stack}-")))


def _resources(value: Any, stack: str) -> tuple[str, ...]:
    return tuple(sorted(MADE_BY_CLOUDFORMATION.sub("", item.replace(stack, "stack")) for item in _listed(value)))


@contextmanager
def without(iam: AwsClient, role: str, action: str) -> Iterator[None]:
    """Remove the action from the role's policies inside the block."""
    own = _documents(iam, role)
    assert any(
        action in _listed(statement["Action"]) for document in own.values() for statement in document["Statement"]
    )
    try:
        for name, document in own.items():
            _put(iam, role, name, {**document, "Statement": _reduced(document["Statement"], action)})
        yield
    finally:
        for name, document in own.items():
            _put(iam, role, name, document)


def sentences(text: str, role: str, action: str) -> list[str]:
    """Lines that report that the role may not perform the action."""
    return [
        line for line in text.splitlines() if f"/{role}/" in line and f"not authorized to perform: {action}" in line
    ]


def role_name(iam: AwsClient, part: str) -> str:
    """The name of the only role of the tests' stack whose name has this part; the cloud may have other stacks."""
    names = [role["RoleName"] for page in iam.get_paginator("list_roles").paginate() for role in page["Roles"]]
    (name,) = [name for name in names if name.startswith("hybrid-router-e2e-") and part in name]
    return str(name)


def logs(folder: Path, pattern: str) -> str:
    """The text of the log files that match the pattern."""
    return "\n".join(path.read_text(errors="replace") for path in sorted(folder.glob(pattern)))


def _reduced(statements: list[dict[str, Any]], action: str) -> list[dict[str, Any]]:
    kept = [{**item, "Action": [name for name in _listed(item["Action"]) if name != action]} for item in statements]
    return [item for item in kept if item["Action"]]


def _put(iam: AwsClient, role: str, name: str, document: dict[str, Any]) -> None:
    iam.put_role_policy(RoleName=role, PolicyName=name, PolicyDocument=json.dumps(document))
