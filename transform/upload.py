"""Uploads objects under their final keys, invisible to readers: multipart uploads of one part, not completed here."""

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Self

from botocore.exceptions import BotoCoreError, ClientError

from lake.aws_types import S3Client
from lake.commit import ALGORITHM, WHOLE_OBJECT, PendingObject, checksum_of
from lake.errors import AuditError, TransientError
from lake.publish import abort_upload


class Uploads:
    """Uploads local files in sequence in the background. A context manager: an error inside aborts all uploads."""

    def __init__(self, s3: S3Client) -> None:
        self._s3 = s3
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="upload")
        self._begun: list[tuple[str, str, str]] = []
        """Bucket, key and id of each upload that this task has created."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=kind is not None)
        for begun in self._begun if kind is not None else ():
            abort_upload(self._s3, *begun)

    def add(self, path: Path, bucket: str, key: str, rows: int) -> Future[PendingObject]:
        """Upload the file and remove it from the disk; ``rows`` is copied to the pending object.

        The future raises ``AuditError`` if the uploaded part differs from the file, and ``TransientError`` if S3
        refused it or did not answer.
        """
        return self._pool.submit(self._upload, path, bucket, key, rows)

    def _upload(self, path: Path, bucket: str, key: str, rows: int) -> PendingObject:
        size = path.stat().st_size
        try:
            upload_id = self._s3.create_multipart_upload(
                Bucket=bucket, Key=key, ChecksumAlgorithm=ALGORITHM, ChecksumType=WHOLE_OBJECT
            )["UploadId"]
            self._begun.append((bucket, key, upload_id))
            with path.open("rb") as body:
                checksum = checksum_of(body)
                body.seek(0)
                answer = self._s3.upload_part(
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
