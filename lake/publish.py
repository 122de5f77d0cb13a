"""Publishing: all steps after the commit point. They need only the commit document; idempotent, by any process."""

from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

from botocore.exceptions import ClientError

from lake.aws_types import S3Client
from lake.commit import WHOLE_OBJECT, PendingObject, read_commit, totals_of, write_result
from lake.errors import InvalidDocumentError, TransientError, UploadsVanishedError
from lake.faults import error_code, suppress_codes
from lake.layout import lake_prefix, list_objects
from lake.ledger import Ledger, ManifestRow
from lake.ledger.manifest_row import State
from lake.settings.lanes import MAX_COLUMN_LIMIT
from lake.texts import advise_reprocess, format_count

PARALLEL_COMPLETIONS = 16
INVALID_PART = "InvalidPart"
NO_UPLOAD = "NoSuchUpload"
"""S3's error code for an upload that was completed or aborted."""
NO_OBJECT = "404"
"""S3's error code for HeadObject of a missing object: this answer has no body."""


def roll_forward(
    s3: S3Client,
    ledger: Ledger,
    control_bucket: str,
    row: ManifestRow,
    clock: Callable[[], datetime],
    buckets: Collection[str],
    *,
    has_table: bool = False,
) -> State:
    """Publish a PUBLISHING manifest and set it DONE; returns the state that the manifest has afterwards.

    Idempotent: it needs no lease, and several processes may run it at the same time, after a crash at any point.
    ``has_table``: the dataset has an Iceberg table, and the generation is listed for it before it becomes DONE.

    If uploads have vanished, or the document is not the committed one, the manifest becomes FAILED with the reason. Its
    uploads are found by their key prefix in ``buckets``, which are lake and quarantine. The order is always abort,
    FAILED, delete: after the aborts no process can complete an upload, and only the process whose
    FAILED the ledger accepted knows that no other process has published the objects.

    Raises ``NewerDocumentError`` if a newer version committed it: nothing is changed, and that version publishes it.
    """
    assert row.state == State.PUBLISHING
    assert row.document is not None
    try:
        document = read_commit(s3, control_bucket, row.document)
        etags = complete_all(s3, (*document.objects, *document.quarantine))
    except (InvalidDocumentError, UploadsVanishedError) as error:
        # A process that has read the committed document either has completed the uploads or finds none to complete.
        roll_back(s3, ledger, row, buckets, f"{error}; {advise_reprocess(row.id)}", clock())
        return ledger.manifests.current(row.id).state
    # They were reserved before the commit, but a command that drops columns may have crashed before it restored them. A
    # refused column is in the files all the same: nothing after the commit point may fail because of data.
    ledger.datasets.reserve_columns(row.partition.dataset, document.new_columns, MAX_COLUMN_LIMIT)
    write_result(s3, control_bucket, document, etags, clock())
    if has_table:
        ledger.tables.list_generation(row.partition.dataset, row.id, row.generation, clock())
    if ledger.manifests.finish(row, totals_of(document, etags), clock()):
        return State.DONE
    return ledger.manifests.current(row.id).state


def complete_all(s3: S3Client, objects: Iterable[PendingObject]) -> dict[tuple[str, str], str]:
    """Complete every upload; idempotent. Returns a map from (bucket, key) to the object's ETag.

    Raises ``UploadsVanishedError`` if neither an upload nor its completed object exists.
    """
    items = list(objects)
    with ThreadPoolExecutor(PARALLEL_COMPLETIONS) as pool:
        etags = list(pool.map(lambda item: _complete(s3, item), items))
    missing = [item.key for item, etag in zip(items, etags, strict=True) if etag is None]
    if missing:
        raise UploadsVanishedError(
            f"{format_count(len(missing), 'upload')} disappeared before completion (first: {missing[0]}): "
            "aborted, older than the bucket's lifecycle rule allows, or replaced by other content"
        )
    return {(item.bucket, item.key): etag for item, etag in zip(items, etags, strict=True) if etag is not None}


