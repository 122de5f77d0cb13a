"""Permissions: explicit actions only, and a written reason for every resource that ends in a wildcard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aws_cdk import Acknowledgment, Stack, Validations
from aws_cdk import aws_iam as iam

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constructs import Construct, IConstruct


def allow(role: iam.Role, actions: Sequence[str], resources: Sequence[str], why: str = "") -> None:
    """Let ``role`` do ``actions`` (no wildcards) on ``resources``; ``why`` is required where one has a wildcard."""
    for action in actions:
        if "*" in action:
            raise ValueError(f"the action {action} has a wildcard: name the actions")
    statement = iam.PolicyStatement(actions=list(actions), resources=list(resources))
    role.add_to_principal_policy(statement)
    acknowledge_wildcards(role, resources, why)


def acknowledge_wildcards(scope: Construct, resources: Sequence[str], why: str) -> None:
    """Write down why the resources with a wildcard are needed below ``scope``."""
    stack = Stack.of(scope)
    for resource in resources:
        name = _plain(stack.resolve(resource))
        if "*" not in name:
            continue
        if not why:
            raise ValueError(f"the resource {name} has a wildcard: say why")
        acknowledge(scope, f"AwsSolutions-IAM5[Resource::{name}]", why)


def acknowledge(scope: IConstruct, rule: str, why: str) -> None:
    """Accept one finding of cdk-nag below ``scope``, with the reason."""
    Validations.of(scope).acknowledge(Acknowledgment(id=rule, reason=why))


def _plain(value: Any) -> str:  # noqa: ANN401
    """A resolved CloudFormation value in the notation of cdk-nag's finding ids: ``<LogicalId.Arn>/*``."""
    if isinstance(value, str):
        return value
    if "Ref" in value:
        return f"<{value['Ref']}>"
    if "Fn::GetAtt" in value:
        return f"<{'.'.join(value['Fn::GetAtt'])}>"
    if "Fn::Sub" in value:
        return str(value["Fn::Sub"])
    separator, parts = value["Fn::Join"]
    return str(separator).join(_plain(part) for part in parts)
