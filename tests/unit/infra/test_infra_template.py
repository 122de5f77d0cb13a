"""The template has the properties that the system's promises rely on."""

import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from aws_cdk import App, Stack
from aws_cdk.assertions import Template
from ministack.core.iam_evaluator import EvalContext, _conditions_met  # type: ignore[import-untyped]

from infra.names import StackOutputs
from infra.storage import Storage
from lake.errors import InvalidInputError
from lake.manifest import Lane, ObjectVersion
from lake.settings import EncryptionSettings, InputSettings, Settings
from lake.settings.records import FAILED_RECORDS
from router.route.decide_lane import decide_lane
from tests.records import RECORDS
from tests.unit.infra.conftest import KEY, Assembly

JOB = "AWS::Glue::Job"
DELIVERY_STREAM = "AWS::KinesisFirehose::DeliveryStream"


def test_every_resource_that_can_be_tagged_has_the_stage(assembly: Assembly) -> None:
    for kind in ("AWS::S3::Bucket", "AWS::Lambda::Function", "AWS::StepFunctions::StateMachine", "AWS::SQS::Queue"):
        for name, body in assembly.resources(kind).items():
            assert {"Key": "hybrid-router:stage", "Value": "test_ny"} in body["Tags"], name
    assert all(body["Tags"]["hybrid-router:stage"] == "test_ny" for body in assembly.resources(JOB).values())


def test_lambda_repeats_no_scheduled_invocation_that_has_failed(assembly: Assembly) -> None:
    scheduled = {body["Target"]["Arn"] for body in assembly.resources("AWS::Scheduler::Schedule").values()}
    functions = {name for name in assembly.resources("AWS::Lambda::Function") if assembly.arn(name) in scheduled}
    configured = {
        body["FunctionName"]: (body["MaximumRetryAttempts"], body["MaximumEventAgeInSeconds"])
        for body in assembly.resources("AWS::Lambda::EventInvokeConfig").values()
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
    from router.ownership.resolve import OWNER_GRACE

    assert assembly.one("AWS::Lambda::Function", part)["Timeout"] < OWNER_GRACE.total_seconds()


def test_a_stream_window_opens_only_where_there_are_peak_hours(assembly: Assembly, other_assembly: Assembly) -> None:
    kind = "AWS::Scheduler::Schedule"
    assert assembly.one(kind, "StreamWindow")["State"] == "ENABLED"
    assert other_assembly.one(kind, "StreamWindow")["State"] == "DISABLED"
    assert other_assembly.one(kind, "Overnight")["State"] == "ENABLED"
    # And each schedule follows the stage's clock
    zones = {body["ScheduleExpressionTimezone"] for body in assembly.resources(kind).values()}
    assert zones == {"America/New_York"}


def test_every_log_group_has_a_retention_time(assembly: Assembly) -> None:
    groups = assembly.resources("AWS::Logs::LogGroup")
    assert {name: body.get("RetentionInDays") for name, body in groups.items()} == dict.fromkeys(groups, 30)
    for name, function in assembly.resources("AWS::Lambda::Function").items():
        assert "LogGroup" in function.get("LoggingConfig", {}), f"{name} writes logs without a retention time"


def test_an_existing_bucket_is_used_and_not_created(assembly: Assembly, other_assembly: Assembly) -> None:
    names = other_assembly.resources("AWS::S3::Bucket")
    assert len(names) == 3
    assert not any("Input" in name for name in names)
    ((name, notification),) = other_assembly.resources("Custom::S3BucketNotifications").items()
    assert notification["BucketName"] == "landing-zone-1"
    # Then its existing notifications stay.
    assert notification["Managed"] is False
    # And a stage that changes its bucket removes its notification from the previous one
    assert "landingzone1" in name
    assert name not in assembly.resources("Custom::S3BucketNotifications")


def test_the_stack_fits_any_account_and_region(assembly: Assembly) -> None:
    manifest = json.loads((assembly.folder / "manifest.json").read_text())
    stacks = [body for body in manifest["artifacts"].values() if body["type"] == "aws:cloudformation:stack"]
    assert [stack["environment"] for stack in stacks] == ["aws://unknown-account/unknown-region"]


def test_outputs_of_another_version_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="has no output InputBucket"):
        StackOutputs.from_outputs({})


