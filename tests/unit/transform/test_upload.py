"""An uploaded object is the file that was written, and an error leaves no upload."""

import base64
import zlib
from pathlib import Path
from typing import Any

import pytest

from lake.errors import AuditError
from lake.publish import complete_all
from tests.unit.lake.world import World
from transform.upload import uploading


@pytest.fixture
def s3(world: World, monkeypatch: pytest.MonkeyPatch) -> Any:
    """As in S3, it returns the checksum of a part after comparing it, which moto does not do."""
    s3, upload_part = world.raw_s3, world.raw_s3.upload_part
    answer = lambda **part: upload_part(**part) | {"ChecksumCRC32": part["ChecksumCRC32"]}  # noqa: E731
    monkeypatch.setattr(s3, "upload_part", answer)
    return s3


def written(folder: Path, name: str = "a", body: bytes = b"rows") -> Path:
    path = folder / name
    path.write_bytes(body)
    return path


def unfinished(s3: Any) -> list[str]:
    return [upload["Key"] for upload in s3.list_multipart_uploads(Bucket="lake").get("Uploads", [])]


def test_a_pending_object_is_invisible_and_has_the_checksum_of_the_object(s3: Any, tmp_path: Path) -> None:
    # Given / When
    with uploading(s3) as add_file:
        pending = add_file(written(tmp_path), "lake", "d/k.parquet", 7).result()

    # Then
    checksum = base64.b64encode(zlib.crc32(b"rows").to_bytes(4, "big")).decode()
    assert (pending.checksum, pending.size, pending.rows) == (checksum, 4, 7)
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
        with uploading(s3) as add_file:
            add_file(written(tmp_path), "lake", "k1", 1).result()

    with pytest.raises(AuditError, match="is not the file that was written"):
        task()
    assert unfinished(s3) == []
