"""An uploaded object is the file that was written, and an error leaves no upload."""

import base64
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from lake.errors import AuditError
from lake.publish import complete_all
from transform.upload import Uploads


@pytest.fixture
def s3() -> Iterator[Any]:
    with mock_aws():
        # Not that of the environment, which leads to the emulator once another test has started it.
        endpoint = "https://s3.amazonaws.com"
        client = boto3.client(
            "s3", "us-east-1", endpoint_url=endpoint, aws_access_key_id="x", aws_secret_access_key="x"
        )
        client.create_bucket(Bucket="lake")
        client.meta.events.register("provide-client-params.s3.UploadPart", remember_checksum)
        client.meta.events.register("after-call.s3.UploadPart", answer_with_checksum)
        yield client


def remember_checksum(params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
    context["part_checksum"] = params["ChecksumCRC32"]


def answer_with_checksum(parsed: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
    """As S3 does after it has compared it; moto returns no checksum of a part."""
    parsed["ChecksumCRC32"] = context["part_checksum"]


def written(folder: Path, name: str = "a", body: bytes = b"rows") -> Path:
    path = folder / name
    path.write_bytes(body)
    return path


def unfinished(s3: Any) -> list[str]:
    return [upload["Key"] for upload in s3.list_multipart_uploads(Bucket="lake").get("Uploads", [])]


def test_a_pending_object_is_invisible_and_has_the_checksum_of_the_object(s3: Any, tmp_path: Path) -> None:
    # Given / When
    with Uploads(s3) as uploads:
        future = uploads.add(written(tmp_path), "lake", "d/k.parquet", 7)
        uploads.finish()
    pending = future.result()

    # Then
    checksum = base64.b64encode(zlib.crc32(b"rows").to_bytes(4, "big")).decode()
    assert (pending.checksum, pending.size, pending.rows) == (checksum, 4, 7)
    assert [part.checksum for part in pending.parts] == [checksum]
    assert "Contents" not in s3.list_objects_v2(Bucket="lake")
    assert list(tmp_path.iterdir()) == []
    complete_all(s3, [pending])
    head = s3.head_object(Bucket="lake", Key=pending.key, ChecksumMode="ENABLED")
    assert (head["ChecksumCRC32"], head["ChecksumType"]) == (pending.checksum, "FULL_OBJECT")


@pytest.mark.parametrize("answer", [{"ETag": '"e"', "ChecksumCRC32": "AAAAAA=="}, {"ETag": '"e"'}])
def test_a_part_that_is_not_the_file_is_an_audit_error(
    s3: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: dict[str, str]
) -> None:
    monkeypatch.setattr(s3, "upload_part", lambda **_: answer)

    def task() -> None:
        with Uploads(s3) as uploads:
            uploads.add(written(tmp_path), "lake", "k1", 1)
            uploads.finish()

    with pytest.raises(AuditError, match="is not the file that was written"):
        task()
    assert unfinished(s3) == []
