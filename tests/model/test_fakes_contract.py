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
from lake.ledger.table import Condition, Key, LedgerTable, put_action, update_action
from local.cloud import LocalCloud
from local.isolation import BUCKET_PLACE
from tests.ledger_table import create_ledger_table
from tests.model.fake_dynamodb import FakeDynamoDB
from tests.model.fake_s3 import FakeS3, crc32_of
from tests.model.world import START
from tests.unit.lake.world import RESOURCES

BODY, OTHER = b"rows", b"other rows"
CHECKSUM, ETAG = crc32_of(BODY), hashlib.md5(BODY).hexdigest()
WHOLE = {"ChecksumAlgorithm": "CRC32", "ChecksumType": "FULL_OBJECT"}


class Script:
    """Calls of one client in its own bucket, and their recorded answers."""

    def __init__(self, s3: Any) -> None:
        self.s3, self.bucket, self.answers = s3, f"contract-{secrets.token_hex(4)}", list[Any]()
        s3.create_bucket(
            Bucket=self.bucket, **({} if isinstance(s3, FakeS3) else {"CreateBucketConfiguration": BUCKET_PLACE})
        )

    def call(self, operation: str, *shown: str, **request: Any) -> Any:
        """The answer; the given members of it are recorded, or the error code."""
        try:
            answer = getattr(self.s3, operation)(Bucket=self.bucket, **request)
        except ClientError as error:
            self.answers.append(error.response["Error"]["Code"])
            return {}
        self.answers.append([answer.get(name) for name in shown])
        return answer

    def keys(self, **request: Any) -> None:
        listed = self.s3.list_objects_v2(Bucket=self.bucket, **request).get("Contents", [])
        self.answers.append([(item["Key"], item["Size"], item["ETag"]) for item in listed])


def uploads_without_checksums(script: Script) -> None:
    """The calls that the product relies on, in an order that matters."""
    first, second = "d/m-g1-00000.parquet", "d/m-g1-00001.parquet"
    keys = (first, first, second)
    created = [script.call("create_multipart_upload", Key=key) for key in keys]
    uploads = [{"Key": key, "UploadId": upload["UploadId"]} for key, upload in zip(keys, created, strict=True)]

    def show() -> None:
        script.keys()
        listed = script.s3.list_multipart_uploads(Bucket=script.bucket, Prefix="d/m-g1-").get("Uploads", [])
        listed = [{name: item[name] for name in ("Key", "UploadId")} for item in listed]
        script.answers.append([upload in listed for upload in uploads])
        script.call("head_object", "ETag", "ContentLength", Key=first)

    def complete(number: int, etag: str = ETAG) -> dict[str, Any]:
        return {**uploads[number], "MultipartUpload": {"Parts": [{"PartNumber": 1, "ETag": f'"{etag}"'}]}}

    for upload in uploads:
        script.call("upload_part", "ETag", **upload, PartNumber=1, Body=BODY)
    steps: list[tuple[str, dict[str, Any]]] = [
        ("complete_multipart_upload", complete(0, "0" * 32)),
        ("complete_multipart_upload", complete(0)),
        ("abort_multipart_upload", uploads[1]),
        ("abort_multipart_upload", uploads[1]),
        ("complete_multipart_upload", complete(1)),
        ("delete_object", {"Key": first}),
        ("delete_object", {"Key": first}),
        ("complete_multipart_upload", complete(2)),
    ]
    for operation, request in steps:
        show()
        script.call(operation, **request)
    # Whatever the response is, the id of a completed upload restores no deleted object.
    with suppress(ClientError):
        script.s3.complete_multipart_upload(Bucket=script.bucket, **complete(0))
    show()
    script.keys(StartAfter=first)
    with pytest.raises(script.s3.exceptions.NoSuchKey):
        script.s3.get_object(Bucket=script.bucket, Key=first)
    for _ in range(2):
        script.call("put_object", "ETag", Key=first, Body=b"new", IfNoneMatch="*")
    script.answers.append(script.s3.get_object(Bucket=script.bucket, Key=second)["Body"].read())


@pytest.mark.parametrize("used_id_succeeds", [False, True])
def test_s3_responds_like_the_emulator(cloud: LocalCloud, used_id_succeeds: bool) -> None:
    scripts = [Script(s3) for s3 in (FakeS3(START, used_id_succeeds), cloud.client("s3"))]
    for script in scripts:
        uploads_without_checksums(script)
    assert scripts[0].answers == scripts[1].answers


