"""Lambda function ``resubmit``: gives repaired lines of the quarantine back to their hour, as rows, exactly once."""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from lake.aws_types import S3Client
from lake.documents import decode_body, get_document
from lake.errors import InvalidInputError, OwnershipError
from lake.layout import resubmission_key, resubmitted_lines_key
from lake.ledger import Ledger, ResubmissionRow, State
from lake.manifest import Identity, Lane, ObjectVersion, is_manifest_id
from lake.manifest_documents import MAX_LINES, Resubmission, read_resubmission
from lake.texts import format_count
from lake.time import iso_utc
from router.entry import lambda_handler
from router.ownership.owner import RoutedArrival
from router.ownership.resolve import OWNER_GRACE, write_intent
from router.ownership.take import ArrivalOutcome, take_ownership
from router.requests.reprocess import LINES_RESUBMITTED
from router.requests.selection import parse_fields
from router.services import Services
from router.telemetry import logger

EXAMPLE = '{"resubmission": "<name>"}, as \'hybrid-router quarantine retry <file>\' does'
EXPORT_AGAIN = "export the lines again with 'hybrid-router quarantine export <new file>'"
REASON = "repaired lines of the quarantine wait for the overnight run"


def resubmit(event: Mapping[str, Any], services: Services) -> dict[str, Any]:
    """Record a resubmission, whose document and lines are in the control bucket, and own its file.

    Order of the writes: the intent, which names the file; the row, after which no other resubmission can have one of
    its lines; then ownership, as for every arrival. Idempotent: a repetition completes what is left. Raises
    ``InvalidInputError`` if the event is not valid, or the lines may not be resubmitted; ``InvalidDocumentError`` if
    its document, or an earlier one, is gone; ``OwnershipError`` if a request had no answer: a repetition or the sweep
    completes it.
    """
    name = parse_fields(event, ("resubmission",), "resubmit", EXAMPLE).get("resubmission")
    if not isinstance(name, str) or not is_manifest_id(name):
        raise InvalidInputError(f"resubmission = {name!r} is not a valid name: pass {EXAMPLE}")
    body = get_document(services.s3, services.resources.control_bucket, resubmission_key(name))
    resubmission = decode_body(Resubmission, body, "resubmission")
    if resubmission.name != name:
        raise InvalidInputError(f"resubmission {name} has the document of {resubmission.name}: run the command again")
    row, intent = _record(services, resubmission, hashlib.sha256(body).hexdigest())
    ownership = take_ownership(services, [_arrival(row)], {}, intent=intent)
    if ownership.outcomes[Identity.of(row.file)] not in (ArrivalOutcome.OWNED, ArrivalOutcome.DUPLICATE):
        minutes = OWNER_GRACE // timedelta(minutes=1)
        raise OwnershipError(
            f"the lines of resubmission {name} have no manifest yet: the sweep completes it, or run the same command "
            f"again in {minutes} minutes, when its first try is presumed dead"
        )
    messages = []
    try:
        # Checked again after the row is recorded: a reprocess that began earlier has found no row, and gave no warning.
        _check_still_rejected(services.ledger, resubmission)
    except InvalidInputError:
        messages.append(f"{row.partition} is converted again; {LINES_RESUBMITTED}")
    logger.info("resubmitted", resubmission=name, partition=str(row.partition), lines=row.lines, messages=messages)
    return {"resubmission": name, "partition": str(row.partition), "lines": row.lines, "messages": messages}


handler = lambda_handler(resubmit, answers_refusals=True)
"""``{"resubmission": name}`` -> ``{"resubmission", "partition", "lines", "messages"}``."""


def _record(services: Services, resubmission: Resubmission, sha256: str) -> tuple[ResubmissionRow, str | None]:
    """The row of the resubmission, and the key of the intent that was written for it, or None if the row existed.

    If another resubmission takes the number of the row first, the sweep deletes the intent.
    """
    resubmissions, control = services.ledger.resubmissions, services.resources.control_bucket
    earlier = resubmissions.of(resubmission.partition)
    known = next((row for row in earlier if row.name == resubmission.name), None)
    if known is not None:
        return known, None
    check_resubmission(services.s3, services.ledger, control, resubmission, earlier)
    key = resubmitted_lines_key(resubmission.name)
    head = services.s3.head_object(Bucket=control, Key=key)
    # Identified by its ETag even if the bucket keeps versions: the jobs may read documents only by their keys.
    file = ObjectVersion.of(control, key, head["ETag"], head["ContentLength"], head["LastModified"], None)
    now = iso_utc(services.clock())
    row = ResubmissionRow(resubmission.name, resubmission.partition, file, sha256, resubmission.lines, now)
    intent = write_intent(services, [_arrival(row)], services.clock())
    if not resubmissions.record(row, len(earlier)):
        raise OwnershipError(f"another resubmission of {row.partition} came first: run the same command again")
    return row, intent


def _arrival(row: ResubmissionRow) -> RoutedArrival:
    return RoutedArrival(row.file, row.partition, Lane.BATCH, REASON)


def check_resubmission(
    s3: S3Client, ledger: Ledger, control_bucket: str, resubmission: Resubmission, earlier: Sequence[ResubmissionRow]
) -> None:
    """Compare a resubmission with the ledger. ``earlier`` are all resubmissions that are recorded for its hour.

    Memory holds its own lines and those of one earlier resubmission. Raises ``InvalidInputError`` if it has no line,
    too many lines or one twice, or if a line is no longer in the quarantine or was resubmitted before;
    ``InvalidDocumentError`` if the document of an earlier one is gone or was changed.
    """
    lines = set(resubmission.identities())
    if not 0 < len(lines) <= MAX_LINES or len(lines) != resubmission.lines:
        raise InvalidInputError(
            f"a resubmission takes 1 to {MAX_LINES:,} lines, each once, not {resubmission.lines:,}: pass fewer lines"
        )
    _check_still_rejected(ledger, resubmission)
    for row in earlier:
        common = lines.intersection(read_resubmission(s3, control_bucket, row).identities())
        if common:
            source, _, offset = min(common)
            raise InvalidInputError(
                f"{format_count(len(common), 'line was', 'lines were')} resubmitted before, by resubmission {row.name} "
                f"of {row.recorded_at}; the first is at byte {offset} of {source}: run 'hybrid-router quarantine "
                "retry <file>' again, it leaves out resubmitted lines"
            )


def _check_still_rejected(ledger: Ledger, resubmission: Resubmission) -> None:
    """Raise ``InvalidInputError`` unless each rejecting generation is the published one of a DONE manifest."""
    for manifest, generation in sorted({(item.manifest, item.generation) for item in resubmission.rejected}):
        row = ledger.manifests.get(manifest)
        if row is None or row.partition != resubmission.partition:
            raise InvalidInputError(f"manifest {manifest} is not one of {resubmission.partition}: {EXPORT_AGAIN}")
        if row.state != State.DONE or row.published is None or row.published.generation != generation:
            raise InvalidInputError(
                f"the rejected lines of manifest {manifest}, which is {row.state}, no longer match the export: "
                f"when it is DONE, {EXPORT_AGAIN}"
            )


def is_recorded(services: Services, arrival: RoutedArrival) -> bool:
    """Whether an arrival of an intent may be owned; lines of a resubmission only after it is recorded.

    When the sweep resumes an intent, the function that wrote it has ended. A resubmission without a row was refused or
    interrupted, and its caller knows that.
    """
    if arrival.file.bucket != services.resources.control_bucket:
        return True
    recorded = services.ledger.resubmissions.of(arrival.partition)
    return any(row.file == arrival.file for row in recorded)
