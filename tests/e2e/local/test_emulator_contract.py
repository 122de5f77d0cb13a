"""The properties of the emulator that product and patches rely on: a version that differs fails here."""

from __future__ import annotations

import json
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from importlib import metadata
from zoneinfo import ZoneInfo

import pytest
from botocore.exceptions import ClientError

from local.emulator_patches import PINNED_VERSION
from tests.e2e.waiting import wait_for


def test_exact_version_is_installed():
    assert metadata.version("ministack") == PINNED_VERSION


def test_limits_of_a_job_come_through_cloudformation(probe):
    jobs = {name: probe.client("glue").get_job(JobName=name)["Job"] for name in ("probe-batch", "probe-stream")}
    assert jobs["probe-batch"]["ExecutionProperty"] == {"MaxConcurrentRuns": 2}
    assert jobs["probe-batch"]["Timeout"] == 240
    assert jobs["probe-stream"]["ExecutionProperty"] == {"MaxConcurrentRuns": 1}
    assert "Timeout" not in jobs["probe-stream"]


def test_put_reaches_the_function_and_a_partial_failure_ends_in_the_dead_letter_queue(probe):
    # When two objects arrive, and the function reports the message of one as failed
    s3, bucket = probe.client("s3"), probe.outputs["Bucket"]
    for key in ("in/good ü+%.json", "in/bad.json"):
        s3.put_object(Bucket=bucket, Key=key, Body=b"{}")
    # Then the good one is recorded, and the bad one is in the dead-letter queue after two attempts
    table = probe.client("dynamodb")
    wait_for(
        "the row of the good object",
        lambda: table.get_item(TableName=probe.outputs["Table"], Key={"pk": {"S": "in/good ü+%.json"}}).get("Item"),
    )
    sqs = probe.client("sqs")
    dead = wait_for("a dead letter", lambda: sqs.receive_message(QueueUrl=probe.outputs["Dead"]).get("Messages"))
    assert json.loads(dead[0]["Body"])["Records"][0]["s3"]["object"]["key"] == "in/bad.json"
    assert "saw in/bad.json" in next((probe.cloud.logs_dir / "lambda").glob("Probe-Route*.log")).read_text()


def test_multipart_upload_is_invisible_until_completed_and_can_complete_only_once(probe):
    # Given an upload with its one part
    s3, bucket, key = probe.client("s3"), probe.outputs["Bucket"], "lake/part.parquet"
    upload = s3.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"]
    etag = s3.upload_part(Bucket=bucket, Key=key, UploadId=upload, PartNumber=1, Body=b"rows")["ETag"]
    assert "Contents" not in s3.list_objects_v2(Bucket=bucket, Prefix=key)
    complete = {"Bucket": bucket, "Key": key, "UploadId": upload}
    # When it is completed with a wrong part, then it is refused
    with pytest.raises(ClientError, match="InvalidPart"):
        s3.complete_multipart_upload(**complete, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": '"0"'}]})
    # When it is completed, then the object is there, and completing again after its deletion creates nothing
    parts = {"Parts": [{"PartNumber": 1, "ETag": etag}]}
    s3.complete_multipart_upload(**complete, MultipartUpload=parts)
    assert s3.head_object(Bucket=bucket, Key=key)["ETag"].endswith('-1"')
    s3.delete_object(Bucket=bucket, Key=key)
    with suppress(s3.exceptions.NoSuchUpload):
        s3.complete_multipart_upload(**complete, MultipartUpload=parts)
    assert "Contents" not in s3.list_objects_v2(Bucket=bucket, Prefix=key)


def test_one_of_many_concurrent_conditional_puts_wins(probe):
    table, name = probe.client("dynamodb"), probe.outputs["Table"]

    def put(owner: int) -> bool:
        try:
            item = {"pk": {"S": "contested"}, "owner": {"N": str(owner)}}
            table.put_item(TableName=name, Item=item, ConditionExpression="attribute_not_exists(pk)")
        except table.exceptions.ConditionalCheckFailedException:
            return False
        return True

    with ThreadPoolExecutor(16) as pool:
        outcomes = list(pool.map(put, range(64)))
    assert outcomes.count(True) == 1
    owner = table.get_item(TableName=name, Key={"pk": {"S": "contested"}}, ConsistentRead=True)["Item"]["owner"]["N"]
    assert outcomes[int(owner)]


def test_concurrent_transactions_are_all_or_nothing(probe):
    table, name, group = probe.client("dynamodb"), probe.outputs["Table"], uuid.uuid4().hex

    def transact(owner: int) -> bool:
        rows = (f"{group}-{owner}", f"{group}-lock")
        puts = [
            {"Put": {"TableName": name, "Item": {"pk": {"S": key}}, "ConditionExpression": "attribute_not_exists(pk)"}}
            for key in rows
        ]
        try:
            table.transact_write_items(TransactItems=puts)
        except table.exceptions.TransactionCanceledException:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(transact, range(32)))
    assert outcomes.count(True) == 1
    written = [item["pk"]["S"] for item in table.scan(TableName=name)["Items"] if item["pk"]["S"].startswith(group)]
    assert sorted(written) == sorted([f"{group}-{outcomes.index(True)}", f"{group}-lock"])


def test_schedule_fires_at_the_local_time_of_its_zone(probe):
    # Given the deployed cron schedule, with its zone
    scheduler, states = probe.client("scheduler"), probe.client("stepfunctions")
    schedule = scheduler.get_schedule(Name="nightly")
    assert schedule["ScheduleExpressionTimezone"] == "Europe/Berlin"
    # When it is moved to a few seconds from now, in local time
    soon = (datetime.now(UTC) + timedelta(seconds=2)).astimezone(ZoneInfo("Europe/Berlin"))
    key = probe.put_json("items/scheduled.json", [])
    target = {
        **schedule["Target"],
        "Input": json.dumps({"bucket": probe.outputs["Bucket"], "key": key, "by": "schedule"}),
    }
    scheduler.update_schedule(
        Name="nightly",
        ScheduleExpression=f"at({soon:%Y-%m-%dT%H:%M:%S})",
        ScheduleExpressionTimezone="Europe/Berlin",
        FlexibleTimeWindow={"Mode": "OFF"},
        Target=target,
    )

    # Then the machine has run with the schedule's input
    def started():
        executions = states.list_executions(stateMachineArn=probe.outputs["Overnight"])["executions"]
        described = (states.describe_execution(executionArn=entry["executionArn"]) for entry in executions)
        return [each for each in described if json.loads(each["input"]).get("by") == "schedule"]

    assert len(wait_for("the scheduled execution", started)) == 1
