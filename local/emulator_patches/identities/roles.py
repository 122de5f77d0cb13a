"""Roles: whom they trust, what they may do, and their access keys.

Only access keys that this cloud gave out are accepted, and a role's are given to whom it trusts.
"""

import dataclasses
import os
import threading
from collections.abc import Mapping

from ministack.core import iam_actions, iam_evaluator, lambda_runtime  # type: ignore[import-untyped]
from ministack.services import iam, sts  # type: ignore[import-untyped]

from local.emulator_patches import EmulatorValue, Original, wrap
from local.emulator_patches.identities.encryption_keys import needed
from local.errors import NotAllowedError
from local.isolation import ACCOUNT, REGION, AccessKey


def check_trust(role_arn: str, service: str, keys: Mapping[str, str]) -> str:
    """The role's name, if its trust policy lets ``service`` assume it; ``keys``: condition keys in lower case.

    Raises ``NotAllowedError``: the role does not exist, or does not trust the service.
    """
    name = role_arn.rpartition("/")[2]
    role = iam._roles.get_scoped(ACCOUNT, None, name)
    document = (role or {}).get("AssumeRolePolicyDocument") or {}
    asked = iam_evaluator.EvalContext(
        "", "Service", ACCOUNT, "sts:AssumeRole", role_arn, REGION, service_context=dict(keys)
    )
    if iam_evaluator.evaluate_resource_policy(document, asked, service=service).decision != "Allow":
        raise NotAllowedError(f"{service} is not authorized to assume the role {role_arn}")
    return name


def check_role(role_arn: str, service: str, action: str, resource: str, keys: Mapping[str, str] | None = None) -> None:
    """Check a call that the emulator makes in its own process for ``service`` with a role.

    Raises ``NotAllowedError``: the service may not assume the role, or the role may not do ``action`` on ``resource``
    or use the resource's KMS key; with AWS's sentence.
    """
    name = check_trust(role_arn, service, keys or {})
    for asked_action, asked_resource, context in ((action, resource, dict(keys or {})), *needed(action, resource)):
        _check_policies(name, service, asked_action, asked_resource, context)


def _check_policies(name: str, service: str, action: str, resource: str, keys: dict[str, str]) -> None:
    principal = f"arn:aws:sts::{ACCOUNT}:assumed-role/{name}/{service.partition('.')[0]}"
    asked = iam_evaluator.EvalContext(principal, "AssumedRole", ACCOUNT, action, resource, REGION, service_context=keys)
    result = iam_evaluator.evaluate(asked, iam_evaluator._gather_role_policies(name, ACCOUNT))
    own = iam_evaluator._resource_policy(action.partition(":")[0], resource)
    if own is not None:
        # A key's policy has to allow even what a role's policies do.
        result = iam_evaluator.combine_resource_policy(result, asked, *own, required=action.startswith("kms:"))
    if result.decision != "Allow":
        explicit = result.decision == "Deny"
        raise NotAllowedError(iam_actions.identity_denial_message(action, principal, resource, explicit))


_sessions: dict[tuple[str, str], AccessKey] = {}
_lock = threading.Lock()


def patch() -> None:
    iam_evaluator.is_root_access_key = sts.is_root_access_key = is_root_access_key
    wrap(iam_evaluator, "resolve_principal", _resolve_principal)
    lambda_runtime.execution_credentials = execution_credentials


def is_root_access_key(access_key_id: str) -> bool:
    return access_key_id == os.environ["AWS_ACCESS_KEY_ID"]


def _resolve_principal(original: Original, *args: EmulatorValue, **options: EmulatorValue) -> EmulatorValue:
    """The owner of the account may do everything, except what the policy of a resource denies."""
    found = original(*args, **options)
    if not isinstance(found, iam_evaluator.PrincipalInfo) or found.policies is not None:
        return found
    everything = {"Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}}
    return dataclasses.replace(found, policies=[iam_evaluator.parse_policy_document(everything)])


def execution_credentials(config: Mapping[str, EmulatorValue]) -> dict[str, str]:
    key = session_key(config["Role"], "lambda.amazonaws.com", config["FunctionName"][:64])
    return {"AWS_SESSION_TOKEN": "", **key.environment}


def session_key(role_arn: str, service: str, session: str) -> AccessKey:
    """Temporary credentials of the role for ``service``; the same for the same session.

    Raises ``NotAllowedError``: the role does not trust the service.
    """
    name = check_trust(role_arn, service, {"aws:sourceaccount": ACCOUNT})
    with _lock:
        if (role_arn, session) in _sessions:
            return _sessions[role_arn, session]
        key = _sessions[role_arn, session] = AccessKey.random("ASIA")
    sts.register_session(
        key.id,
        {
            "Arn": f"arn:aws:sts::{ACCOUNT}:assumed-role/{name}/{session}",
            "UserId": f"{name}:{session}",
            "SecretAccessKey": key.secret,
            "SessionToken": key.session_token,
        },
    )
    return key