BUCKET = "AWS::S3::Bucket"
BUCKET_POLICY = "AWS::S3::BucketPolicy"
LEDGER = "AWS::DynamoDB::GlobalTable"
FOREIGN_KEY = KEY.replace("111122223333", "999988887777")


@pytest.fixture(scope="module")
def other_storage() -> dict[str, Any]:
    """The template of a stage with a KMS key, whose input expires."""
    settings = Settings("other", encryption=EncryptionSettings(kms_key=KEY), input=InputSettings(keep_days=90))
    stack = Stack(App(), "other")
    Storage(stack, "Storage", settings)
    return dict(Template.from_stack(stack).to_json())


def bucket_of(assembly: Assembly, name: str) -> tuple[bool, dict[str, Any]]:
    """Whether the bucket keeps versions, and its lifecycle rules by id, without ids and status."""
    bucket = assembly.one(BUCKET, f"Storage{name}")
    return bucket.get("VersioningConfiguration") == {"Status": "Enabled"}, lifecycle_rules(bucket)


def lifecycle_rules(bucket: dict[str, Any]) -> dict[str, Any]:
    rules = bucket["LifecycleConfiguration"]["Rules"]
    assert all(rule["Status"] == "Enabled" for rule in rules)
    return {rule["Id"]: {name: rule[name] for name in rule.keys() - {"Id", "Status"}} for rule in rules}


