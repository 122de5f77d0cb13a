"""S3, SQS and DynamoDB refuse the sizes and numbers that they refuse on AWS."""

from __future__ import annotations

import asyncio
import time
import uuid
from importlib import import_module

import pytest
from botocore.exceptions import ClientError

from local.emulator_patches import queue_limits
from local.isolation import BUCKET_PLACE

MIB = 1024 * 1024


@pytest.fixture(scope="module")
def s3(empty_cloud):
    client = empty_cloud.client("s3")
    client.create_bucket(Bucket="limits", CreateBucketConfiguration=BUCKET_PLACE)
    return client


@pytest.fixture(scope="module")
def table(empty_cloud):
    """The DynamoDB client; its table ``limits`` has 45 rows of nearly 400 KB of one partition."""
    client = empty_cloud.client("dynamodb")
    keys = [("pk", "HASH"), ("sk", "RANGE")]
    client.create_table(
        TableName="limits",
        KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in keys],
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name, _ in keys],
        BillingMode="PAY_PER_REQUEST",
    )
    for number in range(45):
        client.put_item(TableName="limits", Item=row(number, 400 * 1024 - 100))
    return client


@pytest.fixture
def queue(empty_cloud):
    return empty_cloud.client("sqs").create_queue(QueueName=uuid.uuid4().hex)["QueueUrl"]


def row(number, size):
    return {**key_of(number), "text": {"S": "x" * size}}


def key_of(number):
    return {"pk": {"S": "large"}, "sk": {"S": f"{number:03}"}}


def refused(code):
    return pytest.raises(ClientError, match=rf"\({code}\)")


@pytest.mark.parametrize("key", ["k" * 1025, "ü" * 513])
def test_key_has_at_most_1024_bytes_of_utf_8(s3, key):
    s3.put_object(Bucket="limits", Key=key[:512].ljust(512, "k"), Body=b"")
    with refused("KeyTooLongError"):
        s3.put_object(Bucket="limits", Key=key, Body=b"")
    with refused("KeyTooLongError"):
        s3.create_multipart_upload(Bucket="limits", Key=key)
    with refused("KeyTooLongError"):
        s3.get_object(Bucket="limits", Key=key)


def test_metadata_of_an_object_has_at_most_2_kib(s3):
    s3.put_object(Bucket="limits", Key="metadata", Metadata={"m": "x" * 2047})
    with refused("MetadataTooLarge"):
        s3.put_object(Bucket="limits", Key="metadata", Metadata={"m": "x" * 2048})


def test_conditions_of_a_put_are_those_that_s3_knows(s3):
    s3.put_object(Bucket="limits", Key="once", Body=b"first", IfNoneMatch="*")
    with refused("PreconditionFailed"):
        s3.put_object(Bucket="limits", Key="once", Body=b"second", IfNoneMatch="*")
    with refused("PreconditionFailed"):
        s3.put_object(Bucket="limits", Key="once", Body=b"second", IfMatch='"0"')
    with refused("NoSuchKey"):
        s3.put_object(Bucket="limits", Key="never", Body=b"second", IfMatch='"0"')
    with refused("NotImplemented"):
        s3.put_object(Bucket="limits", Key="once", Body=b"second", IfNoneMatch='"0"')


def test_parts_but_the_last_have_5_mib_and_come_in_order(s3):
    # Given an upload with a part of 5 MiB, one that is a byte smaller, and a small one
    upload = {"Bucket": "limits", "Key": "parts"}
    upload["UploadId"] = s3.create_multipart_upload(**upload)["UploadId"]
    bodies = (b"x" * 5 * MIB, b"x" * (5 * MIB - 1), b"x")
    etags = [s3.upload_part(**upload, PartNumber=n, Body=body)["ETag"] for n, body in enumerate(bodies, 1)]
    with refused("InvalidArgument"):
        s3.upload_part(**upload, PartNumber=10_001, Body=b"x")

    def complete(*numbers):
        parts = [{"PartNumber": number, "ETag": etags[number - 1]} for number in numbers]
        s3.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts})

    # When it is completed with a small part in the middle or out of order, then it is refused and stays open
    with refused("EntityTooSmall"):
        complete(1, 2, 3)
    with refused("InvalidPartOrder"):
        complete(2, 1)
    complete(1, 2)
    assert s3.head_object(Bucket="limits", Key="parts")["ContentLength"] == 10 * MIB - 1
    # When it is completed again, then the answer is the same
    complete(1, 2)


def test_listing_and_deletion_take_at_most_1000_objects(s3):
    assert s3.list_objects_v2(Bucket="limits", MaxKeys=2000)["MaxKeys"] == 1000
    with refused("MalformedXML"):
        s3.delete_objects(Bucket="limits", Delete={"Objects": [{"Key": str(n)} for n in range(1001)]})


def test_object_with_a_customers_key_needs_it_for_every_read(s3):
    key = {"SSECustomerAlgorithm": "AES256", "SSECustomerKey": b"k" * 32}
    # Given a bucket that lets such objects in, which a new bucket does not
    with refused("AccessDenied"):
        s3.put_object(Bucket="limits", Key="secret", Body=b"x", **key)
    with refused("AccessDenied"):
        s3.create_multipart_upload(Bucket="limits", Key="secret", **key)
    own = {"SSEAlgorithm": "AES256"}
    rule = {"ApplyServerSideEncryptionByDefault": own, "BlockedEncryptionTypes": {"EncryptionType": ["NONE"]}}
    s3.put_bucket_encryption(Bucket="limits", ServerSideEncryptionConfiguration={"Rules": [rule]})
    # When one is put, then it needs the key
    s3.put_object(Bucket="limits", Key="secret", Body=b"x", **key)
    with refused("InvalidRequest"):
        s3.get_object(Bucket="limits", Key="secret")
    with refused("AccessDenied"):
        s3.get_object(Bucket="limits", Key="secret", **{**key, "SSECustomerKey": b"j" * 32})


