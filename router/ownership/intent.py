"""Intents: the arrivals that an invocation is about to own, in one document of the control bucket.

It is written before the first arrival row, and deleted when every arrival has an owner. What a crashed invocation has
left is in its intent, however old the files are: the sweep takes ownership of them again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from lake.codec import decode_body, encode_body
from lake.documents import put_document
from lake.layout import intent_key
from lake.manifest import new_manifest_id
from lake.time import iso_utc
from router.ownership.draft import RoutedArrival
from router.ownership.outcome import UNANSWERED
from router.telemetry import logger

if TYPE_CHECKING:
    from router.services import Services


@dataclass(frozen=True, slots=True)
class Intent:
    """What an invocation was about to own."""

    recorded_at: str
    """ISO 8601, UTC."""
    arrivals: tuple[RoutedArrival, ...]


def write_intent(services: Services, arrivals: Sequence[RoutedArrival], now: datetime) -> str:
    """Put the intent under a key that was never used before; returns the key.

    Raises
    ------
    BotoCoreError, ClientError
        It may or may not have been written: no arrival row may be written for it.
    """
    key = intent_key(new_manifest_id(now))
    body = encode_body(Intent(iso_utc(now), tuple(arrivals)))
    put_document(services.s3, services.resources.control_bucket, key, body)
    return key


def read_intent(services: Services, key: str) -> Intent:
    """Get an intent.

    Raises
    ------
    NewerDocumentError
        Another version has written it.
    ClientError
        ``NoSuchKey``, when all of its arrivals have an owner by now, among others.
    """
    body = services.s3.get_object(Bucket=services.resources.control_bucket, Key=key)["Body"].read()
    return decode_body(Intent, body, f"intent {key}")


def delete_intent(services: Services, key: str) -> None:
    """Delete an intent whose arrivals all have an owner; an error only leaves it to the sweep."""
    try:
        services.s3.delete_object(Bucket=services.resources.control_bucket, Key=key)
    except UNANSWERED as error:
        logger.warning("intent not deleted: the sweep deletes it", key=key, error=str(error))
