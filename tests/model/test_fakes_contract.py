"""The fakes of S3 and DynamoDB respond like the emulator: one script of calls on both, the same answers and errors."""

import hashlib
import secrets
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from lake.ledger import State
from lake.ledger.table import Condition, Key, LedgerTable, RefusedError, put_request, update_request
from local.cloud import LocalCloud
from local.isolation import BUCKET_PLACE
from tests.ledger_table import create_ledger_table
from tests.model.fake_dynamodb import FakeDynamoDB
from tests.model.fake_s3 import FakeS3, crc32_of
from tests.model.world import START
from tests.unit.lake.world import RESOURCES


def response_or_code(call: Callable[..., Any], **request: Any) -> Any:
    """The response, or the error code."""
    try:
        return call(**request)
    except ClientError as error:
        return error.response["Error"]["Code"]


def done_or_code(call: Callable[..., Any], **request: Any) -> str:
    answer = response_or_code(call, **request)
    return answer if isinstance(answer, str) else "done"


def s3_responses(s3: Any, bucket: str) -> list[Any]:
    """The responses to the calls that the product relies on, in an order that matters."""
    responses: list[Any] = []

    def keys_and_uploads() -> None:
        responses.append([item["Key"] for item in s3.list_objects_v2(Bucket=bucket).get("Contents", [])])
        listed = s3.list_multipart_uploads(Bucket=bucket, Prefix="d/m-g1-").get("Uploads", [])
        responses.append([(item["Key"], item["UploadId"] in upload_ids) for item in listed])

    def complete(upload: str, key: str, *etags: str) -> None:
        parts = [{"PartNumber": number, "ETag": f'"{etag}"'} for number, etag in enumerate(etags, 1)]
        request = {"Bucket": bucket, "Key": key, "UploadId": upload, "MultipartUpload": {"Parts": parts}}
        responses.append(done_or_code(s3.complete_multipart_upload, **request))

    def head(key: str) -> None:
        response = response_or_code(s3.head_object, Bucket=bucket, Key=key)
        responses.append(response if isinstance(response, str) else (response["ETag"], response["ContentLength"]))

    def abort(upload: str, key: str) -> None:
        responses.append(done_or_code(s3.abort_multipart_upload, Bucket=bucket, Key=key, UploadId=upload))

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
    # Whatever the response is, the id of a completed upload restores no deleted object.
    with suppress(ClientError):
        parts = {"Parts": [{"PartNumber": 1, "ETag": f'"{etag}"'}]}
        s3.complete_multipart_upload(Bucket=bucket, Key=first, UploadId=upload_ids[0], MultipartUpload=parts)
    head(first)
    responses.append([item["Key"] for item in s3.list_objects_v2(Bucket=bucket, StartAfter=first).get("Contents", [])])
    with pytest.raises(s3.exceptions.NoSuchKey):
        s3.get_object(Bucket=bucket, Key=first)
    put = {"Bucket": bucket, "Key": first, "Body": b"new", "IfNoneMatch": "*"}
    responses += [done_or_code(s3.put_object, **put) for _ in range(2)]
    responses.append(s3.get_object(Bucket=bucket, Key=second)["Body"].read())
    return responses


@pytest.mark.parametrize("used_id_succeeds", [False, True])
def test_s3_responds_like_the_emulator(cloud: LocalCloud, used_id_succeeds: bool) -> None:
    s3, fake = cloud.client("s3"), FakeS3(START, used_id_succeeds)
    assert s3_responses(fake, new_bucket(fake)) == s3_responses(s3, new_bucket(s3))


def new_bucket(s3: Any) -> str:
    bucket = f"contract-{secrets.token_hex(4)}"
    s3.create_bucket(Bucket=bucket, **({} if isinstance(s3, FakeS3) else {"CreateBucketConfiguration": BUCKET_PLACE}))
    return bucket


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
    s3, fake = cloud.client("s3"), FakeS3(START)
    bucket, other = new_bucket(s3), new_bucket(fake)
    if versioning:
        s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
        fake.versions[other] = {}
    assert listed_versions(fake, other) == listed_versions(s3, bucket)


BODY = b"rows"
CHECKSUM, OTHER = crc32_of(BODY), crc32_of(b"other rows")
WHOLE = {"ChecksumAlgorithm": "CRC32", "ChecksumType": "FULL_OBJECT"}


def responses(s3: Any, bucket: str) -> list[Any]:
    """An upload with a checksum: its part and its completion with a wrong and with the right one."""
    place = {"Bucket": bucket, "Key": "k"}
    upload = {**place, "UploadId": s3.create_multipart_upload(**place, **WHOLE)["UploadId"]}
    part = {**upload, "PartNumber": 1, "Body": BODY}
    answers: list[Any] = [done_or_code(s3.upload_part, **part, ChecksumCRC32=OTHER)]
    uploaded = s3.upload_part(**part, ChecksumCRC32=CHECKSUM)
    answers.append(uploaded["ChecksumCRC32"])
    answers.append(
        [(item["PartNumber"], item["ETag"] == uploaded["ETag"]) for item in s3.list_parts(**upload)["Parts"]]
    )

    def completion(whole: str, of_part: str) -> dict[str, Any]:
        parts = [{"PartNumber": 1, "ETag": uploaded["ETag"], "ChecksumCRC32": of_part}]
        request = {**upload, "ChecksumCRC32": whole, "ChecksumType": "FULL_OBJECT"}
        return {**request, "MultipartUpload": {"Parts": parts}}

    answers += [done_or_code(s3.complete_multipart_upload, **completion(OTHER, CHECKSUM))]
    answers += [done_or_code(s3.complete_multipart_upload, **completion(CHECKSUM, OTHER))]
    answers += [done_or_code(s3.complete_multipart_upload, **completion(CHECKSUM, CHECKSUM))]
    head = s3.head_object(**place, ChecksumMode="ENABLED")
    answers += [head["ChecksumCRC32"], head["ChecksumType"], head["ContentLength"]]
    answers.append("ChecksumCRC32" in s3.head_object(**place))
    plain = s3.put_object(Bucket=bucket, Key="plain", Body=BODY)["ETag"]
    return [*answers, plain == s3.put_object(Bucket=bucket, Key="plain", Body=BODY)["ETag"], head["ETag"][-3:]]


