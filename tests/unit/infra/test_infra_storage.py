"""What becomes of stored data: when a deployment fails, the stack is deleted, or a person deletes objects."""

from __future__ import annotations

from typing import Any

import pytest
from aws_cdk import App, Stack
from aws_cdk.assertions import Template
from ministack.core.iam_evaluator import EvalContext, _conditions_met  # type: ignore[import-untyped]

from infra.storage import Storage
from lake.settings import EncryptionSettings, Settings
from tests.unit.infra.conftest import Assembly

LEDGER = "AWS::DynamoDB::GlobalTable"
KEY = "arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
FOREIGN_KEY = KEY.replace("111122223333", "999988887777")


@pytest.fixture(scope="module")
def encrypted_storage() -> dict[str, Any]:
    stack = Stack(App(), "encrypted")
    Storage(stack, "Storage", Settings("encrypted", encryption=EncryptionSettings(kms_key=KEY)))
    return dict(Template.from_stack(stack).to_json())


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
