"""Unfinished uploads that no publish can ever complete are aborted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lake.commit import read_commit
from lake.errors import InvalidDocumentError
from lake.layout import parse_generation
from lake.ledger import State
from lake.publish import abort_upload
from router.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from datetime import datetime

    from mypy_boto3_s3.type_defs import MultipartUploadTypeDef

    from lake.ledger import ManifestRow
    from router.services import Services

ENDED = frozenset({State.DONE, State.FAILED, State.SUPERSEDED})


def abort_uploads(services: Services, stop_at: datetime) -> dict[str, int]:
    """``aborted`` uploads belonged to an attempt that can never be committed.

    Each page is listed first and its rows are read afterwards: what the row says then holds for every upload seen.
    """
    aborted = 0
    for bucket in (services.resources.lake_bucket, services.resources.quarantine_bucket):
        for page in _pages(services, bucket, stop_at):
            rows: dict[str, ManifestRow | None] = {}
            named: dict[str, frozenset[str] | None] = {}
            for upload in page:
                parsed = parse_generation(upload["Key"])
                if parsed is None:
                    continue
                manifest, generation = parsed
                if manifest not in rows:
                    row = rows[manifest] = services.ledger.manifests.get(manifest)
                    named[manifest] = None if row is None else _named(services, row)
                row = rows[manifest]
                if row is not None and may_abort(row, generation, upload["UploadId"], named[manifest]):
                    abort_upload(services.s3, bucket, upload["Key"], upload["UploadId"])
                    aborted += 1
                    logger.info("upload aborted", manifest_id=manifest, key=upload["Key"], state=row.state)
    return {"aborted": aborted}


def may_abort(row: ManifestRow, generation: int, upload_id: str, named: Collection[str] | None) -> bool:
    """Whether no publish needs this upload, now or ever. Pure.

    ``row`` was read after the upload was seen. ``named`` are the uploads of its commit document; None: it has none,
    or nobody can read it.
    """
    if row.state in ENDED or generation < row.generation:
        return True
    return row.state == State.PUBLISHING and named is not None and upload_id not in named


def _named(services: Services, row: ManifestRow) -> frozenset[str] | None:
    if row.state != State.PUBLISHING or row.document is None:
        return None
    try:
        document = read_commit(services.s3, services.resources.control_bucket, row.document)
    except InvalidDocumentError:
        return None
    return frozenset(item.upload_id for item in (*document.objects, *document.quarantine))


def _pages(services: Services, bucket: str, stop_at: datetime) -> Iterator[Sequence[MultipartUploadTypeDef]]:
    markers: dict[str, Any] = {}
    while services.clock() < stop_at:
        page = services.s3.list_multipart_uploads(Bucket=bucket, **markers)
        yield page.get("Uploads", [])
        if not page.get("IsTruncated"):
            return
        markers = {"KeyMarker": page["NextKeyMarker"], "UploadIdMarker": page["NextUploadIdMarker"]}