UPLOADS = {"unfinished-uploads": {"AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 14}}}
DOCUMENTS = {
    "event-logs": {"Prefix": "spark-logs/", "ExpirationInDays": 30},
    "parts": {"Prefix": "parts/", "ExpirationInDays": 90},
}
OLD_VERSIONS = {
    "old-versions": {"NoncurrentVersionExpiration": {"NoncurrentDays": 30}, "ExpiredObjectDeleteMarker": True}
}


@pytest.mark.parametrize(("stage", "protected"), [("assembly", False), ("other_assembly", True)])
def test_buckets_keep_old_versions_for_a_time_and_no_data_expires(
    request: pytest.FixtureRequest, stage: str, protected: bool
) -> None:
    # Given a stage with or without protection: versions from before it was switched off expire as well
    found: Assembly = request.getfixturevalue(stage)
    for name, rules in (("Lake", {}), ("Quarantine", {}), ("Control", DOCUMENTS)):
        assert bucket_of(found, name) == (protected, UPLOADS | OLD_VERSIONS | rules)
    assert found.one(LEDGER, "Ledger")["Replicas"][0]["DeletionProtectionEnabled"] is protected
    # And the input bucket of a stage without an existing bucket has versions
    assert len(found.resources(BUCKET)) == 3 or bucket_of(found, "Input") == (True, UPLOADS)


def test_the_input_bucket_forgets_files_and_replaced_versions_where_the_settings_say_so(
    other_storage: dict[str, Any],
) -> None:
    found = {
        name: lifecycle_rules(body["Properties"])
        for name, body in other_storage["Resources"].items()
        if body["Type"] == BUCKET
    }
    (own,) = [rules for name, rules in found.items() if name.startswith("StorageInput")]
    assert own == UPLOADS | {
        "old-files": {"ExpirationInDays": 90, "NoncurrentVersionExpiration": {"NoncurrentDays": 35}},
        "old-markers": {"ExpiredObjectDeleteMarker": True},
    }
    assert [name[: len("StorageInput")] for name, rules in found.items() if "old-files" in rules] == ["StorageInput"]


@pytest.mark.parametrize("stage", ["assembly", "other_assembly"])
def test_a_failed_first_deployment_leaves_nothing_and_a_deleted_stack_all_data(
    request: pytest.FixtureRequest, stage: str
) -> None:
    assembly: Assembly = request.getfixturevalue(stage)
    kept = (BUCKET, BUCKET_POLICY, LEDGER)
    stored = [body for body in assembly.template["Resources"].values() if body["Type"] in kept]
    assert len(stored) >= 7
    # Then CloudFormation deletes only what it has created in the same, failed deployment.
    assert {(body["DeletionPolicy"], body["UpdateReplacePolicy"]) for body in stored} == {
        ("RetainExceptOnCreate", "Retain")
    }


def test_the_input_bucket_refuses_keys_that_its_jobs_may_not_use(
    assembly: Assembly, other_storage: dict[str, Any]
) -> None:
    def allowed(template: dict[str, Any], key: str | None) -> bool:
        (policy,) = [
            body["Properties"]["PolicyDocument"]
            for name, body in template["Resources"].items()
            if body["Type"] == BUCKET_POLICY and name.startswith("StorageInput")
        ]
        (statement,) = [found for found in policy["Statement"] if found.get("Sid") == "OtherKeys"]
        assert (statement["Effect"], statement["Principal"]) == ("Deny", {"AWS": "*"})
        assert statement["Action"] == "s3:PutObject"
        named = {} if key is None else {"s3:x-amz-server-side-encryption-aws-kms-key-id": key}
        context = EvalContext(
            "uploader", "User", "999988887777", "s3:PutObject", "arn", "eu-central-1", service_context=named
        )
        return not _conditions_met(statement["Condition"], context)

    # Given a stage without a KMS key, and one with: a request that names no key gets the bucket's.
    assert [allowed(assembly.template, key) for key in (None, KEY, FOREIGN_KEY)] == [True, False, False]
    assert [allowed(other_storage, key) for key in (None, KEY, FOREIGN_KEY)] == [True, True, False]


ALARM = "AWS::CloudWatch::Alarm"
CLICKS, PAYMENTS = RECORDS


def delivery(assembly: Assembly, name: str) -> dict[str, Any]:
    streams = assembly.resources(DELIVERY_STREAM).values()
    (found,) = [body for body in streams if body["DeliveryStreamName"] == f"hybrid-router-other-{name}"]
    return found


def test_what_the_settings_do_not_ask_for_is_neither_created_nor_allowed(assembly: Assembly) -> None:
    # Given a stage without EMR Serverless, records, verification, event logs and Iceberg tables
    resources = assembly.template["Resources"]
    assert [name for name in resources if re.search("Emr|Record|Verify", name)] == []
    assert [grant for grant in assembly.grants() if grant[1].startswith("emr-serverless:")] == []
    assert assembly.allowed("s3:PutObject", "/verify/*") | assembly.allowed("s3:PutObject", "/spark-logs/*") == set()
    assert "--spark-event-logs-path" not in assembly.one(JOB, "JobsBatch")["DefaultArguments"]
    assert "Records" not in assembly.template["Outputs"]
    # A rollback of the settings must not delete the database of its tables, and the tables with it.
    assert [body["Type"] for name, body in resources.items() if "ables" in name] == ["AWS::Glue::Database"]


def test_the_rules_take_the_keys_of_records_and_not_the_keys_of_errors(other_assembly: Assembly) -> None:
    now = datetime(2026, 11, 23, 12, tzinfo=UTC)
    for record in (CLICKS, PAYMENTS):
        target = delivery(other_assembly, record.name)["ExtendedS3DestinationConfiguration"]
        for field, expected in (("Prefix", (Lane.BATCH, record.dataset)), ("ErrorOutputPrefix", (None, None))):
            key = re.sub(r"!\{[^}]*\}", "any", target[field]) + f"x-1-2026{target['FileExtension']}"
            file = ObjectVersion("landing-zone-1", key, "e", 1, "", None)
            decision = decide_lane(file, other_assembly.settings, now)
            assert (decision.lane, decision.dataset) == expected
        assert target["ErrorOutputPrefix"].startswith(f"{FAILED_RECORDS}{record.name}/")
        # Amazon Data Firehose Developer Guide, "Understand custom prefixes": required in an expression for errors
        assert "!{firehose:error-output-type}" in target["ErrorOutputPrefix"]


def test_a_delivery_stream_is_created_after_the_policies_of_its_roles(other_assembly: Assembly) -> None:
    resources = other_assembly.template["Resources"]
    for name in other_assembly.resources(DELIVERY_STREAM):
        policies = {item for item in resources[name]["DependsOn"] if resources[item]["Type"] == "AWS::IAM::Policy"}
        own = {
            item
            for item in other_assembly.resources("AWS::IAM::Policy")
            if item.startswith(name.partition("Stream")[0])
        }
        assert policies == own != set()
