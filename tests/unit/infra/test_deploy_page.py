"""docs/deploy.md counts what the stack creates."""

from __future__ import annotations

import re
from pathlib import Path

from tests.unit.infra.conftest import Assembly

PAGE = Path(__file__).parents[3] / "docs" / "deploy.md"
COUNTED = {
    "S3 buckets": "AWS::S3::Bucket",
    "DynamoDB table": "AWS::DynamoDB::GlobalTable",
    "SQS queues": "AWS::SQS::Queue",
    "Glue jobs": "AWS::Glue::Job",
    "state machines": "AWS::StepFunctions::StateMachine",
    "schedules": "AWS::Scheduler::Schedule",
    "alarms, topic, dashboard": "AWS::CloudWatch::Alarm",
}


def test_the_page_counts_what_the_stack_creates(assembly: Assembly) -> None:
    page = PAGE.read_text()
    for name, kind in COUNTED.items():
        number = re.search(rf"^\| {name} \| (\d+)", page, re.MULTILINE)
        assert number, name
        assert int(number[1]) == len(assembly.resources(kind)), name
    functions = re.search(r"^\| Lambda functions \| (\d+), and CDK's own", page, re.MULTILINE)
    assert functions
    assert int(functions[1]) + 1 == len(assembly.resources("AWS::Lambda::Function"))
