"""Uploads objects under their final keys, invisible to readers: multipart uploads of one part, not completed here."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError

from lake.aws_types import S3Client
from lake.commit import ALGORITHM, WHOLE_OBJECT, PendingObject, checksum_of
from lake.errors import AuditError, TransientError
from lake.publish import abort_upload
from transform.clients import AddFile

Begun = list[tuple[str, str, str]]
"""Bucket, key and id of each upload that a task has created."""


@contextmanager
def uploading(s3: S3Client) -> Iterator[AddFile]:
    """Yields the function that uploads a file in the background, in sequence, and removes it from the disk.

    Its future raises ``AuditError`` if the uploaded part differs from the file, and ``TransientError`` if S3 refused it
    or did not answer. An error in the block aborts all uploads.
    """
    begun: Begun = []
    with ThreadPoolExecutor(1, thread_name_prefix="upload") as pool:
        try:
            yield lambda path, bucket, key, rows: pool.submit(_upload, s3, begun, path, bucket, key, rows)
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            for item in begun:
                abort_upload(s3, *item)
            raise


def _upload(s3: S3Client, begun: Begun, path: Path, bucket: str, key: str, rows: int) -> PendingObject:
    size = path.stat().st_size
    try:
        upload_id = s3.create_multipart_upload(
            Bucket=bucket, Key=key, ChecksumAlgorithm=ALGORITHM, ChecksumType=WHOLE_OBJECT
        )["UploadId"]
        begun.append((bucket, key, upload_id))
        with path.open("rb") as body:
            checksum = checksum_of(body)
            body.seek(0)
            answer = s3.upload_part(
                Bucket=bucket,
                Key=key,
                UploadId=upload_id,
                PartNumber=1,
                Body=body,
                ContentLength=size,
                ChecksumCRC32=checksum,
            )
    except (BotoCoreError, ClientError) as error:
        raise TransientError(f"s3://{bucket}/{key} could not be uploaded and is retried: {error}") from error
    path.unlink()
    if answer.get("ChecksumCRC32") != checksum:
        raise AuditError(
            f"the uploaded part of {key} is not the file that was written (S3 returns the checksum "
            f"{answer.get('ChecksumCRC32')}, the file has {checksum}): it is retried"
        )
    return PendingObject(bucket, key, upload_id, answer["ETag"].strip('"'), checksum, size, rows)
