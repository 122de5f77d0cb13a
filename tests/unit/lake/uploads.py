"""Uploads that are not completed, as tasks leave them."""

import io
from typing import Any

from lake.commit import ALGORITHM, WHOLE_OBJECT, PendingObject, UploadedPart, checksum_of


def upload(s3: Any, bucket: str, key: str, body: bytes, rows: int = 1) -> PendingObject:
    """A multipart upload of one part."""
    checksum = checksum_of(io.BytesIO(body))
    created = s3.create_multipart_upload(Bucket=bucket, Key=key, ChecksumAlgorithm=ALGORITHM, ChecksumType=WHOLE_OBJECT)
    upload_id = created["UploadId"]
    part = s3.upload_part(Bucket=bucket, Key=key, UploadId=upload_id, PartNumber=1, Body=body, ChecksumCRC32=checksum)
    parts = (UploadedPart(part["ETag"].strip('"'), checksum),)
    return PendingObject(bucket, key, upload_id, parts, checksum, len(body), rows)
