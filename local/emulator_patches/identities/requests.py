"""Requests over HTTP that the emulator evaluates differently from AWS."""

import contextvars
import json
import re
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

from ministack import app  # type: ignore[import-untyped]
from ministack.core import iam_actions, iam_evaluator  # type: ignore[import-untyped]
from ministack.services import s3  # type: ignore[import-untyped]

from local.emulator_patches import EmulatorValue, Original, wrap

_CLIENT_ERRORS = frozenset({"dynamodb", "glue", "states"})
"""AWS JSON protocol 1.0 and 1.1: these services answer every error of the caller with 400."""
KEY_HEADER = "x-amz-server-side-encryption-aws-kms-key-id"
"""Names the KMS key of an object, in a request and in the emulator's record of the object."""
_TABLE_ACTIONS = frozenset({"glue:GetTable", "glue:CreateTable", "glue:UpdateTable", "glue:DeleteTable"})

_catalog_arns: contextvars.ContextVar[tuple[str, ...]] = contextvars.ContextVar("catalog_arns", default=())
_refused: contextvars.ContextVar[str] = contextvars.ContextVar("refused", default="*")
"""The resource of the refusal: a table, or a key if the request is for an object or an item."""


def patch() -> None:
    # Plain HTTP on loopback counts as TLS: every bucket, queue and topic denies other transport.
    iam_evaluator._request_origin = contextvars.ContextVar("request_origin", default=("127.0.0.1", True))
    app.pin_request_origin = iam_evaluator.pin_request_origin = pin_request_origin
    wrap(iam_actions, "access_denied_response", _access_denied_response)
    wrap(iam_actions, "s3_additional_checks", _additional_checks)
    wrap(iam_actions, "_s3_object_context", _object_context)
    wrap(iam_actions, "extract_resource_arn", _extract_resource_arn)
    wrap(iam_evaluator, "enforce", _enforce)
    wrap(iam_evaluator, "_fnmatch_compile", _fnmatch_compile)


def pin_request_origin(address: str, _tls: bool) -> None:
    iam_evaluator._request_origin.set((address, True))


def _access_denied_response(
    original: Original, service: str, action: str, principal: str, request_id: str, **options: EmulatorValue
) -> EmulatorValue:
    """Refusals have AWS's status and a request id, name the resource, and leave a line in the emulator's log."""
    resource = _refused.get()
    if not options.get("error_code") and not options.get("resource_policy_arn"):
        explicit = options.get("explicit_deny", False)
        options["message"] = iam_actions.identity_denial_message(action, principal, resource, explicit)
    status, headers, body = original(service, action, principal, request_id, **options)
    headers["x-amzn-requestid"] = request_id
    log_refusal(principal or "an unknown access key", f"{action} on {resource}")
    return 400 if service in _CLIENT_ERRORS else status, headers, body


def log_refusal(who: str, what: str) -> None:
    print(f"refused: {who}: {what}", file=sys.stderr, flush=True)


def _additional_checks(original: Original, *request: EmulatorValue) -> list[tuple[str, str]]:
    """Without s3:ListBucket, a missing object is "access denied", not "no such key"."""
    method, path, *_ = request
    asked: list[tuple[str, str]] = original(*request)
    bucket, _, key = path.lstrip("/").partition("/")
    found = s3._buckets.get(bucket)
    if method in ("GET", "HEAD") and key and found is not None and key not in found["objects"]:
        asked.append(("s3:ListBucket", f"arn:aws:s3:::{bucket}"))
    return asked


def _object_context(original: Original, *request: EmulatorValue) -> dict[str, EmulatorValue]:
    """A policy can depend on the KMS key that a new object or upload names."""
    action, _query, _path, headers = request
    context: dict[str, EmulatorValue] = original(*request)
    if action == "s3:PutObject" and KEY_HEADER in headers:
        context[f"s3:{KEY_HEADER}"] = headers[KEY_HEADER]
    return context


def _fnmatch_compile(original: Original, pattern: str, ignore_case: bool) -> re.Pattern[str]:
    """An asterisk matches any characters, including newlines, which a key can have."""
    found: re.Pattern[str] = original(pattern, ignore_case)
    return re.compile(found.pattern, found.flags | re.DOTALL)


def _extract_resource_arn(original: Original, service: str, *request: EmulatorValue) -> str:
    _method, _path, _headers, body, *_ = request
    arn: str = original(service, *request)
    _catalog_arns.set(_table_arns(arn, body) if service == "glue" else ())
    return arn


def _enforce(
    original: Original, access_key: str, action: str, service: str, region: str, **options: EmulatorValue
) -> EmulatorValue:
    """A call for a table needs rights on the catalog, the database and the table; the emulator only checks the
    database. A batch of SQS needs the right for a single request; batches have no own right.

    Sources: AWS Glue Developer Guide, "Specifying AWS Glue resource ARNs"; Amazon SQS Developer Guide, "Amazon SQS API
    permissions: Actions and resource reference".
    """
    if service == "sqs":
        action = action.removesuffix("Batch")
    own = options.get("resource_arn", "*")
    for arn in (*(_catalog_arns.get() if action in _TABLE_ACTIONS else ()), own):
        if denied := original(access_key, action, service, region, **{**options, "resource_arn": arn}):
            _refused.set(arn)
            return denied
    return None


def _table_arns(database_arn: str, body: bytes) -> tuple[str, ...]:
    prefix, _, database = database_arn.partition(":database/")
    request: Mapping[str, EmulatorValue] = json.loads(body or b"{}")
    table = request.get("Name") or (request.get("TableInput") or {}).get("Name")
    if not database or not table:
        return ()
    return f"{prefix}:catalog", f"{prefix}:table/{database}/{table}"


def record_uses(file: Path) -> None:
    """Write a line to ``file`` once for each combination of role, action and the statement that allowed it."""
    seen: set[tuple[str, ...]] = set()
    lock = threading.Lock()

    def recorded(
        original: Original, asked: EmulatorValue, policies: EmulatorValue, *limits: EmulatorValue
    ) -> EmulatorValue:
        result = original(asked, policies, *limits)
        if result.decision == "Allow" and ":assumed-role/" in asked.principal_arn:
            role = asked.principal_arn.split("/")[1]
            statements = [statement for statements in policies for statement in statements]
            resources = tuple(iam_evaluator._first_match(asked, statements, "Allow").resources)
            use = (role, asked.action, *resources)
            with lock:
                if use not in seen:
                    seen.add(use)
                    with file.open("a") as lines:
                        lines.write(json.dumps({"role": role, "action": asked.action, "resources": resources}) + "\n")
        return result

    wrap(iam_evaluator, "evaluate", recorded)
