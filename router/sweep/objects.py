"""Objects of lake and quarantine that no reader may count on: replaced generations, and remains of failed ones."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from lake.layout import parse_generation
from lake.ledger import State
from router.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lake.ledger import ManifestRow
    from router.services import Services


def delete_objects(services: Services, bucket: str, after: str, stop_at: datetime) -> tuple[str, dict[str, int]]:
    """Go through a bucket from the key ``after`` for as long as there is time.

    Each page is listed first and its rows are read afterwards, consistently.

    Returns
    -------
    The key to go on after, empty when the end was reached, and counts: ``deleted`` objects; ``foreign`` ones, which
    this system has not written or whose manifest the ledger does not know, and which are left alone.
    """
    done = {"deleted": 0, "foreign": 0}
    while services.clock() < stop_at:
        page = services.s3.list_objects_v2(Bucket=bucket, StartAfter=after)
        keys = [item["Key"] for item in page.get("Contents", [])]
        deleted, foreign = _page(services, bucket, keys)
        done["deleted"] += deleted
        done["foreign"] += foreign
        if not page["IsTruncated"]:
            return "", done
        after = keys[-1]
    return after, done


def may_delete(row: ManifestRow, generation: int, now: datetime, grace: timedelta) -> bool:
    """Whether an object of ``generation`` may go. Pure; ``row`` was read after the object was seen.

    The generation that readers see stays, whatever else happens to the manifest. Those below it go after the grace
    period, counted from the row's last transition, which is never before the publish. Others go when they cannot be
    published any more. Nothing of a generation that is being worked on ever goes.
    """
    published = None if row.published is None else row.published.generation
    if published is not None and generation <= published:
        return generation < published and now - datetime.fromisoformat(row.changed_at) >= grace
    return generation < row.generation or (generation == row.generation and row.state == State.FAILED)


def _page(services: Services, bucket: str, keys: Sequence[str]) -> tuple[int, int]:
    grace = timedelta(minutes=services.settings.sweep.grace_minutes)
    rows: dict[str, ManifestRow | None] = {}
    deleted = foreign = 0
    for key in keys:
        parsed = parse_generation(key)
        row = None
        if parsed is not None:
            manifest, generation = parsed
            if manifest not in rows:
                rows[manifest] = services.ledger.manifests.get(manifest)
            row = rows[manifest]
        if parsed is None or row is None:
            foreign += 1
            continue
        if may_delete(row, generation, services.clock(), grace):
            services.s3.delete_object(Bucket=bucket, Key=key)
            deleted += 1
            logger.info("object deleted", manifest_id=row.id, key=key, state=row.state, generation=row.generation)
    return deleted, foreign
