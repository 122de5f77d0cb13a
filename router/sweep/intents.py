"""Intents of crashed invocations: ownership of their arrivals is taken again, however old the files are."""

from __future__ import annotations

from datetime import datetime

from lake.layout import INTENTS
from router.ownership import OWNER_GRACE, ArrivalOutcome, read_intent, take_ownership
from router.requests.resubmit import is_recorded
from router.sweep.repair import Repair, read_progress, write_progress
from router.telemetry import logger

LISTING = "intents"


def resume_intents(repair: Repair) -> None:
    """Repeat intents that are older than ``OWNER_GRACE``; counts arrivals that got an owner as ``resumed``.

    The position is kept after each intent, so that one whose arrivals stay UNSETTLED never holds back those after it.
    """
    services = repair.services
    after = str(read_progress(services, LISTING).get("after", ""))
    while not repair.expired:
        page = services.s3.list_objects_v2(Bucket=services.resources.control_bucket, Prefix=INTENTS, StartAfter=after)
        is_end = not page["IsTruncated"]
        for item in page.get("Contents", []):
            if repair.expired:
                return
            is_young = False
            with repair.isolated("intent", key=item["Key"]):
                is_young = not _resume(repair, item["Key"])
            # Keys sort by age: what follows is younger.
            if is_young:
                is_end = True
                break
            after = item["Key"]
            if repair.dry_run:
                continue
            write_progress(services, LISTING, {"after": after})
        if is_end:
            if after and not repair.dry_run:
                write_progress(services, LISTING, {"after": ""})
            return


def _resume(repair: Repair, key: str) -> bool:
    """Take ownership again; False: the invocation that wrote the intent may still be alive."""
    services = repair.services
    try:
        intent = read_intent(services, key)
    except services.s3.exceptions.NoSuchKey:
        return True
    if services.clock() - datetime.fromisoformat(intent.recorded_at) <= OWNER_GRACE:
        return False
    arrivals = [arrival for arrival in intent.arrivals if is_recorded(services, arrival)]
    if repair.dry_run:
        for arrival in arrivals:
            row = services.ledger.arrivals.get(arrival.file)
            if row is None or row.manifest is None or services.ledger.manifests.get(row.manifest) is None:
                repair.only_counts("resumed", arrival.file.uri)
        return True
    ownership = take_ownership(services, arrivals, {}, skip_known=True, intent=key)
    repair.counts["resumed"] += ownership.count(ArrivalOutcome.OWNED)
    logger.warning(
        "intent resumed",
        key=key,
        recorded_at=intent.recorded_at,
        outcomes={outcome: ownership.count(outcome) for outcome in ArrivalOutcome},
    )
    return True
