"""Objects of lake and quarantine that are not published: replaced generations, and remains of failed ones."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from lake.layout import is_complete_marker, is_own_key, parse_generation
from lake.ledger import State
from router.sweep.progress import read_progress, write_progress
from router.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lake.ledger import ManifestRow
    from router.sweep.repair import Repair


def delete_objects(repair: Repair, bucket: str, listing: str) -> None:
    """Delete unpublished objects of a bucket, from where the last sweep stopped; the position is kept after each page.

    Rows are read consistently after the page that lists their objects. Counts ``deleted`` and ``foreign`` objects.
    Foreign objects are kept: this system has not written them under this key, or the ledger does not know
    their manifest.

    Parameters
    ----------
    listing
        Name under which the position is kept.
    """
    services = repair.services
    after = str(read_progress(services, listing).get("after", ""))
    while not repair.expired:
        page = services.s3.list_objects_v2(Bucket=bucket, StartAfter=after)
        keys = [item["Key"] for item in page.get("Contents", [])]
        seen = _delete_from_page(repair, bucket, keys)
        is_end = seen == len(keys) and not page["IsTruncated"]
        position = "" if is_end else keys[seen - 1] if seen else after
        if position != after and not repair.dry_run:
            write_progress(services, listing, {"after": position})
        if is_end:
            return
        after = position


def may_delete(row: ManifestRow, generation: int, now: datetime, grace: timedelta) -> bool:
    """Whether an object of ``generation`` may be deleted. Pure; ``row`` was read after the object was listed.

    The published generation is kept, whatever the state of the manifest. Earlier generations are deleted ``grace``
    after the row's last transition, which is not before the publish. Other generations are deleted once they can never
    be published. A generation that is being worked on is kept.
    """
    published = None if row.published is None else row.published.generation
    if published is not None and generation <= published:
        return generation < published and now - datetime.fromisoformat(row.changed_at) >= grace
    return generation < row.generation or (generation == row.generation and row.state == State.FAILED)


def _delete_from_page(repair: Repair, bucket: str, keys: Sequence[str]) -> int:
    """Number of keys, from the first one, that were looked at before the time was over."""
    services = repair.services
    rows: dict[str, ManifestRow | None] = {}
    for number, key in enumerate(keys):
        # At least one: the position moves on with every page.
        if number and repair.expired:
            return number
        with repair.isolated("object", bucket=bucket, key=key):
            if is_complete_marker(key):
                continue
            parsed = parse_generation(key)
            if parsed is not None and parsed[0] not in rows:
                rows[parsed[0]] = services.ledger.manifests.get(parsed[0])
            row = None if parsed is None else rows[parsed[0]]
            if parsed is None or row is None or not is_own_key(key, row.partition, *parsed):
                repair.counts["foreign"] += 1
            elif may_delete(row, parsed[1], services.clock(), _grace(repair)):
                if repair.only_counts("deleted", f"s3://{bucket}/{key}"):
                    continue
                services.s3.delete_object(Bucket=bucket, Key=key)
                repair.counts["deleted"] += 1
                logger.info("object deleted", manifest_id=row.id, key=key, state=row.state, generation=row.generation)
    return len(keys)


def _grace(repair: Repair) -> timedelta:
    return timedelta(minutes=repair.services.settings.sweep.grace_minutes)
