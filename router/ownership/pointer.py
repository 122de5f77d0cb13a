"""The stream's inbox: one-line pointers to manifests, a hint that the ledger confirms."""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING

from lake.layout import pointer_key

if TYPE_CHECKING:
    from router.services import Services


def write_pointer(services: Services, manifest: str) -> None:
    """Put a pointer to a manifest, under a name never used before."""
    services.s3.put_object(
        Bucket=services.resources.control_bucket,
        Key=pointer_key(manifest, secrets.token_hex(8)),
        Body=json.dumps({"manifest": manifest}).encode() + b"\n",
        ContentType="application/json",
    )
