"""Checksums and ETags of the fake S3 are those of the emulator, in a bucket with and without a KMS key."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from local.isolation import BUCKET_PLACE
from tests.model.checksums import crc32_of
from tests.model.fake_s3 import FakeS3
from tests.model.world import START

if TYPE_CHECKING:
    from local.cloud import LocalCloud

BODY = b"rows"
CHECKSUM, OTHER = crc32_of(BODY), crc32_of(b"other rows")
WHOLE = {"ChecksumAlgorithm": "CRC32", "ChecksumType": "FULL_OBJECT"}


def code(call: Any, **request: Any) -> str:
    """The error code, or ``done``."""
    try:
        call(**request)
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    return "done"


def responses(s3: Any, bucket: str) -> list[Any]:
    """An upload with a checksum: its part and its completion with a wrong and with the right one."""
    place = {"Bucket": bucket, "Key": "k"}
    upload = {**place, "UploadId": s3.create_multipart_upload(**place, **WHOLE)["UploadId"]}
    part = {**upload, "PartNumber": 1, "Body": BODY}
    answers: list[Any] = [code(s3.upload_part, **part, ChecksumCRC32=OTHER)]
    uploaded = s3.upload_part(**part, ChecksumCRC32=CHECKSUM)
    answers.append(uploaded["ChecksumCRC32"])
    answers.append(
        [(item["PartNumber"], item["ETag"] == uploaded["ETag"]) for item in s3.list_parts(**upload)["Parts"]]
    )

    def completion(whole: str, of_part: str) -> dict[str, Any]:
        parts = [{"PartNumber": 1, "ETag": uploaded["ETag"], "ChecksumCRC32": of_part}]
        request = {**upload, "ChecksumCRC32": whole, "ChecksumType": "FULL_OBJECT"}
        return {**request, "MultipartUpload": {"Parts": parts}}

    answers += [code(s3.complete_multipart_upload, **completion(OTHER, CHECKSUM))]
    answers += [code(s3.complete_multipart_upload, **completion(CHECKSUM, OTHER))]
    answers += [code(s3.complete_multipart_upload, **completion(CHECKSUM, CHECKSUM))]
    head = s3.head_object(**place, ChecksumMode="ENABLED")
    answers += [head["ChecksumCRC32"], head["ChecksumType"], head["ContentLength"]]
    answers.append("ChecksumCRC32" in s3.head_object(**place))
    plain = s3.put_object(Bucket=bucket, Key="plain", Body=BODY)["ETag"]
    return [*answers, plain == s3.put_object(Bucket=bucket, Key="plain", Body=BODY)["ETag"], head["ETag"][-3:]]


@pytest.mark.parametrize("encryption", ["AES256", "aws:kms"])
def test_s3_verifies_and_keeps_checksums_like_the_emulator(cloud: LocalCloud, encryption: str) -> None:
    # Given a bucket that encrypts with or without a KMS key
    s3, bucket, fake = cloud.client("s3"), f"contract-{secrets.token_hex(4)}", FakeS3(START)
    s3.create_bucket(Bucket=bucket, CreateBucketConfiguration=BUCKET_PLACE)
    applied = {"SSEAlgorithm": encryption}
    if encryption == "aws:kms":
        applied["KMSMasterKeyID"] = cloud.client("kms").create_key()["KeyMetadata"]["Arn"]
        fake.with_kms_key.add("fake")
    rules = [{"ApplyServerSideEncryptionByDefault": applied}]
    s3.put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration={"Rules": rules})
    fake.create_bucket(Bucket="fake")
    # Then checksums are the same, and the same bytes have the same ETag only without a KMS key
    expected: list[Any] = ["BadDigest", CHECKSUM, [(1, True)], "BadDigest", "InvalidPart", "done"]
    expected += [CHECKSUM, "FULL_OBJECT", len(BODY), False]
    assert responses(fake, "fake") == [*expected, encryption == "AES256", '-1"']
    assert responses(s3, bucket) == responses(fake, "fake")
