"""The properties of the emulator that product and patches rely on: a version that differs fails here."""

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from local.errors import LocalCloudError
from local.limits import Limits


@pytest.mark.parametrize("package", ["lake", "local", "ministack", "pyarrow", "pytest", "rich"])
def test_package_that_is_not_in_the_asset_cannot_be_imported(probe, package):
    assert probe.invoke({"import": package})["errorType"] == "ModuleNotFoundError"


class OpenItems:
    """A table with an index of the items that have the attribute ``open``."""

    def __init__(self, client) -> None:
        self.client = client
        self.name = f"lag-{uuid.uuid4().hex}"
        names = ("pk", "open")
        client.create_table(
            TableName=self.name,
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in names],
            BillingMode="PAY_PER_REQUEST",
            GlobalSecondaryIndexes=[
                {
                    "IndexName": "open",
                    "KeySchema": [{"AttributeName": "open", "KeyType": "HASH"}],
                    "Projection": {"ProjectionType": "ALL"},
                }
            ],
        )

    def put(self, key: str) -> None:
        self.client.put_item(TableName=self.name, Item={"pk": {"S": key}, "open": {"S": "yes"}})

    def close(self, key: str) -> None:
        update = {"UpdateExpression": "REMOVE #o", "ExpressionAttributeNames": {"#o": "open"}}
        self.client.update_item(TableName=self.name, Key={"pk": {"S": key}}, **update)

    def in_index(self) -> list[str]:
        condition = {"KeyConditionExpression": "#o = :o", "ExpressionAttributeNames": {"#o": "open"}}
        values = {":o": {"S": "yes"}}
        answer = self.client.query(TableName=self.name, IndexName="open", ExpressionAttributeValues=values, **condition)
        return [item["pk"]["S"] for item in answer["Items"]]

    def in_table(self) -> list[str]:
        return [item["pk"]["S"] for item in self.client.scan(TableName=self.name)["Items"] if "open" in item]


@pytest.fixture
def items(cloud):
    yield OpenItems(cloud.client("dynamodb"))
    cloud.limit(Limits(index_lag_seconds=0))


def test_the_index_shows_every_kind_of_write_after_its_lag(cloud, items):
    for write, before, after in (
        (lambda: items.put("a"), [], ["a"]),
        (lambda: items.close("a"), ["a"], []),
        (lambda: items.put("a"), [], ["a"]),
        (lambda: items.client.delete_item(TableName=items.name, Key={"pk": {"S": "a"}}), ["a"], []),
    ):
        # When something is written, then a read of the table shows it, and the index does not yet
        cloud.limit(Limits(index_lag_seconds=3600))
        write()
        assert (items.in_table(), items.in_index()) == (after, before)
        # And when its time has come, then the index shows it too
        cloud.limit(Limits(index_lag_seconds=0))
        assert items.in_index() == after


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
    template = {"Resources": {"Thing": {"Type": "AWS::Nothing::Thing", "Properties": {}}}}
    with pytest.raises(LocalCloudError, match="AWS::Nothing::Thing"):
        cloud.deploy(_assembly(tmp_path / "out", "Failing", template))
