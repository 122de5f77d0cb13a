"""The requests of a delivery stream of Firehose, with its roles.

Amazon Data Firehose Developer Guide, "Controlling access with Amazon Data Firehose".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tests.unit.infra.resolved_template import ACCOUNT, REGION

KIND = "AWS::KinesisFirehose::DeliveryStream"
SERVICE = "firehose.amazonaws.com"
READ_KINESIS = ("DescribeStream", "GetShardIterator", "GetRecords", "ListShards")
READ_CLUSTER = (
    "kafka:GetBootstrapBrokers",
    "kafka:DescribeCluster",
    "kafka:DescribeClusterV2",
    "kafka-cluster:Connect",
)
READ_TOPIC = ("DescribeTopic", "DescribeTopicDynamicConfiguration", "ReadData")
OF_BUCKET = ("GetBucketLocation", "ListBucket", "ListBucketMultipartUploads")
OF_OBJECT = ("AbortMultipartUpload", "GetObject", "PutObject")
ASSUMED_FOR = {"sts:externalid": ACCOUNT}


def requests(name: str, body: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str, str, str, Mapping[str, str]]]:
    """The fields of an ``Edge`` for each request of the delivery stream with this logical id."""
    for action, resource, role, keys in _requests(body):
        yield name, name, SERVICE, action, resource, role, keys


def _requests(body: Mapping[str, Any]) -> Iterator[tuple[str, str, str, Mapping[str, str]]]:
    target = body["ExtendedS3DestinationConfiguration"]
    role = target["RoleARN"]
    for action in OF_BUCKET:
        yield f"s3:{action}", target["BucketARN"], role, ASSUMED_FOR
    for prefix in (target["Prefix"], target["ErrorOutputPrefix"]):
        key = f"{prefix.partition('!{')[0]}2026/11/23/10/any"
        for action in OF_OBJECT:
            yield f"s3:{action}", f"{target['BucketARN']}/{key}", role, ASSUMED_FOR
    log = target["CloudWatchLoggingOptions"]
    group = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:{log['LogGroupName']}"
    yield "logs:PutLogEvents", f"{group}:log-stream:{log['LogStreamName']}", role, ASSUMED_FOR
    if kinesis := body.get("KinesisStreamSourceConfiguration"):
        for action in READ_KINESIS:
            yield f"kinesis:{action}", kinesis["KinesisStreamARN"], kinesis["RoleARN"], ASSUMED_FOR
    if msk := body.get("MSKSourceConfiguration"):
        yield from _requests_of_topic(msk)


def _requests_of_topic(msk: Mapping[str, Any]) -> Iterator[tuple[str, str, str, Mapping[str, str]]]:
    cluster, reader = msk["MSKClusterARN"], msk["AuthenticationConfiguration"]["RoleARN"]
    place, _, name = cluster.partition(":cluster/")
    for action in READ_CLUSTER:
        yield action, cluster, reader, {}
    for action in READ_TOPIC:
        yield f"kafka-cluster:{action}", f"{place}:topic/{name}/{msk['TopicName']}", reader, {}
    yield "kafka-cluster:DescribeGroup", f"{place}:group/{name}/any", reader, {}
