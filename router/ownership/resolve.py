"""Arrivals that already have a row: duplicates, or arrivals to adopt because nothing else will convert them.

An intent is a document of the control bucket with the arrivals that an invocation is about to own. It is written before
the first arrival row and deleted when every arrival has an owner. If the invocation crashes, the sweep takes ownership
of the arrivals in its intent, however old the files are.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from lake.documents import decode_body, encode_body, get_body, parse_document, put_document
from lake.layout import intent_key
from lake.ledger import ArrivalRow, Ledger, ManifestRow, State
from lake.manifest import Identity, ObjectVersion, Partition, new_manifest_id
from lake.time import iso_utc
from router.ownership.owner import UNANSWERED, RoutedArrival
from router.services import Services, read_many
from router.telemetry import logger

OWNER_GRACE = timedelta(minutes=5)
"""Time after which an owner without a row of its manifest is presumed dead.

It is longer than a call of ``take_ownership`` usually takes: ``route`` and ``backfill`` time out earlier. A sweep may
run longer, but each of its calls owns one page of a listing or one intent, and reads the clock at its start. A wrong
presumption costs only duplicate work: the live owner is refused its QUEUED row, and the arrivals have been
adopted.
"""


def resolve_owners(
    services: Services,
    owned_elsewhere: Iterable[ArrivalRow],
    offered: Mapping[Identity, RoutedArrival],
    now: datetime,
) -> tuple[list[RoutedArrival], list[tuple[ObjectVersion, ManifestRow | None]]]:
    """Arrivals to adopt, and duplicates with their owner, which is None if the arrival is IGNORED as before.

    An arrival is adopted if its owner is ABANDONED, or if it was IGNORED and a rule routes it today. ``offered`` has
    the arrivals that are routed today. If an owner may still be alive, its arrivals are in neither result.
    """
    orphans: list[RoutedArrival] = []
    duplicates: list[tuple[ObjectVersion, ManifestRow | None]] = []
    owners: dict[str, ManifestRow | None] = {}
    for row in owned_elsewhere:
        arrival = offered.get(Identity.of(row.file))
        if row.manifest is None:
            if arrival is None:
                duplicates.append((row.file, None))
            else:
                # In today's lane and partition, because the IGNORED row has none.
                partition = Partition.of(arrival.partition.dataset, datetime.fromisoformat(row.file.arrived_at))
                reason = f"{arrival.reason} (was IGNORED: {row.reason})"
                orphans.append(RoutedArrival(row.file, partition, arrival.lane, reason, row, arrival.urgent))
            continue
        try:
            owner = _owner(services.ledger, owners, row, now)
        except UNANSWERED as error:
            logger.warning("no answer about an owner", uri=row.file.uri, manifest_id=row.manifest, error=str(error))
            continue
        if owner is not None and owner.state == State.ABANDONED:
            # With the lane and partition of its first owner, but with today's urgency.
            assert row.partition is not None
            assert row.lane is not None
            reason, urgent = f"{row.reason} (adopted from {row.manifest})", arrival is not None and arrival.urgent
            orphans.append(RoutedArrival(row.file, row.partition, row.lane, reason, row, urgent))
        elif owner is not None:
            duplicates.append((row.file, owner))
    return orphans, duplicates


def _owner(ledger: Ledger, owners: dict[str, ManifestRow | None], row: ArrivalRow, now: datetime) -> ManifestRow | None:
    """The owner's row, set ABANDONED if the owner is presumed dead; None if the owner may still be alive."""
    assert row.manifest is not None
    if row.manifest not in owners:
        owners[row.manifest] = ledger.manifests.get(row.manifest)
    if owners[row.manifest] is None and now - datetime.fromisoformat(row.recorded_at) > OWNER_GRACE:
        owners[row.manifest] = ledger.manifests.abandon(row.manifest, now)
    return owners[row.manifest]


def without_known(ledger: Ledger, arrivals: Sequence[RoutedArrival]) -> list[RoutedArrival]:
    """The arrivals that need a decision or a write; all others are duplicates.

    An arrival stays if it has no row, if it is IGNORED, or if its owner does not exist, is ABANDONED or has a damaged
    row. Raises ``BotoCoreError`` or ``ClientError``.
    """
    rows = read_many(ledger.arrivals.get_many, [arrival.file for arrival in arrivals])
    owners = list({row.manifest for row in rows if row is not None and row.manifest is not None})
    found = read_many(partial(ledger.manifests.get_many, on_damage=lambda _: None), owners)
    alive = {row.id for row in found if row is not None and row.state != State.ABANDONED}
    return [arrival for arrival, row in zip(arrivals, rows, strict=True) if row is None or row.manifest not in alive]


@dataclass(frozen=True, slots=True)
class Intent:
    """The arrivals that an invocation was about to own."""

    recorded_at: str
    arrivals: tuple[RoutedArrival, ...]


def write_intent(services: Services, arrivals: Sequence[RoutedArrival], now: datetime) -> str:
    """Put the intent under a new key; returns the key.

    Raises ``BotoCoreError`` or ``ClientError``: the intent may or may not have been written, so the caller must write
    no arrival row for it.
    """
    key = intent_key(new_manifest_id(now))
    body = encode_body(Intent(iso_utc(now), tuple(arrivals)))
    put_document(services.s3, services.resources.control_bucket, key, body)
    return key


def read_intent(services: Services, key: str) -> Intent:
    """Get an intent.

    Raises ``NewerDocumentError`` if another version wrote it; ``InvalidDocumentError`` if it is damaged;
    ``ClientError``, for example ``NoSuchKey`` if all of its arrivals have an owner by now.
    """
    bucket = services.resources.control_bucket
    body = get_body(services.s3, bucket, key)
    parse_document(body, f"s3://{bucket}/{key}", "format")
    return decode_body(Intent, body, f"intent {key}")


def delete_intent(services: Services, key: str) -> None:
    """Delete an intent whose arrivals all have an owner. After an error, which is logged, the sweep deletes it."""
    try:
        services.s3.delete_object(Bucket=services.resources.control_bucket, Key=key)
    except UNANSWERED as error:
        logger.warning("intent not deleted: the sweep deletes it", key=key, error=str(error))
