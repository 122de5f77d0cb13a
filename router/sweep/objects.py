"""Objects of lake and quarantine that are not published: replaced generations, and remains of failed ones."""

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
    """Delete unpublished objects of a bucket, from the key ``after`` on until ``stop_at``.

    Rows are read consistently after the page that lists their objects.

    Returns
    -------
    The key to continue after, empty at the end of the bucket; and counts of ``deleted`` and of ``foreign`` objects.
    Foreign objects are kept: this system has not written them, or the ledger does not know their manifest.
    """
    counts = {"deleted": 0, "foreign": 0}
    while services.clock() < stop_at:
        page = services.s3.list_objects_v2(Bucket=bucket, StartAfter=after)
        keys = [item["Key"] for item in page.get("Contents", [])]
        deleted, foreign = _delete_from_page(services, bucket, keys)
        counts["deleted"] += deleted
        counts["foreign"] += foreign
        if not page["IsTruncated"]:
            return "", counts
        after = keys[-1]
    return after, counts


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


def _delete_from_page(services: Services, bucket: str, keys: Sequence[str]) -> tuple[int, int]:
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
