"""Pointers to manifests in the inboxes of the stream lane: one JSON line each, a hint that the ledger confirms."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from lake.documents import encode_document, put_document
from lake.layout import pointer_key

if TYPE_CHECKING:
    from router.services import Services


def write_pointer(services: Services, manifest: str, *, urgent: bool) -> None:
    """Put one more pointer to a manifest into the inbox of its shard, under a key that was never used before.

    An urgent one has a prefix of its own, so that the streaming job finds it without listing the others.

    Raises
    ------
    BotoCoreError, ClientError
        The pointer may or may not have been written.
    """
    shard = services.settings.shards.of(manifest)
    key = pointer_key(manifest, secrets.token_hex(8), urgent=urgent, shard=shard)
    # Spark's text source reads lines.
    put_document(services.s3, services.resources.control_bucket, key, encode_document({"manifest": manifest}) + b"\n")
