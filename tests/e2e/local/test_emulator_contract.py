"""The properties of the emulator that product and patches rely on: a different version fails here."""

import json
import uuid
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from local.errors import LocalCloudError
from local.isolation import BUCKET_PLACE
from local.limits import Limits
from tests.e2e.local.conftest import JOB
from tests.e2e.waiting import wait_for
from tests.ledger_table import create_ledger_table


@pytest.mark.parametrize("package", ["lake", "local", "ministack", "pyarrow", "pytest", "rich"])
def test_package_that_is_not_in_the_asset_cannot_be_imported(probe, package):
    assert probe.invoke({"import": package})["errorType"] == "ModuleNotFoundError"


def test_the_index_shows_every_kind_of_write_after_its_lag(cloud):
    client, name, key = cloud.client("dynamodb"), f"lag-{uuid.uuid4().hex}", {"pk": {"S": "a"}, "sk": {"S": "a"}}
    create_ledger_table(client, name)
    is_open = {":o": {"S": "yes"}}

    def found():
        """Whether the table has the item as an open one, and whether its index has it."""
        stored = client.get_item(TableName=name, Key=key).get("Item", {})
        query = {"KeyConditionExpression": "#o = :o", "ExpressionAttributeValues": is_open}
        listed = client.query(TableName=name, IndexName="open", ExpressionAttributeNames={"#o": "open"}, **query)
        return "open" in stored, listed["Items"] != []

    put = partial(client.put_item, TableName=name, Item={**key, "open": is_open[":o"], "open_order": {"S": "1"}})
    close = partial(client.update_item, UpdateExpression="REMOVE #o", ExpressionAttributeNames={"#o": "open"})
    try:
        for write, after in (
            (put, True),
            (partial(close, TableName=name, Key=key), False),
            (put, True),
            (partial(client.delete_item, TableName=name, Key=key), False),
        ):
            # When an item is written, then a read of the table shows it, and the index does not yet
            cloud.limit(Limits(index_lag_seconds=3600))
            write()
            assert found() == (after, not after)
            # And when the lag is over, then the index shows it too
            cloud.limit(Limits(index_lag_seconds=0))
            assert found() == (after, after)
    finally:
        cloud.limit(Limits(index_lag_seconds=0))


def test_a_range_of_a_version_has_no_checksum_of_the_whole_object(cloud):
    # Given an object with the checksum that boto3 adds by itself
    client, bucket = cloud.client("s3"), f"ranges-{uuid.uuid4().hex}"
    client.create_bucket(Bucket=bucket, CreateBucketConfiguration=BUCKET_PLACE)
    client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    version = client.put_object(Bucket=bucket, Key="a", Body=b"0123456789")["VersionId"]
    # When, then boto3 does not compare it with the range
    for given in ({}, {"VersionId": version}):
        assert client.get_object(Bucket=bucket, Key="a", Range="bytes=2-4", **given)["Body"].read() == b"234"


def _assembly(folder: Path, name: str, template: dict[str, Any]) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "template.json").write_text(json.dumps(template))
    stack = {"type": "aws:cloudformation:stack", "properties": {"templateFile": "template.json"}}
    (folder / "manifest.json").write_text(json.dumps({"artifacts": {name: stack}}))
    return folder


def test_limits_of_a_job_come_through_cloudformation(cloud, tmp_path):
    command = {"Name": "glueetl", "ScriptLocation": "s3://code/job.py"}
    own = {"limited": {"ExecutionProperty": {"MaxConcurrentRuns": 2}, "Timeout": 240}, "plain": {}}
    jobs = {
        name: {"Type": "AWS::Glue::Job", "Properties": {"Name": name, "Role": "role", "Command": command, **limits}}
        for name, limits in own.items()
    }
    cloud.deploy(_assembly(tmp_path / "out", "Limited", {"Resources": jobs}))
    limited, plain = (cloud.client("glue").get_job(JobName=name)["Job"] for name in own)
    assert (limited["ExecutionProperty"], limited["Timeout"]) == ({"MaxConcurrentRuns": 2}, 240)
    assert (plain["ExecutionProperty"], plain.get("Timeout")) == ({"MaxConcurrentRuns": 1}, None)


def test_failed_stack_names_the_resource_and_the_reason(cloud, tmp_path):
    # Given a stack whose rollback has more events than one page
    queues: dict[str, Any] = {f"Queue{number}": {"Type": "AWS::SQS::Queue"} for number in range(60)}
    broken = {"Type": "Custom::Thing", "DependsOn": list(queues), "Properties": {"ServiceToken": "nobody"}}
    # When, then
    with pytest.raises(LocalCloudError, match=r"Thing \(Custom::Thing\).*nobody"):
        cloud.deploy(_assembly(tmp_path / "out", "Failing", {"Resources": queues | {"Thing": broken}}))


