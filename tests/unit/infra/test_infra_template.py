"""The template has the properties that the system's promises rely on."""

from __future__ import annotations

import json

import pytest

from infra.outputs import StackOutputs
from lake.errors import InvalidInputError
from tests.unit.infra.conftest import Assembly
from tests.unit.infra.resolved_template import ResolvedTemplate

JOB = "AWS::Glue::Job"


def test_every_resource_that_can_be_tagged_has_the_stage(assembly: Assembly) -> None:
    for kind in ("AWS::S3::Bucket", "AWS::Lambda::Function", "AWS::StepFunctions::StateMachine", "AWS::SQS::Queue"):
        for name, body in assembly.resources(kind).items():
            assert {"Key": "hybrid-router:stage", "Value": "test_ny"} in body["Tags"], name
    assert all(body["Tags"]["hybrid-router:stage"] == "test_ny" for body in assembly.resources(JOB).values())


def test_lambda_repeats_no_scheduled_invocation_that_has_failed(assembly: Assembly) -> None:
    template = ResolvedTemplate(assembly.template)
    scheduled = {body["Target"]["Arn"] for body in template.of_kind("AWS::Scheduler::Schedule").values()}
    functions = {name for name in template.of_kind("AWS::Lambda::Function") if template.arn(name) in scheduled}
    configured = {
        body["FunctionName"]: (body["MaximumRetryAttempts"], body["MaximumEventAgeInSeconds"])
        for body in template.of_kind("AWS::Lambda::EventInvokeConfig").values()
    }
    assert configured == dict.fromkeys(functions, (0, 900))
    assert len(functions) == 3


def test_events_of_a_slow_route_are_not_redelivered_to_it(assembly: Assembly) -> None:
    route = assembly.one("AWS::Lambda::Function", "Routerroute")
    queue = assembly.one("AWS::SQS::Queue", "ArrivalsQueue")
    assert queue["VisibilityTimeout"] == 2 * route["Timeout"] + 5
    assert queue["RedrivePolicy"]["maxReceiveCount"] == 20
    source = next(iter(assembly.resources("AWS::Lambda::EventSourceMapping").values()))
    assert source["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert (source["BatchSize"], source["MaximumBatchingWindowInSeconds"]) == (1000, 5)


@pytest.mark.parametrize("part", ["Routerroute", "Routerbackfill"])
def test_functions_that_own_arrivals_end_before_they_are_presumed_dead(assembly: Assembly, part: str) -> None:
    from router.ownership import OWNER_GRACE

    assert assembly.one("AWS::Lambda::Function", part)["Timeout"] < OWNER_GRACE.total_seconds()


def test_a_stream_window_opens_only_where_there_are_peak_hours(assembly: Assembly, other_assembly: Assembly) -> None:
    kind = "AWS::Scheduler::Schedule"
    assert assembly.one(kind, "StreamWindow")["State"] == "ENABLED"
    assert other_assembly.one(kind, "StreamWindow")["State"] == "DISABLED"
    assert other_assembly.one(kind, "Overnight")["State"] == "ENABLED"


def test_every_log_group_has_a_retention_time(assembly: Assembly) -> None:
    groups = assembly.resources("AWS::Logs::LogGroup")
    assert {name: body.get("RetentionInDays") for name, body in groups.items()} == dict.fromkeys(groups, 30)
    for name, function in assembly.resources("AWS::Lambda::Function").items():
        assert "LogGroup" in function.get("LoggingConfig", {}), f"{name} writes logs without a retention time"


def test_an_existing_bucket_is_used_and_not_created(other_assembly: Assembly) -> None:
    names = other_assembly.resources("AWS::S3::Bucket")
    assert len(names) == 3
    assert not any("Input" in name for name in names)
    notification = next(iter(other_assembly.resources("Custom::S3BucketNotifications").values()))
    assert notification["BucketName"] == "landing-zone-1"
    # Then its existing notifications stay.
    assert notification["Managed"] is False


def test_the_stack_fits_any_account_and_region(assembly: Assembly) -> None:
    manifest = json.loads((assembly.folder / "manifest.json").read_text())
    stacks = [body for body in manifest["artifacts"].values() if body["type"] == "aws:cloudformation:stack"]
    assert [stack["environment"] for stack in stacks] == ["aws://unknown-account/unknown-region"]


def test_outputs_are_read_back(assembly: Assembly) -> None:
    values = {name: str(number) for number, name in enumerate(assembly.template["Outputs"])}
    outputs = StackOutputs.from_outputs(values)
    assert outputs.resources.lake_bucket == values["LakeBucket"]
    assert outputs.to_outputs() == values


def test_outputs_of_another_version_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="has no output InputBucket"):
        StackOutputs.from_outputs({})
