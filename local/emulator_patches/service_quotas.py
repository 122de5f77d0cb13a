"""Service Quotas, which the emulator lacks: the local cloud's quotas of Glue, as the account's values."""

import json
from pathlib import Path
from typing import Any

from local.emulator_patches import EmulatorValue, add_service
from local.isolation import ACCOUNT, REGION
from local.limits import Limits

_GLUE_QUOTAS = {"L-08F3B322": "glue_dpus", "L-5E4153CA": "glue_runs"}
"""Quota code to the name of its limit in ``local.limits``."""


def patch(state: Path) -> None:
    """Apply the patches of this file; ``state``: the folder of the cloud."""

    async def handle(*request: EmulatorValue) -> EmulatorValue:
        _method, _path, headers, body, _query = request
        asked = json.loads(body)
        name = _GLUE_QUOTAS.get(asked.get("QuotaCode", "")) if asked.get("ServiceCode") == "glue" else None
        known = name is not None and headers.get("x-amz-target", "").endswith("ServiceQuota")
        status, answer = (200, _answer(asked, getattr(Limits.read(state), name))) if name and known else (400, _UNKNOWN)
        return status, {"Content-Type": "application/x-amz-json-1.1"}, json.dumps(answer).encode()

    add_service("servicequotas", handle, lambda *_request: "*", target_prefixes=["ServiceQuotasV20190624"])


_UNKNOWN = {"__type": "NoSuchResourceException", "Message": "The local cloud keeps no such quota."}


def _answer(asked: dict[str, Any], value: float) -> dict[str, Any]:
    code = asked["QuotaCode"]
    arn = f"arn:aws:servicequotas:{REGION}:{ACCOUNT}:glue/{code}"
    return {"Quota": {"ServiceCode": "glue", "QuotaCode": code, "QuotaArn": arn, "Value": float(value)}}