MAX_BYTES = 262_144
"""Bytes of a state, at which a state machine fails as on AWS."""
CATCH_ALL = [{"ErrorEquals": ["States.ALL"], "Next": "Caught"}]
CAUGHT = {"Type": "Pass", "Output": "caught", "End": True}


@pytest.fixture
def ended(probe):
    """Run the states, the first of which is named Start, and return the ended execution."""
    client = probe.cloud.client("stepfunctions")

    def run(states):
        definition = json.dumps({"QueryLanguage": "JSONata", "StartAt": "Start", "States": states})
        machine = client.create_state_machine(name=uuid.uuid4().hex, definition=definition, roleArn=probe.role)
        arn = client.start_execution(stateMachineArn=machine["stateMachineArn"])["executionArn"]
        wait_for(f"the end of {arn}", lambda: client.describe_execution(executionArn=arn)["status"] != "RUNNING")
        return client.describe_execution(executionArn=arn)

    return run


def text_of(size: int) -> str:
    """A JSONata expression for a string that is ``size`` bytes long as JSON."""
    return f"{{% $pad('', {(size - 2) // 2}, 'é') & '{'x' * (size % 2)}' %}}"


def distributed(states, **fields):
    processor = {"ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}, "StartAt": "Item"}
    return {"Type": "Map", "ItemProcessor": {**processor, "States": states}, **fields}


@pytest.mark.parametrize(("size", "status"), [(MAX_BYTES, "SUCCEEDED"), (MAX_BYTES + 1, "FAILED")])
def test_output_of_a_state_has_at_most_256_kib_of_utf_8(ended, size, status):
    end = ended({"Start": {"Type": "Pass", "Output": text_of(size), "End": True}})
    assert (end["status"], end.get("error")) == (status, None if status == "SUCCEEDED" else "States.DataLimitExceeded")


def test_arguments_of_a_task_that_are_too_large_are_caught_by_no_wildcard(ended):
    # Given a task whose arguments are too large, with Retry and Catch for all errors
    task = {
        "Type": "Task",
        "Resource": "arn:aws:states:::sns:publish",
        "Arguments": {"TopicArn": "none", "Message": text_of(MAX_BYTES)},
        "Retry": [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 1, "MaxAttempts": 3}],
        "Catch": CATCH_ALL,
        "End": True,
    }
    # When it runs, then neither handles the error
    end = ended({"Start": task, "Caught": CAUGHT})
    assert (end["status"], end["error"]) == ("FAILED", "States.DataLimitExceeded")
    # When a Catch names it, then that Catch does
    named = {**task, "Catch": [{"ErrorEquals": ["States.DataLimitExceeded"], "Next": "Caught"}]}
    assert ended({"Start": named, "Caught": CAUGHT})["output"] == '"caught"'


@pytest.mark.parametrize(("bytes_each", "status"), [(25_000, "SUCCEEDED"), (27_000, "FAILED")])
def test_results_of_all_children_together_have_at_most_256_kib(ended, bytes_each, status):
    # Given a Map that ends with an empty output, but whose ten children return something
    item = {"Item": {"Type": "Pass", "Output": text_of(bytes_each), "End": True}}
    each = distributed(item, Items=list(range(10)), Output={}, Catch=CATCH_ALL, End=True)
    # Then the children's results count before Output is applied
    assert ended({"Start": each, "Caught": CAUGHT})["status"] == status


def test_map_feature_that_the_local_cloud_lacks_fails_loudly(ended):
    end = ended({"Start": distributed({"Item": CAUGHT}, Items=[1], ResultWriter={}, End=True)})
    assert (end["status"], end["cause"]) == ("FAILED", "The local cloud does not support ResultWriter.")


def test_task_that_times_out_stops_its_glue_run(probe, ended):
    # Given a machine whose only state limits a hanging run to two seconds
    arguments = {"JobName": JOB, "Arguments": {"--task": "hang"}}
    task = {"Type": "Task", "Resource": "arn:aws:states:::glue:startJobRun.sync", "Arguments": arguments}
    # When the time is over, then the execution fails and the run is stopped
    end = ended({"Start": {**task, "TimeoutSeconds": 2, "End": True}})
    assert (end["status"], end["error"]) == ("FAILED", "States.Timeout"), end["cause"]
    glue = probe.cloud.client("glue")
    wait_for("the end of the run", lambda: glue.get_job_runs(JobName=JOB)["JobRuns"][0]["JobRunState"] == "STOPPED")
