"""What the roles of a deployed stack are granted, and what of it was used while a local cloud ran."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from local.isolation import AwsClient

MADE_BY_CLOUDFORMATION = re.compile(r"-[0-9A-Fa-f]{12,13}\b")
HASH_OF_CDK = re.compile(r"[0-9A-F]{8}$")


@dataclass(frozen=True, order=True, slots=True)
class Permission:
    """One action of one statement of a role; names are free of what differs between two stacks."""

    role: str
    action: str
    resources: tuple[str, ...]


def granted(iam: AwsClient, stack: str) -> set[Permission]:
    """What the policies of the stack's roles allow."""
    names = [role["RoleName"] for page in iam.get_paginator("list_roles").paginate() for role in page["Roles"]]
    return {
        Permission(_role(name, stack), action, _resources(statement["Resource"], stack))
        for name in names
        if name.startswith(f"{stack}-")
        for statement in _statements(iam, name)
        if statement["Effect"] == "Allow"
        for action in _listed(statement["Action"])
    }


def used(record: Path, stack: str) -> set[Permission]:
    """What the stack's roles used, from the record of a local cloud."""
    uses = map(json.loads, record.read_text().splitlines())
    return {
        Permission(_role(use["role"], stack), use["action"], _resources(use["resources"], stack))
        for use in uses
        if use["role"].startswith(f"{stack}-")
    }


def never_used(grants: Iterable[Permission], uses: Iterable[Permission]) -> set[tuple[str, str]]:
    """Role and action of each grant that no use belongs to."""
    known = {(use.role, use.resources, use.action) for use in uses}

    def is_used(grant: Permission) -> bool:
        statement = (grant.role, grant.resources)
        return any(item[:2] == statement and fnmatchcase(item[2], grant.action) for item in known)

    return {(grant.role, grant.action) for grant in grants if not is_used(grant)}


def _statements(iam: AwsClient, role: str) -> Iterator[dict[str, Any]]:
    for policy in iam.list_role_policies(RoleName=role)["PolicyNames"]:
        document = iam.get_role_policy(RoleName=role, PolicyName=policy)["PolicyDocument"]
        yield from (json.loads(document) if isinstance(document, str) else document)["Statement"]


def _listed(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _role(name: str, stack: str) -> str:
    return HASH_OF_CDK.sub("", MADE_BY_CLOUDFORMATION.sub("", name.removeprefix(f"{stack}-")))


def _resources(value: Any, stack: str) -> tuple[str, ...]:
    return tuple(sorted(MADE_BY_CLOUDFORMATION.sub("", item.replace(stack, "stack")) for item in _listed(value)))
