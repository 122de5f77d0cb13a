"""Intents: the arrivals that an invocation is about to own, in one document of the control bucket.

It is written before the first arrival row, and deleted when every arrival has an owner. What a crashed invocation has
left is in its intent, however old the files are: the sweep takes ownership of them again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lake.documents import encode_document, put_document
from lake.errors import InvalidDocumentError
from lake.layout import intent_key
from lake.manifest import Lane, ObjectVersion, new_manifest_id
from lake.partition import Partition
from lake.time import iso_utc
from router.ownership.draft import RoutedArrival
from router.ownership.outcome import UNANSWERED
from router.telemetry import logger

if TYPE_CHECKING:
    from router.services import Services

INTENT_FORMAT = 1
"""Version of the document's format."""


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
    body = {
        "format": INTENT_FORMAT,
        "recorded_at": iso_utc(now),
        "arrivals": [_encode(arrival) for arrival in arrivals],
        "urgent": [number for number, arrival in enumerate(arrivals) if arrival.urgent],
    }
    put_document(services.s3, services.resources.control_bucket, key, encode_document(body))
    return key


def read_intent(services: Services, key: str) -> Intent:
    """Get an intent.

    Raises
    ------
    InvalidDocumentError
        The body is not an intent that this version can read.
    ClientError
        ``NoSuchKey``, when all of its arrivals have an owner by now, among others.
    """
    body = services.s3.get_object(Bucket=services.resources.control_bucket, Key=key)["Body"].read()
    try:
        data: dict[str, Any] = json.loads(body)
        if data["format"] != INTENT_FORMAT:
            raise ValueError(f"its format is not {INTENT_FORMAT}")
        urgent = set(data["urgent"])
        arrivals = tuple(_decode(item, urgent=number in urgent) for number, item in enumerate(data["arrivals"]))
        return Intent(data["recorded_at"], arrivals)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidDocumentError(
            f"{key} is not a valid intent ({error}): deploy the version that wrote it, or start a backfill of the "
            "files that it names and delete it"
        ) from error


def delete_intent(services: Services, key: str) -> None:
    """Delete an intent whose arrivals all have an owner; an error only leaves it to the sweep."""
    try:
        services.s3.delete_object(Bucket=services.resources.control_bucket, Key=key)
    except UNANSWERED as error:
        logger.warning("intent not deleted: the sweep deletes it", key=key, error=str(error))


def _encode(arrival: RoutedArrival) -> list[object]:
    file = arrival.file
    version = [file.bucket, file.key, file.version_id, file.etag, file.size, file.arrived_at]
    return [*version, str(arrival.partition), arrival.lane, arrival.reason]


def _decode(item: Sequence[Any], *, urgent: bool) -> RoutedArrival:
    bucket, key, version, etag, size, at, partition, lane, reason = item
    file = ObjectVersion(bucket, key, etag, size, at, version)
    return RoutedArrival(file, Partition.parse(partition), Lane(lane), reason, urgent=urgent)
