"""Resources that tests create without a template: a function of one file, and a queue instead of people."""

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

from local.cloud import LocalCloud
from local.isolation import AwsClient


def create_function(client: AwsClient, name: str, role: str, file: Path, variables: Mapping[str, str]) -> None:
    """Create a function whose handler is ``handler`` of the file."""
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.write(file, file.name)
    client.create_function(
        FunctionName=name,
        Runtime="python3.13",
        Role=role,
        Handler=f"{file.stem}.handler",
        Code={"ZipFile": code.getvalue()},
        Environment={"Variables": dict(variables)},
        Timeout=30,
    )


def subscribe_queue(cloud: LocalCloud, topic: str, name: str) -> str:
    """A new queue that gets the topic's messages; returns its URL."""
    sqs = cloud.client("sqs")
    queue = str(sqs.create_queue(QueueName=name)["QueueUrl"])
    arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": "sns.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": arn,
        "Condition": {"ArnEquals": {"aws:SourceArn": topic}},
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"Policy": policy})
    cloud.client("sns").subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)
    return queue
