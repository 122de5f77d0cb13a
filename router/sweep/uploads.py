"""Multipart uploads that no publish can ever complete are aborted."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from lake.commit import read_commit
from lake.errors import UnusableDocumentError
from lake.layout import PREFLIGHT, is_own_key, parse_generation
from lake.ledger import ManifestRow, State
from lake.publish import abort_upload
from router.telemetry import logger

if TYPE_CHECKING:
    from mypy_boto3_s3.type_defs import MultipartUploadTypeDef

    from router.services import Services
    from router.sweep.repair import Repair

UNPUBLISHABLE = frozenset({State.DONE, State.FAILED, State.SUPERSEDED})


def abort_uploads(repair: Repair) -> None:
    """Abort uploads of attempts that can never be published; counts them as ``aborted``.

    Rows are read consistently after the page that lists their uploads, so they hold for every listed upload.
    """
    services = repair.services
    for bucket in services.resources.output_buckets:
        for page in _pages(repair, bucket):
            rows: dict[str, ManifestRow | None] = {}
            committed: dict[str, frozenset[str] | None] = {}
            for upload in page:
                if repair.expired:
                    return
                if upload["Key"].startswith(f"{PREFLIGHT}/"):
                    # Never completed, and the run that lost its answer does not know it.
                    with repair.isolated("upload", key=upload["Key"]):
                        if repair.only_counts("aborted", f"s3://{bucket}/{upload['Key']}"):
                            continue
                        abort_upload(services.s3, bucket, upload["Key"], upload["UploadId"])
                        repair.counts["aborted"] += 1
                    continue
                parsed = parse_generation(upload["Key"])
                if parsed is None:
                    continue
                manifest, generation = parsed
                with repair.isolated("upload", manifest_id=manifest, key=upload["Key"]):
                    if manifest not in rows:
                        row = services.ledger.manifests.get(manifest)
                        committed[manifest] = None if row is None else _committed_uploads(services, row)
                        rows[manifest] = row
                    row = rows[manifest]
                    if row is None or not is_own_key(upload["Key"], row.partition, manifest, generation):
                        continue
                    if may_abort(row, generation, upload["UploadId"], committed[manifest]):
                        if repair.only_counts("aborted", f"s3://{bucket}/{upload['Key']}"):
                            continue
                        abort_upload(services.s3, bucket, upload["Key"], upload["UploadId"])
                        repair.counts["aborted"] += 1
                        logger.info("upload aborted", manifest_id=manifest, key=upload["Key"], state=row.state)


def may_abort(row: ManifestRow, generation: int, upload_id: str, committed: Collection[str] | None) -> bool:
    """Whether no publish can ever need this upload. Pure.

    ``row`` was read after the upload was listed. ``committed`` are the ids in its commit document; None: there is no
    document, or it cannot be read.
    """
    if row.state in UNPUBLISHABLE or generation < row.generation:
        return True
    return row.state == State.PUBLISHING and committed is not None and upload_id not in committed


def _committed_uploads(services: Services, row: ManifestRow) -> frozenset[str] | None:
    if row.state != State.PUBLISHING or row.document is None:
        return None
    try:
        document = read_commit(services.s3, services.resources.control_bucket, row.document)
    except UnusableDocumentError as error:
        logger.warning("uploads kept, their commit document cannot be used", manifest_id=row.id, reason=str(error))
        return None
    return frozenset(item.upload_id for item in (*document.objects, *document.quarantine))


def _pages(repair: Repair, bucket: str) -> Iterator[Sequence[MultipartUploadTypeDef]]:
    markers: dict[str, Any] = {}
    while not repair.expired:
        page = repair.services.s3.list_multipart_uploads(Bucket=bucket, **markers)
        yield page.get("Uploads", [])
        if not page.get("IsTruncated"):
            return
        markers = {"KeyMarker": page["NextKeyMarker"], "UploadIdMarker": page["NextUploadIdMarker"]}