@pytest.mark.parametrize("versioning", [False, True])
def test_s3_lists_versions_like_the_emulator(cloud: LocalCloud, versioning: bool) -> None:
    # Given an object that is put twice and deleted
    fake, clients, scripts = FakeS3(START), list[Any](), list[Script]()
    clients += [fake, cloud.client("s3")]
    for s3 in clients:
        script = Script(s3)
        scripts.append(script)
        if versioning and s3 is fake:
            fake.versions[script.bucket] = {}
        elif versioning:
            s3.put_bucket_versioning(Bucket=script.bucket, VersioningConfiguration={"Status": "Enabled"})
        put = [script.call("put_object", "ETag", Key="v", Body=body) for body in (BODY, OTHER)]
        ids = [answer.get("VersionId", "null") for answer in put]
        script.keys(Prefix="v", MaxKeys=2)
        for operation in ("head_object", "delete_object"):
            script.call(operation, Key="v")
            # Then its versions are listed, with numbers instead of their ids
            listed = s3.list_object_versions(Bucket=script.bucket, Prefix="v").get("Versions", [])
            script.answers.append([(ids.index(item["VersionId"]), item["IsLatest"], item["Size"]) for item in listed])
    assert scripts[0].answers == scripts[1].answers


def upload_with_a_checksum(script: Script) -> None:
    """Its part and its completion with a wrong checksum and with the right one."""
    upload = {"Key": "k", "UploadId": script.call("create_multipart_upload", Key="k", **WHOLE)["UploadId"]}
    part = {**upload, "PartNumber": 1, "Body": BODY}
    script.call("upload_part", **part, ChecksumCRC32=crc32_of(OTHER))
    etag = script.call("upload_part", "ChecksumCRC32", **part, ChecksumCRC32=CHECKSUM)["ETag"]
    listed = script.s3.list_parts(Bucket=script.bucket, **upload)["Parts"]
    script.answers.append([(item["PartNumber"], item["ETag"] == etag) for item in listed])
    for whole, of_part in ((OTHER, BODY), (BODY, OTHER), (BODY, BODY)):
        parts = [{"PartNumber": 1, "ETag": etag, "ChecksumCRC32": crc32_of(of_part)}]
        sums = {"ChecksumCRC32": crc32_of(whole), "ChecksumType": "FULL_OBJECT"}
        script.call("complete_multipart_upload", **upload, **sums, MultipartUpload={"Parts": parts})
    shown = ("ChecksumCRC32", "ChecksumType", "ContentLength")
    head = script.call("head_object", *shown, Key="k", ChecksumMode="ENABLED")
    script.call("head_object", *shown, Key="k")
    plain = {script.s3.put_object(Bucket=script.bucket, Key="plain", Body=BODY)["ETag"] for _ in range(2)}
    script.answers.append((len(plain), head["ETag"][-3:]))


@pytest.mark.parametrize("encryption", ["AES256", "aws:kms"])
def test_s3_verifies_and_keeps_checksums_like_the_emulator(cloud: LocalCloud, encryption: str) -> None:
    # Given a bucket that encrypts with or without a KMS key
    fake, real = scripts = [Script(s3) for s3 in (FakeS3(START), cloud.client("s3"))]
    applied = {"SSEAlgorithm": encryption}
    if encryption == "aws:kms":
        applied["KMSMasterKeyID"] = cloud.client("kms").create_key()["KeyMetadata"]["Arn"]
        fake.s3.with_kms_key.add(fake.bucket)
    rules = {"Rules": [{"ApplyServerSideEncryptionByDefault": applied}]}
    real.s3.put_bucket_encryption(Bucket=real.bucket, ServerSideEncryptionConfiguration=rules)
    for script in scripts:
        upload_with_a_checksum(script)
    # Then checksums are the same, and the same bytes have the same ETag only without a KMS key
    expected: list[Any] = [[], "BadDigest", [CHECKSUM], [(1, True)], "BadDigest", "InvalidPart", []]
    expected += [[CHECKSUM, "FULL_OBJECT", len(BODY)], [None, None, len(BODY)]]
    assert fake.answers == real.answers == [*expected, (1 if encryption == "AES256" else 2, '-1"')]


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
    # The index has the open rows, in their order.
    for number in (3, 1, 2):
        row = {"id": f"m{number}", "open": f"{key.pk}#QUEUED", "open_order": str(number)}
        table.put(Key(f"{key.pk}-{number}", "manifest"), row, [])
    table.update(Key(f"{key.pk}-2", "manifest"), remove=("open", "open_order"))
    answers.append([item["id"] for item in table.query(f"{key.pk}#QUEUED", index=True)])
    return answers


def _transaction(client: Any, key: Key, state: State) -> Any:
    where = [Condition("state", "=", state)]
    actions = [
        update_action(key, {"state": State.SUPERSEDED}, remove=("owner",), conditions=where),
        put_action(Key(key.pk, f"successor-{state}"), {"state": State.QUEUED}),
    ]
    return _refused(lambda: LedgerTable(client, RESOURCES.ledger_table).transact(actions))


def _refused(write: Callable[[], bool]) -> str:
    return "done" if write() else "refused"


@pytest.fixture
def dynamodb(cloud: LocalCloud) -> Any:
    """A client of the emulator, with the ledger's table."""
    client = boto3.resource("dynamodb", endpoint_url=cloud.endpoint).meta.client
    with suppress(client.exceptions.ResourceInUseException):
        create_ledger_table(client, RESOURCES.ledger_table)
    return client


def test_dynamodb_answers_like_the_emulator(dynamodb: Any) -> None:
    assert dynamodb_answers(FakeDynamoDB()) == dynamodb_answers(dynamodb)
