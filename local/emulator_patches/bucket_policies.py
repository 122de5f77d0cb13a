"""S3: the explicit denies of a bucket policy hold for the account's root too, whom the emulator lets pass."""

from __future__ import annotations

from typing import Any

from local.emulator_patches import EmulatorValue


def patch() -> None:
    from ministack.core.iam_actions import _s3_action, s3_service_context  # type: ignore[import-untyped]  # noqa: PLC0415
    from ministack.core.iam_evaluator import (  # type: ignore[import-untyped]  # noqa: PLC0415
        EvalContext,
        evaluate_resource_policy,
    )
    from ministack.core.responses import get_account_id, get_region  # type: ignore[import-untyped]  # noqa: PLC0415
    from ministack.services import s3  # type: ignore[import-untyped]  # noqa: PLC0415

    original = s3._dispatch

    def dispatch(
        method: str, bucket: str, key: str, headers: dict[str, str], body: bytes, query_params: dict[str, Any]
    ) -> EmulatorValue:
        policy = s3._bucket_policies.get(bucket)
        # Who may change the policy could otherwise not take back a deny of everything.
        if policy is None or "policy" in query_params:
            return original(method, bucket, key, headers, body, query_params)
        path = f"/{bucket}/{key}" if key else f"/{bucket}"
        action = f"s3:{_s3_action(method, path, query_params)}"
        account = get_account_id()
        context = EvalContext(
            principal_arn=f"arn:aws:iam::{account}:root",
            principal_type="Root",
            principal_account=account,
            action=action,
            resource_arn=f"arn:aws:s3:::{path.removeprefix('/')}",
            region=get_region(),
            # The emulator is reached over loopback only; on AWS these requests would be encrypted.
            secure_transport=True,
            service_context=s3_service_context(action, query_params, path, headers),
        )
        if evaluate_resource_policy(policy, context).decision == "Deny":
            return s3._error("AccessDenied", "Access Denied", 403, path)
        return original(method, bucket, key, headers, body, query_params)

    s3._dispatch = dispatch
