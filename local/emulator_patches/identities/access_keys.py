"""Access keys: only those that this cloud gave out are accepted, and a role's are given to whom it trusts."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping

from ministack.core import iam_evaluator, lambda_runtime  # type: ignore[import-untyped]
from ministack.services import sts  # type: ignore[import-untyped]

from local.emulator_patches import EmulatorValue
from local.emulator_patches.identities.roles import check_trust
from local.isolation import ACCOUNT, AccessKey

_sessions: dict[tuple[str, str], AccessKey] = {}
_lock = threading.Lock()


def patch() -> None:
    root = os.environ["AWS_ACCESS_KEY_ID"]

    def is_root_access_key(access_key_id: str) -> bool:
        return access_key_id == root

    def execution_credentials(config: Mapping[str, EmulatorValue]) -> dict[str, str]:
        key = session_key(config["Role"], "lambda.amazonaws.com", config["FunctionName"][:64])
        return {"AWS_SESSION_TOKEN": "", **key.environment}

    iam_evaluator.is_root_access_key = sts.is_root_access_key = is_root_access_key
    lambda_runtime.execution_credentials = execution_credentials


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