def test_message_and_batch_have_at_most_1_mib(empty_cloud, queue):
    sqs = empty_cloud.client("sqs")
    sqs.send_message(QueueUrl=queue, MessageBody="x" * MIB)
    with refused("InvalidParameterValue"):
        sqs.send_message(QueueUrl=queue, MessageBody="ü" * (MIB // 2) + "x")
    halves = [{"Id": str(n), "MessageBody": "x" * (MIB // 2 + n)} for n in range(2)]
    with refused("AWS.SimpleQueueService.BatchRequestTooLong"):
        sqs.send_message_batch(QueueUrl=queue, Entries=halves)
    with refused("AWS.SimpleQueueService.TooManyEntriesInBatchRequest"):
        sqs.send_message_batch(QueueUrl=queue, Entries=[{"Id": str(n), "MessageBody": "x"} for n in range(11)])


def test_message_is_invisible_for_at_most_12_hours(empty_cloud, queue):
    sqs = empty_cloud.client("sqs")
    sqs.send_message(QueueUrl=queue, MessageBody="x")
    with refused("InvalidParameterValue"):
        sqs.receive_message(QueueUrl=queue, VisibilityTimeout=43_201)
    with refused("InvalidParameterValue"):
        sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=21)
    (message,) = sqs.receive_message(QueueUrl=queue, VisibilityTimeout=43_200)["Messages"]
    received = {"QueueUrl": queue, "ReceiptHandle": message["ReceiptHandle"]}
    with refused("InvalidParameterValue"):
        sqs.change_message_visibility(**received, VisibilityTimeout=43_201)


def test_queue_has_at_most_120_000_messages_in_flight(monkeypatch):
    # Given the patched functions, and a queue with 119,999 messages in flight and two that are visible
    sqs = import_module("ministack.services.sqs")
    monkeypatch.setattr(sqs, "_collect_msgs", sqs._collect_msgs)
    monkeypatch.setattr(sqs, "_HANDLERS", dict(sqs._HANDLERS))
    queue_limits.patch()
    message = {"visible_at": 0.0, "enqueued_at": time.time(), "receive_count": 0, "first_receive_at": None}
    flying = {**message, "visible_at": time.time() + 3600, "receive_count": 1}
    queue = {"is_fifo": False, "attributes": {}, "messages": [flying] * 119_999 + [dict(message), dict(message)]}
    for name, replacement in (("_ensure_msg_fields", lambda _: None), ("_get_q", lambda *_: queue)):
        monkeypatch.setattr(sqs, name, replacement)
    for name in ("_expire_retained", "_dlq_sweep"):
        monkeypatch.setattr(sqs, name, lambda _: None)
    # When messages are received, then one is the last
    assert len(sqs._collect_msgs(queue, 10, 30)) == 1
    assert sqs._collect_msgs(queue, 10, 30) == []
    # When a client asks once, then that is an error
    with pytest.raises(sqs._Err, match="in flight"):
        asyncio.run(sqs._HANDLERS["ReceiveMessage"]({"QueueUrl": "any"}, ""))


def test_row_key_and_transaction_have_their_sizes(table):
    long_keys = ({**key_of(0), "pk": {"S": "p" * 2049}}, {**key_of(0), "sk": {"S": "s" * 1025}})
    for item in (row(0, 400 * 1024), *long_keys):
        with refused("ValidationException"):
            table.put_item(TableName="limits", Item=item)

    def transact(numbers, size=1):
        table.transact_write_items(
            TransactItems=[{"Put": {"TableName": "limits", "Item": row(1000 + n, size)}} for n in numbers]
        )

    transact(range(100))
    for numbers, size in ((range(101), 1), ((1, 1), 1), (range(11), 400_000)):
        with refused("ValidationException"):
            transact(numbers, size)


def test_page_of_a_query_or_scan_has_at_most_1_mb_before_its_filter(table):
    condition = {"KeyConditionExpression": "pk = :pk", "FilterExpression": "attribute_not_exists(pk)"}
    page = table.query(TableName="limits", **condition, ExpressionAttributeValues={":pk": {"S": "large"}})
    assert (page["Count"], page["ScannedCount"]) == (0, 2)
    assert page["LastEvaluatedKey"] == key_of(1)
    assert "LastEvaluatedKey" in table.scan(TableName="limits")


def test_batch_of_reads_returns_at_most_16_mb_and_names_the_other_keys(table):
    # When 45 rows of nearly 400 KB are read at once
    keys = [key_of(number) for number in range(45)]
    request = {"Keys": keys, "ProjectionExpression": "sk"}
    answer = table.batch_get_item(RequestItems={"limits": request})
    # Then the first 40 come, and the other keys are returned with all that a next request needs
    assert len(answer["Responses"]["limits"]) == 40
    assert answer["UnprocessedKeys"] == {"limits": {**request, "Keys": keys[40:]}}
    assert len(table.batch_get_item(RequestItems=answer["UnprocessedKeys"])["Responses"]["limits"]) == 5
    with refused("ValidationException"):
        table.batch_get_item(RequestItems={"limits": {"Keys": [key_of(number) for number in range(101)]}})
