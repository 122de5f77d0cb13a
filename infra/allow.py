"""Permissions: explicit actions only, and a written reason for every resource with a wildcard."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from aws_cdk import Acknowledgment, Stack, Validations
from aws_cdk import aws_iam as iam
from constructs import Construct, IConstruct


def create_role(scope: Construct, service: str) -> iam.Role:
    """Create the role of a service, such as ``states``, which assumes it only for the stack's account."""
    conditions = {"StringEquals": {"aws:SourceAccount": Stack.of(scope).account}}
    return iam.Role(scope, "Role", assumed_by=iam.ServicePrincipal(f"{service}.amazonaws.com", conditions=conditions))


def allow(
    role: iam.Role,
    actions: Sequence[str],
    resources: Sequence[str],
    reason: str = "",
    conditions: Mapping[str, Any] | None = None,
    apart: str = "",
) -> None:
    """Let ``role`` do ``actions`` on ``resources``.

    ``actions``: IAM actions such as ``s3:GetObject``, without wildcards. ``reason``: why a resource needs its wildcard;
    required for a wildcard, and recorded for cdk-nag. ``conditions``: the statement's: operator -> condition key ->
    values; by default S3's bucket must belong to the stack's account. ``apart``: id of a managed policy that has only
    this statement. Raises ``ValueError`` if an action or, without a reason, a resource has a wildcard.
    """
    for action in actions:
        if "*" in action:
            raise ValueError(f"the action {action} has a wildcard: name the actions")
    if actions[0].startswith("s3:"):
        # The ARN of a bucket has no account: another account can recreate a deleted bucket.
        conditions = {"StringEquals": {"aws:ResourceAccount": Stack.of(role).account}}
    statement = iam.PolicyStatement(actions=list(actions), resources=list(resources), conditions=conditions)
    if apart:
        iam.ManagedPolicy(role, apart, statements=[statement], roles=[role])
    else:
        role.add_to_principal_policy(statement)
    for resource in resources:
        name = _nag_notation(Stack.of(role).resolve(resource))
        if "*" in name and not reason:
            raise ValueError(f"the resource {name} has a wildcard: pass the reason")
        if "*" in name:
            acknowledge_finding(role, f"AwsSolutions-IAM5[Resource::{name}]", reason)


def key_pattern(prefix: str) -> str:
    """Return the pattern of keys that begin with ``prefix``, for a resource of a policy.

    It has ``?`` where IAM would see a wildcard or a variable, and where CDK changes or refuses the id of a finding
    (spaces, brackets); and ``*`` for characters above Latin-1, which IAM refuses in a policy (API Reference,
    PutRolePolicy).
    """
    return re.sub(r"[^ -\xff]+", "*", re.sub(r"[*$ (){}\[\]]", "?", prefix)) + "*"


def acknowledge_finding(scope: IConstruct, finding: str, reason: str) -> None:
    """Accept one finding of cdk-nag for ``scope`` and what it contains, with the reason.

    ``finding`` is a rule's id (``AwsSolutions-L1``), for rules of one resource with the detail that cdk-nag prints.
    """
    Validations.of(scope).acknowledge(Acknowledgment(id=finding, reason=reason))


def _nag_notation(value: Any) -> str:  # noqa: ANN401
    """Return a resolved CloudFormation value in the notation of cdk-nag's finding ids: ``<LogicalId.Arn>/*``."""
    if isinstance(value, str):
        return value
    if "Ref" in value:
        return f"<{value['Ref']}>"
    if "Fn::GetAtt" in value:
        return f"<{'.'.join(value['Fn::GetAtt'])}>"
    if "Fn::Sub" in value:
        return str(value["Fn::Sub"]).replace("${", "<").replace("}", ">")
    separator, parts = value["Fn::Join"]
    return str(separator).join(_nag_notation(part) for part in parts)
