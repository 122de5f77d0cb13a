"""The permissions of a delivery stream of Firehose, and what makes it use them."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from tests.e2e.removals.removal import CLOUD, Removal
from tests.records import KINESIS_STREAM

if TYPE_CHECKING:
    from tests.e2e.removals.stage import Stage


def a_record(stage: Stage) -> str:
    kinesis = stage.scenario.cloud.client("kinesis")
    with suppress(kinesis.exceptions.ResourceInUseException):
        kinesis.create_stream(StreamName=KINESIS_STREAM, ShardCount=1)
    with stage.lacking():
        kinesis.put_record(StreamName=KINESIS_STREAM, Data=b"{}", PartitionKey="p")
        return stage.wait_until_logged("emulator.log")


OF_RECORDS = (
    Removal(
        "RecordsclicksRole",
        "kinesis:DescribeStream kinesis:GetShardIterator kinesis:GetRecords kinesis:ListShards s3:PutObject",
        "records wait in their stream",
        CLOUD,
        a_record,
    ),
)
