"""The fake of S3 responds like the emulator: one script of calls on both, the same responses and errors."""

from __future__ import annotations

import hashlib
import secrets
from typing import TYPE_CHECKING, Any

import pytest

from local.isolation import BUCKET_PLACE
from tests.model.fake_s3 import FakeS3
from tests.model.service_errors import response_or_code
from tests.model.world import START

if TYPE_CHECKING:
    from local.cloud import LocalCloud


def s3_responses(s3: Any, bucket: str) -> list[Any]:
    """The responses to the calls that the product relies on, in an order that matters."""
    responses: list[Any] = []

    def keys_and_uploads() -> None:
        responses.append([item["Key"] for item in s3.list_objects_v2(Bucket=bucket).get("Contents", [])])
        listed = s3.list_multipart_uploads(Bucket=bucket, Prefix="d/m-g1-").get("Uploads", [])
        responses.append([(item["Key"], item["UploadId"] in upload_ids) for item in listed])

    def complete(upload: str, key: str, *etags: str) -> None:
        parts = [{"PartNumber": number, "ETag": f'"{etag}"'} for number, etag in enumerate(etags, 1)]
        response = response_or_code(
            s3.complete_multipart_upload, Bucket=bucket, Key=key, UploadId=upload, MultipartUpload={"Parts": parts}
        )
        responses.append(response if isinstance(response, str) else "completed")

    def head(key: str) -> None:
        response = response_or_code(s3.head_object, Bucket=bucket, Key=key)
        responses.append(response if isinstance(response, str) else (response["ETag"], response["ContentLength"]))

    def abort(upload: str, key: str) -> None:
        response = response_or_code(s3.abort_multipart_upload, Bucket=bucket, Key=key, UploadId=upload)
        responses.append(response if isinstance(response, str) else "aborted")

    first, second = "d/m-g1-00000.parquet", "d/m-g1-00001.parquet"
    keys_of_uploads = (first, first, second)
    upload_ids = [s3.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"] for key in keys_of_uploads]
    etag = hashlib.md5(b"rows").hexdigest()
    for upload, key in zip(upload_ids, keys_of_uploads, strict=True):
        part = s3.upload_part(Bucket=bucket, Key=key, UploadId=upload, PartNumber=1, Body=b"rows")
        responses.append(part["ETag"])
    keys_and_uploads()
    head(first)
    complete(upload_ids[0], first, "0" * 32)
    keys_and_uploads()
    complete(upload_ids[0], first, etag)
    keys_and_uploads()
    head(first)
    abort(upload_ids[1], first)
    abort(upload_ids[1], first)
    keys_and_uploads()
    complete(upload_ids[1], first, etag)
    head(first)
    s3.delete_object(Bucket=bucket, Key=first)
    s3.delete_object(Bucket=bucket, Key=first)
    head(first)
    keys_and_uploads()
    complete(upload_ids[2], second, etag)
    keys_and_uploads()
    responses.append([item["Key"] for item in s3.list_objects_v2(Bucket=bucket, StartAfter=first).get("Contents", [])])
    with pytest.raises(s3.exceptions.NoSuchKey):
        s3.get_object(Bucket=bucket, Key=first)
    responses.append(s3.get_object(Bucket=bucket, Key=second)["Body"].read())
    return responses


def complete_twice(s3: Any, bucket: str) -> list[Any]:
    """Completing a used upload id again does not restore a deleted object, whatever the response is."""
    upload = s3.create_multipart_upload(Bucket=bucket, Key="k")["UploadId"]
    etag = s3.upload_part(Bucket=bucket, Key="k", UploadId=upload, PartNumber=1, Body=b"x")["ETag"]
    request = {"Bucket": bucket, "Key": "k", "UploadId": upload, "MultipartUpload": {"Parts": [_part(etag)]}}
    s3.complete_multipart_upload(**request)
    s3.delete_object(Bucket=bucket, Key="k")
    response = response_or_code(s3.complete_multipart_upload, **request)
    assert isinstance(response, dict) or response == "NoSuchUpload"
    return [response_or_code(s3.head_object, Bucket=bucket, Key="k")]


def _part(etag: str) -> dict[str, Any]:
    return {"PartNumber": 1, "ETag": etag}


def test_s3_responds_like_the_emulator(cloud: LocalCloud) -> None:
    s3, bucket = cloud.client("s3"), f"contract-{secrets.token_hex(4)}"
    s3.create_bucket(Bucket=bucket, CreateBucketConfiguration=BUCKET_PLACE)
    for used_id_succeeds in (False, True):
        fake = FakeS3(START, used_id_succeeds)
        fake.create_bucket(Bucket="fake")
        assert complete_twice(fake, "fake") == complete_twice(s3, bucket) == ["404"]
    assert s3_responses(fake, "fake") == s3_responses(s3, bucket)


def listed_versions(s3: Any, bucket: str) -> list[Any]:
    """The versions of an object that was put twice and deleted, the numbers in place of their ids."""
    ids = [s3.put_object(Bucket=bucket, Key="v", Body=body).get("VersionId", "null") for body in (b"one", b"second")]
    objects = s3.list_objects_v2(Bucket=bucket, Prefix="v", MaxKeys=2)["Contents"]
    responses: list[Any] = [(item["Key"], item["Size"], item["ETag"]) for item in objects]

    def versions() -> None:
        listed = s3.list_object_versions(Bucket=bucket, Prefix="v").get("Versions", [])
        responses.append([(ids.index(item["VersionId"]), item["IsLatest"], item["Size"]) for item in listed])

    versions()
    s3.delete_object(Bucket=bucket, Key="v")
    versions()
    return responses


@pytest.mark.parametrize("versioning", [False, True])
def test_s3_lists_versions_like_the_emulator(cloud: LocalCloud, versioning: bool) -> None:
    s3, bucket, fake = cloud.client("s3"), f"contract-{secrets.token_hex(4)}", FakeS3(START)
    s3.create_bucket(Bucket=bucket, CreateBucketConfiguration=BUCKET_PLACE)
    fake.create_bucket(Bucket="fake")
    if versioning:
        s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
        fake.versions["fake"] = {}
    assert listed_versions(fake, "fake") == listed_versions(s3, bucket)
