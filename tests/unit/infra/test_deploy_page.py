"""docs/deploy.md counts what the stack creates."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from cli.cost.cost_estimate import S3_READ

if TYPE_CHECKING:
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


def test_every_mention_of_the_alarms_has_their_number_and_price(assembly: Assembly) -> None:
    alarms = len(assembly.resources("AWS::CloudWatch::Alarm"))
    mentions = re.findall(r"(\d+) alarms(?:, a dashboard \| at most \$(\d+\.\d+))?", PAGE.read_text())
    # CloudWatch's list price a month: 0.10 dollars for each metric of an alarm.
    metrics = sum(
        sum("MetricStat" in item for item in body.get("Metrics", [])) or 1
        for body in assembly.resources("AWS::CloudWatch::Alarm").values()
    )
    assert mentions == [(str(alarms), f"{metrics * 0.10:.2f}")]


def test_the_price_of_urgent_tags_and_metadata_is_that_of_the_cost_estimate() -> None:
    prices = re.search(
        r"requests of either kind are \$(.+?) \(.*cost \$(.+?) with one .* up to \$(.+?) with both", PAGE.read_text()
    )
    assert prices
    million = S3_READ * 1_000_000
    assert prices.groups() == (f"{million:.2f}", f"{million:.2f}", f"{2 * million:.2f}")
