"""What becomes of stored data: when a deployment fails, the stack is deleted, or a person deletes objects."""

from __future__ import annotations

from typing import Any

import pytest
from aws_cdk import App, Stack
from aws_cdk.assertions import Template
from ministack.core.iam_evaluator import EvalContext, _conditions_met  # type: ignore[import-untyped]

from infra.storage import Storage
from lake.settings import EncryptionSettings, InputSettings, Settings
from tests.unit.infra.conftest import Assembly

LEDGER = "AWS::DynamoDB::GlobalTable"
KEY = "arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
FOREIGN_KEY = KEY.replace("111122223333", "999988887777")


@pytest.fixture(scope="module")
def encrypted_storage() -> dict[str, Any]:
    stack = Stack(App(), "encrypted")
    Storage(stack, "Storage", Settings("encrypted", encryption=EncryptionSettings(kms_key=KEY)))
    return dict(Template.from_stack(stack).to_json())


def test_the_input_bucket_forgets_files_and_replaced_versions_where_the_settings_say_so() -> None:
    stack = Stack(App(), "kept")
    Storage(stack, "Storage", Settings("kept", input=InputSettings(keep_days=90)))
    buckets = Template.from_stack(stack).find_resources("AWS::S3::Bucket")
    rules = {
        name: {rule["Id"]: rule for rule in body["Properties"]["LifecycleConfiguration"]["Rules"]}
        for name, body in buckets.items()
    }
    (mine,) = (body for name, body in rules.items() if name.startswith("StorageInput"))
    assert mine["old-files"]["ExpirationInDays"] == 90
    assert mine["old-files"]["NoncurrentVersionExpiration"] == {"NoncurrentDays": 35}
    assert mine["old-markers"]["ExpiredObjectDeleteMarker"] is True
    assert all("old-files" not in body for name, body in rules.items() if not name.startswith("StorageInput"))


@pytest.mark.parametrize("stage", ["assembly", "other_assembly"])
def test_a_failed_first_deployment_leaves_nothing_and_a_deleted_stack_all_data(
    request: pytest.FixtureRequest, stage: str
) -> None:
    assembly: Assembly = request.getfixturevalue(stage)
    stored = [body for body in assembly.template["Resources"].values() if body["Type"] in ("AWS::S3::Bucket", LEDGER)]
    assert len(stored) >= 4
    # Then CloudFormation deletes only what it has created in the same, failed deployment.
    assert {(body["DeletionPolicy"], body["UpdateReplacePolicy"]) for body in stored} == {
        ("RetainExceptOnCreate", "Retain")
    }


def test_only_the_input_bucket_keeps_versions_by_default(assembly: Assembly) -> None:
    buckets = assembly.resources("AWS::S3::Bucket")
    versioned = {name[: len("StorageInput")] for name, body in buckets.items() if "VersioningConfiguration" in body}
    assert versioned == {"StorageInput"}
    assert not assembly.one(LEDGER, "Ledger")["Replicas"][0]["DeletionProtectionEnabled"]


def test_buckets_refuse_objects_that_only_their_writer_can_read(assembly: Assembly, other_assembly: Assembly) -> None:
    buckets = {**assembly.resources("AWS::S3::Bucket"), **other_assembly.resources("AWS::S3::Bucket")}
    for name, bucket in buckets.items():
        (rule,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
        assert rule["BlockedEncryptionTypes"] == {"EncryptionType": ["SSE-C"]}, name


def test_the_input_bucket_refuses_keys_that_its_jobs_may_not_use(
    assembly: Assembly, encrypted_storage: dict[str, Any]
) -> None:
    def allowed(template: dict[str, Any], key: str | None) -> bool:
        (policy,) = [
            body["Properties"]["PolicyDocument"]
            for name, body in template["Resources"].items()
            if body["Type"] == "AWS::S3::BucketPolicy" and name.startswith("StorageInput")
        ]
        (statement,) = [found for found in policy["Statement"] if found.get("Sid") == "OtherKeys"]
        assert (statement["Effect"], statement["Principal"]) == ("Deny", {"AWS": "*"})
        assert statement["Action"] == "s3:PutObject"
        named = {} if key is None else {"s3:x-amz-server-side-encryption-aws-kms-key-id": key}
        asked = EvalContext(
            "uploader", "User", "999988887777", "s3:PutObject", "arn", "eu-central-1", service_context=named
        )
        return not _conditions_met(statement["Condition"], asked)

    # Given a stage without a KMS key, and one with: a request that names no key gets the bucket's.
    assert [allowed(assembly.template, key) for key in (None, KEY, FOREIGN_KEY)] == [True, False, False]
    assert [allowed(encrypted_storage, key) for key in (None, KEY, FOREIGN_KEY)] == [True, True, False]


def test_protected_buckets_keep_old_versions_for_a_time(other_assembly: Assembly) -> None:
    # Given a stage with protection; its input bucket is not the stack's.
    buckets = other_assembly.resources("AWS::S3::Bucket")
    assert len(buckets) == 3
    for name, bucket in buckets.items():
        assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}
        (_, old, *more) = bucket["LifecycleConfiguration"]["Rules"]
        # Then old versions expire, and so do the markers that hide none any more.
        assert old["NoncurrentVersionExpiration"] == {"NoncurrentDays": 30}
        assert old["ExpiredObjectDeleteMarker"] is True
        assert old["Status"] == "Enabled"
        # And event logs and parts of the control bucket
        ages = {rule["Prefix"]: rule["ExpirationInDays"] for rule in more}
        assert ages == ({"spark-logs/": 30, "parts/": 90} if name.startswith("StorageControl") else {})