@pytest.mark.parametrize("encryption", ["AES256", "aws:kms"])
def test_s3_verifies_and_keeps_checksums_like_the_emulator(cloud: LocalCloud, encryption: str) -> None:
    # Given a bucket that encrypts with or without a KMS key
    s3, fake = cloud.client("s3"), FakeS3(START)
    bucket, other = new_bucket(s3), new_bucket(fake)
    applied = {"SSEAlgorithm": encryption}
    if encryption == "aws:kms":
        applied["KMSMasterKeyID"] = cloud.client("kms").create_key()["KeyMetadata"]["Arn"]
        fake.with_kms_key.add(other)
    rules = [{"ApplyServerSideEncryptionByDefault": applied}]
    s3.put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration={"Rules": rules})
    # Then checksums are the same, and the same bytes have the same ETag only without a KMS key
    expected: list[Any] = ["BadDigest", CHECKSUM, [(1, True)], "BadDigest", "InvalidPart", "done"]
    expected += [CHECKSUM, "FULL_OBJECT", len(BODY), False]
    expected += [encryption == "AES256", '-1"']
    assert responses(fake, other) == responses(s3, bucket) == expected


def dynamodb_answers(client: Any) -> list[Any]:
    """Conditions of every kind the ledger uses, met and not met; then the current row."""
    table = LedgerTable(client, RESOURCES.ledger_table)
    key = Key(f"manifest#{secrets.token_hex(4)}", "manifest")
    answers: list[Any] = []

    def put(*where: Condition, **attributes: Any) -> None:
        answers.append(_refused(lambda: table.put(key, attributes, where)))

    def update(*where: Condition, remove: tuple[str, ...] = (), add: Any = None, **assign: Any) -> None:
        answers.append(_refused(lambda: table.update(key, assign=assign, add=add, remove=remove, conditions=where)))
        current = table.get(key)
        answers.append(current and {name: value for name, value in current.items() if name != "pk"})

    update(Condition("state", "=", State.QUEUED), state=State.RUNNING)
    put(Condition("pk", "missing"), state=State.QUEUED, attempt=0, lease_until=0, open="batch#QUEUED", open_order="1")
    put(Condition("pk", "missing"), state=State.ABANDONED)
    update(
        Condition("state", "=", State.QUEUED),
        Condition("attempt", "=", 0),
        state=State.RUNNING,
        attempt=1,
        lease_until=50,
    )
    update(Condition("lease_until", ">", 50), lease_until=60)
    update(Condition("lease_until", ">", 49), Condition("state", "=", "RUNNING"), lease_until=60)
    update(Condition("owner", "missing"), owner="run")
    update(Condition("owner", "=", "run"), add={"bytes": 5, "names": {"a"}})
    update(Condition("missing", ">", 1), lease_until=0)
    update(Condition("state", ">", 1), lease_until=0)
    update(add={"bytes": 7, "names": {"a", "b"}}, into=["x", "y"])
    update(Condition("published", "missing"), remove=("open", "open_order", "nothing"), state=State.DONE)
    answers.append(_transaction(client, key, State.RUNNING))
    answers.append(_transaction(client, key, State.DONE))
    answers.append(len(list(table.query(key.pk))))
    answers.append([item["sk"] for item in table.query(key.pk, after="m", before="n")])
    # The index has the rows that are open, in their order.
    for number in (3, 1, 2):
        row = {"id": f"m{number}", "open": f"{key.pk}#QUEUED", "open_order": str(number)}
        table.put(Key(f"{key.pk}-{number}", "manifest"), row, [])
    table.update(Key(f"{key.pk}-2", "manifest"), remove=("open", "open_order"))
    answers.append([item["id"] for item in table.query(f"{key.pk}#QUEUED", index=True)])
    return answers


def _transaction(client: Any, key: Key, state: State) -> Any:
    name = RESOURCES.ledger_table
    where = [Condition("state", "=", state)]
    actions = [
        {"Update": update_request(name, key, {"state": State.SUPERSEDED}, {}, ("owner",), where)},
        {
            "Put": put_request(
                name, Key(key.pk, f"successor-{state}"), {"state": State.QUEUED}, [Condition("pk", "missing")]
            )
        },
    ]
    return _refused(lambda: LedgerTable(client, name).transact(actions))


def _refused(write: Callable[[], Any]) -> str:
    try:
        write()
    except RefusedError:
        return "refused"
    return "done"


@pytest.fixture
def dynamodb(cloud: LocalCloud) -> Any:
    """A client of the emulator, with the ledger's table."""
    client = boto3.resource("dynamodb", endpoint_url=cloud.endpoint).meta.client
    with suppress(client.exceptions.ResourceInUseException):
        create_ledger_table(client, RESOURCES.ledger_table)
    return client


def test_dynamodb_answers_like_the_emulator(dynamodb: Any) -> None:
    assert dynamodb_answers(FakeDynamoDB()) == dynamodb_answers(dynamodb)
