"""The properties of the emulator that product and patches rely on: a version that differs fails here."""

from __future__ import annotations

import inspect
import json
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from importlib import import_module, metadata
from zoneinfo import ZoneInfo

import pytest
from botocore.exceptions import ClientError

from local.emulator_patches import PINNED_VERSION
from tests.e2e.waiting import wait_for

PATCH_POINTS = [
    ("services.glue", "_create_job", ["data"]),
    ("services.glue", "_update_job", ["data"]),
    ("services.glue", "_start_job_run", ["data"]),
    ("services.glue", "_batch_stop_job_run", ["data"]),
    ("services.cloudformation.provisioners", "_glue_job_fields", ["props"]),
    ("services.cloudformation.provisioners", "_cw_metric_alarm_record", ["name", "props"]),
    ("services.cloudwatch", "_dispatch_alarm_actions", ["alarm", "old_state", "new_state", "reason"]),
    ("services.cloudwatch", "_evaluate_parent_alarms", ["child", "seen"]),
    ("services.stepfunctions", "_execute_task", ["state_def", "raw_input", "execution", "ctx"]),
    ("services.stepfunctions", "_invoke_resource_with_timeout", ["resource", "input_data", "timeout"]),
    (
        "services.stepfunctions",
        "_run_distributed_map",
        ["state_def", "raw_input", "effective", "iterator", "execution", "ctx"],
    ),
    ("services.stepfunctions", "_read_map_items", ["reader", "effective", "ctx"]),
    ("services.lambda_svc", "_execute_function_warm", ["func", "event", "request_id"]),
    ("core.lambda_runtime", "_detect_runtime_binary", ["runtime"]),
    ("services.scheduler", "_tick_schedules", []),
    ("services.scheduler", "_at_time_epoch", ["expr"]),
    ("services.eventbridge", "_parse_cron_fields", ["expr"]),
    ("services.s3", "_dispatch", ["method", "bucket", "key", "headers", "body", "query_params"]),
    ("services.eventbridge", "_cron_next_fire", ["fields", "after_dt"]),
    ("services.dynamodb", "_set_item", ["table", "pk_val", "sk_val", "item"]),
    ("services.dynamodb", "_remove_item", ["table", "pk_val", "sk_val"]),
    ("services.dynamodb", "_query", ["data"]),
    ("services.dynamodb", "_scan", ["data"]),
    ("services.s3", "_create_multipart_upload", ["bucket_name", "key", "headers"]),
    ("services.s3", "_upload_part", ["bucket_name", "key", "body", "query_params", "headers"]),
    ("services.s3", "_complete_multipart_upload", ["bucket_name", "key", "body", "query_params", "headers"]),
    ("services.s3", "_composite_checksum", ["algorithm", "part_checksums"]),
    ("services.s3", "_put_object", ["bucket_name", "key", "body", "headers"]),
    ("services.s3", "_object_response_headers", ["obj", "bucket_name", "key", "include_checksums"]),
    (
        "core.iam_actions",
        "extract_resource_arn",
        ["service", "method", "path", "headers", "body", "query_params", "region", "account_id"],
    ),
    ("services.firehose", "ingest_from_kinesis_source", ["stream_arn", "records"]),
    ("services.firehose", "_put_s3_object", ["bucket", "key", "body"]),
    ("services.firehose", "_arrival_time", ["cfg"]),
    ("services.firehose", "_java_time", ["pattern", "t"]),
    ("services.firehose", "_evaluate_prefix", ["template", "t", "query_keys", "lambda_keys", "error_type"]),
    ("services.firehose", "_s3_bucket_from_arn", ["bucket_arn"]),
    ("services.stepfunctions", "_fail_execution", ["execution", "error", "cause"]),
    ("services.stepfunctions", "_nested_execution_failure", ["payload"]),
    ("services.cloudwatch", "_evaluate_all_alarms", []),
    ("services.cloudwatch", "record_metric", ["namespace", "metric_name", "value", "unit", "dimensions"]),
    ("services.sqs", "queue_policy_allows", ["queue_arn", "service", "source_arn", "source_account"]),
    ("services.sns", "topic_policy_allows", ["topic_arn", "service", "source_arn", "source_account"]),
]


def test_exact_version_is_installed():
    assert metadata.version("ministack") == PINNED_VERSION


@pytest.mark.parametrize(("module", "name", "parameters"), PATCH_POINTS)
def test_patch_point_exists_with_its_parameters(module, name, parameters):
    function = getattr(import_module(f"ministack.{module}"), name)
    assert list(inspect.signature(function).parameters) == parameters


TABLES = [
    ("app", "SERVICE_HANDLERS", "glue"),
    ("core.router", "SERVICE_PATTERNS", "glue"),
    ("core.iam_actions", "SERVICE_TO_IAM_NAMESPACE", "glue"),
    ("core.iam_actions", "_BOTOCORE_SERVICE_MAP", "batch"),
    ("services.cloudformation.provisioners", "_RESOURCE_HANDLERS", "AWS::Glue::Job"),
    ("services.stepfunctions", "_SERVICE_DISPATCH", "arn:aws:states:::sns:publish"),
]
"""Tables to which EMR Serverless is added, with an entry of another service."""


@pytest.mark.parametrize(("module", "name", "entry"), TABLES)
def test_table_is_extended_where_other_services_are(module, name, entry):
    table = getattr(import_module(f"ministack.{module}"), name)
    assert entry in table
    assert not [key for key in table if "emr-serverless" in key.lower() or "emrserverless" in key.lower()]


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