def roll_back(
    s3: S3Client, ledger: Ledger, row: ManifestRow, buckets: Collection[str], reason: str, now: datetime
) -> None:
    """Abort every upload of the generation, set the PUBLISHING manifest FAILED, then delete every object; idempotent.

    If the ledger refuses FAILED, nothing is deleted: a slow process may have published the objects meanwhile. After a
    crash before the deletion, the sweep deletes the objects of the FAILED generation.
    """
    prefix = lake_prefix(row.partition, row.id, row.generation)
    for bucket in buckets:
        abort_under_prefix(s3, bucket, prefix)
    if ledger.manifests.fail(row, reason, now):
        objects = ((bucket, item["Key"]) for bucket in buckets for item in list_objects(s3, bucket, prefix))
        with ThreadPoolExecutor(PARALLEL_COMPLETIONS) as pool:
            list(pool.map(lambda item: s3.delete_object(Bucket=item[0], Key=item[1]), objects))


def abort_upload(s3: S3Client, bucket: str, key: str, upload_id: str) -> None:
    """Abort an upload if it exists. Raises botocore's other errors."""
    with suppress_codes(NO_UPLOAD):
        s3.abort_multipart_upload(Bucket=bucket, Key=key, UploadId=upload_id)


def abort_under_prefix(s3: S3Client, bucket: str, prefix: str) -> None:
    pages = s3.get_paginator("list_multipart_uploads").paginate(Bucket=bucket, Prefix=prefix)
    uploads = (upload for page in pages for upload in page.get("Uploads", []))
    with ThreadPoolExecutor(PARALLEL_COMPLETIONS) as pool:
        list(pool.map(lambda upload: abort_upload(s3, bucket, upload["Key"], upload["UploadId"]), uploads))


def _complete(s3: S3Client, item: PendingObject) -> str | None:
    """The ETag of the completed object; None if neither the upload, as it was committed, nor the object exists.

    Raises ``TransientError`` if S3 answered with success but has not completed the upload.
    """
    accepted = False
    with suppress_codes(NO_UPLOAD):
        accepted = _complete_part(s3, item)
    # S3 answers 200 or "no such upload" for the id of a completed upload: only the object proves the completion.
    try:
        head = s3.head_object(Bucket=item.bucket, Key=item.key, ChecksumMode="ENABLED")
    except ClientError as error:
        if error_code(error) != NO_OBJECT:
            raise
        # S3 sends the status 200 before it has completed the upload, and the rest of the answer can be lost.
        if accepted and _part_etag(s3, item):
            raise TransientError(f"S3 has not completed s3://{item.bucket}/{item.key}: it is retried") from error
        return None
    etag = head["ETag"].strip('"')
    found = (head["ContentLength"], head.get("ChecksumCRC32"))
    return etag if found == (item.size, item.checksum) else None


def _complete_part(s3: S3Client, item: PendingObject) -> bool:
    """Whether S3 accepted the part. Raises S3's other refusals."""
    for current in (False, True):
        # A client may repeat the request of a part, and S3 may apply both, the second one late. Under a KMS key the
        # same bytes then have another ETag.
        etag = (_part_etag(s3, item) if current else None) or item.etag
        with suppress_codes(INVALID_PART):
            # S3 requires the checksum of the part if the upload was created with one, and verifies both.
            s3.complete_multipart_upload(
                Bucket=item.bucket,
                Key=item.key,
                UploadId=item.upload_id,
                ChecksumType=WHOLE_OBJECT,
                ChecksumCRC32=item.checksum,
                MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": f'"{etag}"', "ChecksumCRC32": item.checksum}]},
            )
            return True
    # The checksum was refused as well: another writer has replaced the part, and a repetition does not help.
    return False


def _part_etag(s3: S3Client, item: PendingObject) -> str | None:
    """The current ETag of the part; None if the upload does not exist."""
    with suppress_codes(NO_UPLOAD):
        listed = s3.list_parts(Bucket=item.bucket, Key=item.key, UploadId=item.upload_id).get("Parts", [])
        return listed[0]["ETag"].strip('"') if listed else None
    return None
