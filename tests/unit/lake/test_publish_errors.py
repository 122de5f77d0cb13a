"""Errors of S3 while publishing: only what says that an upload is gone means that; every other error is raised."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from lake.commit import PendingObject, UploadedPart
from lake.errors import UploadsVanishedError
from lake.layout import lake_key
from lake.ledger import State
from lake.publish import abort_upload, complete_all, roll_back
from tests.unit.lake.transitions import row_in_state
from tests.unit.lake.uploads import upload
from tests.unit.lake.world import PARTITION, World

KEY = lake_key(PARTITION, "m", 1, 0)


class RefusingS3:
    """An S3 that refuses one operation, with the last of its codes from then on; how often the others were called."""

    def __init__(self, s3: Any, operation: str, *codes: str) -> None:
        self._s3, self._operation, self._codes = s3, operation, list(codes)
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        def call(**request: Any) -> Any:
            self.calls.append(name)
            if name == self._operation:
                code = self._codes.pop(0) if len(self._codes) > 1 else self._codes[0]
                answer: Any = {"Error": {"Code": code, "Message": ""}}
                raise ClientError(answer, name)
            return getattr(self._s3, name)(**request)

        return call


@pytest.mark.parametrize("operation", ["complete_multipart_upload", "head_object"])
@pytest.mark.parametrize("code", ["SlowDown", "AccessDenied", "403"])
def test_an_error_that_does_not_say_that_the_upload_is_gone_is_raised(world: World, operation: str, code: str) -> None:
    item = upload(world.raw_s3, "lake", KEY, b"rows")
    refusing: Any = RefusingS3(world.s3, operation, code)
    with pytest.raises(ClientError, match=code):
        complete_all(refusing, [item])
    # Without a request that cannot help
    assert "list_parts" not in refusing.calls
    # And the next process publishes it.
    assert complete_all(world.s3, [item]).keys() == {("lake", KEY)}


@pytest.mark.parametrize("code", ["SlowDown", "AccessDenied"])
def test_nothing_fails_and_nothing_is_deleted_while_an_upload_cannot_be_aborted(world: World, code: str) -> None:
    # Given a committed manifest with one completed object
    row, item = row_in_state(world, "PUBLISHING"), upload(world.raw_s3, "lake", KEY, b"rows")
    complete_all(world.s3, [item])
    refusing: Any = RefusingS3(world.s3, "abort_multipart_upload", code)
    # When / Then
    with pytest.raises(ClientError, match=code):
        roll_back(refusing, world.ledger, row, [item], "uploads are gone", world.now)
    assert world.row(row.id).state == State.PUBLISHING
    assert world.keys("lake") == [KEY]


def test_an_upload_that_does_not_exist_is_aborted_already(world: World) -> None:
    refusing: Any = RefusingS3(world.s3, "abort_multipart_upload", "NoSuchUpload")
    abort_upload(refusing, "lake", KEY, "u")
    assert refusing.calls == ["abort_multipart_upload"]


def with_another_etag(item: PendingObject) -> PendingObject:
    """As the document of an upload request that the client has repeated: the part has another ETag by now."""
    return replace(item, parts=(UploadedPart("0" * 32, item.parts[0].checksum),))


def test_a_part_with_another_etag_and_the_same_checksum_is_completed(world: World) -> None:
    item = with_another_etag(upload(world.raw_s3, "lake", KEY, b"rows"))
    assert complete_all(world.s3, [item]).keys() == {("lake", KEY)}
    assert world.raw_s3.get_object(Bucket="lake", Key=KEY)["Body"].read() == b"rows"


def test_a_repeated_completion_without_an_answer_does_not_say_that_the_upload_is_gone(world: World) -> None:
    item = with_another_etag(upload(world.raw_s3, "lake", KEY, b"rows"))
    refusing: Any = RefusingS3(world.s3, "complete_multipart_upload", "InvalidPart", "SlowDown")
    with pytest.raises(ClientError, match="SlowDown"):
        complete_all(refusing, [item])
    assert complete_all(world.s3, [item]).keys() == {("lake", KEY)}


def test_a_completion_has_the_checksums_that_s3_verifies() -> None:
    requests: list[dict[str, Any]] = []
    s3: Any = SimpleNamespace(
        complete_multipart_upload=lambda **request: requests.append(request),
        head_object=lambda **_: {"ETag": '"object"', "ContentLength": 9, "ChecksumCRC32": "whole"},
    )
    parts = (UploadedPart("etag-1", "part-1"), UploadedPart("etag-2", "part-2"))
    assert complete_all(s3, [PendingObject("lake", KEY, "u", parts, "whole", 9, 1)]) == {("lake", KEY): "object"}
    assert requests == [
        {
            "Bucket": "lake",
            "Key": KEY,
            "UploadId": "u",
            "ChecksumType": "FULL_OBJECT",
            "ChecksumCRC32": "whole",
            "MultipartUpload": {
                "Parts": [
                    {"PartNumber": 1, "ETag": '"etag-1"', "ChecksumCRC32": "part-1"},
                    {"PartNumber": 2, "ETag": '"etag-2"', "ChecksumCRC32": "part-2"},
                ]
            },
        }
    ]


def test_an_upload_whose_part_another_writer_has_replaced_is_gone(world: World) -> None:
    # Given an upload, and S3, which refuses the checksum of a part that another writer has replaced
    item = upload(world.raw_s3, "lake", KEY, b"rows")
    refusing: Any = RefusingS3(world.s3, "complete_multipart_upload", "InvalidPart")
    # Then the manifest is rolled back, because no repetition can complete the upload
    with pytest.raises(UploadsVanishedError, match="other content"):
        complete_all(refusing, [item])
    assert refusing.calls == ["complete_multipart_upload", "list_parts", "complete_multipart_upload", "head_object"]
