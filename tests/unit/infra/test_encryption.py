"""A stage with a KMS key: everything stored is encrypted by it, and only the roles that need it may use it."""

from dataclasses import replace
from typing import Any

import pytest
from ministack.core.iam_evaluator import EvalContext, evaluate_resource_policy  # type: ignore[import-untyped]

from infra.functions import SPECS
from infra.synth import synth
from lake.settings import (
    BatchSettings,
    DatasetRule,
    EncryptionSettings,
    InputSettings,
    Settings,
    StreamSettings,
    VerifySettings,
)
from local.emulator_patches.identities.encryption_keys import ACTIONS, LOG_ACTIONS
from tests.e2e.test_encrypted_stack import printed_policy
from tests.records import RECORDS
from tests.unit.infra.conftest import ACCOUNT, KEY, REGION, Assembly, listed

INPUT_KEY = KEY.replace("1234abcd", "9876fedc")
SOURCE_KEY = KEY.replace("1234abcd", "5555aaaa")
BOOTSTRAP_KEY = KEY.replace("1234abcd", "7777bbbb")


@pytest.fixture(scope="module")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    """Checked by cdk-nag."""
    settings = Settings(
        stage="encrypted",
        batch=BatchSettings(engines=("glue-flex", "emr-serverless")),
        stream=StreamSettings(engine="emr-serverless"),
        verify=VerifySettings(share=0.01),
        encryption=EncryptionSettings(kms_key=KEY),
        records=RECORDS,
        datasets=(DatasetRule("{folder}", table="iceberg"),),
    )
    return Assembly(synth(settings, tmp_path_factory.mktemp("encrypted"), checked=True), settings)


def test_every_resource_that_stores_something_is_encrypted_by_the_key(assembly: Assembly) -> None:
    keys = {
        **{name: body["KmsKeyId"] for name, body in assembly.resources("AWS::Logs::LogGroup").items()},
        **{name: body["KmsMasterKeyId"] for name, body in assembly.resources("AWS::SQS::Queue").items()},
        **{name: body["KmsMasterKeyId"] for name, body in assembly.resources("AWS::SNS::Topic").items()},
    }
    for name, body in assembly.resources("AWS::S3::Bucket").items():
        (rule,) = body["BucketEncryption"]["ServerSideEncryptionConfiguration"]
        assert rule["BucketKeyEnabled"] is True
        assert rule["BlockedEncryptionTypes"] == {"EncryptionType": ["SSE-C"]}
        assert rule["ServerSideEncryptionByDefault"]["SSEAlgorithm"] == "aws:kms"
        keys[name] = rule["ServerSideEncryptionByDefault"]["KMSMasterKeyID"]
    (table,) = assembly.resources("AWS::DynamoDB::GlobalTable").values()
    assert table["SSESpecification"] == {"SSEEnabled": True, "SSEType": "KMS"}
    keys["table"] = table["Replicas"][0]["SSESpecification"]["KMSMasterKeyId"]
    assert not any("SqsManagedSseEnabled" in body for body in assembly.resources("AWS::SQS::Queue").values())
    # Buckets, queues, a topic, a table; log groups: of functions, notifier, machines, jobs, EMR, delivery streams.
    assert len(keys) == 8 + len(SPECS) + 1 + 4 + 2 + 2 + len(RECORDS)
    assert set(keys.values()) == {KEY}


def test_each_role_has_the_key_for_what_it_may_read_or_write_and_for_nothing_else(assembly: Assembly) -> None:
    for name, policy in assembly.resources("AWS::IAM::Policy").items():
        statements = policy["PolicyDocument"]["Statement"]
        assert granted_uses(statements) == needed_uses(statements, assembly), name


def granted_uses(statements: list[dict[str, Any]]) -> dict[str, set[str]]:
    """Action -> services through which it is allowed."""
    uses: dict[str, set[str]] = {}
    for statement in statements:
        for action in listed(statement["Action"]):
            if action.startswith("kms:"):
                assert statement["Resource"] == KEY
                assert statement["Condition"].keys() == {"StringEquals"}
                via = listed(statement["Condition"]["StringEquals"]["kms:ViaService"])
                uses.setdefault(action, set()).update(via)
    return uses


READS = {"s3:GetObject", "sqs:ReceiveMessage", "dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:Query"}
STORES = ("AWS::S3::Bucket", "AWS::SQS::Queue", "AWS::SNS::Topic", "AWS::DynamoDB::GlobalTable")
WRITES = {"s3:PutObject", "sqs:SendMessage", "sns:Publish"}


def needed_uses(statements: list[dict[str, Any]], assembly: Assembly) -> dict[str, set[str]]:
    """The uses that follow from the role's other permissions on resources of the stack."""
    reads, writes = set(), set()
    arns = {assembly.arn(name).partition("/")[0] for kind in STORES for name in assembly.resources(kind)}
    for statement in statements:
        if arns.isdisjoint(resource.partition("/")[0] for resource in listed(statement["Resource"])):
            continue
        for action in set(listed(statement["Action"])):
            service = action.partition(":")[0]
            if action in READS or action in WRITES:
                reads.add(service)
            if action in WRITES:
                writes.add(service)
    uses = (("kms:Decrypt", reads), ("kms:GenerateDataKey", writes))
    return {action: {f"{item}.{REGION}.amazonaws.com" for item in services} for action, services in uses if services}


LOG = "kms:encryptioncontext:aws:logs:arn"


@pytest.mark.parametrize(
    ("sid", "service", "actions", "keys", "elsewhere"),
    [
        ("EventsOfTheInputBucket", "s3.amazonaws.com", ACTIONS["sqs:SendMessage"], {}, None),
        ("Alarms", "cloudwatch.amazonaws.com", ACTIONS["sns:Publish"], {"aws:sourceaccount": ACCOUNT}, "444455556666"),
        (
            "LogGroups",
            f"logs.{REGION}.amazonaws.com",
            LOG_ACTIONS,
            {LOG: f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:/aws/lambda/any"},
            f"arn:aws:logs:{REGION}:444455556666:log-group:/aws/lambda/any",
        ),
    ],
)
def test_the_printed_policy_has_a_statement_for_each_service_that_uses_the_key_in_its_own_name(
    sid: str, service: str, actions: tuple[str, ...], keys: dict[str, str], elsewhere: str | None
) -> None:
    def allowed(policy: dict[str, Any], keys: dict[str, str]) -> set[str]:
        contexts = (EvalContext("", "Service", ACCOUNT, name, KEY, REGION, service_context=keys) for name in actions)
        return {item.action for item in contexts if evaluate_resource_policy(policy, item, service).decision == "Allow"}

    policy = printed_policy()
    others = [statement for statement in policy["Statement"] if statement["Sid"] != sid]
    assert allowed(policy, keys) == set(actions)
    # And none without the statement, or for another account if the service reports one
    assert allowed({**policy, "Statement": others}, keys) == set()
    assert elsewhere is None or allowed(policy, dict.fromkeys(keys, elsewhere)) == set()


def test_the_keys_of_the_input_bucket_and_of_the_bootstrap_bucket_are_for_the_jobs_to_read(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    clicks = replace(RECORDS[0], kinesis_kms_key=SOURCE_KEY)
    settings = Settings(
        stage="landed",
        input=InputSettings(bucket="landing-zone-1", kms_key=INPUT_KEY),
        records=(clicks,),
        encryption=EncryptionSettings(bootstrap_key=BOOTSTRAP_KEY),
    )
    assembly = Assembly(synth(settings, tmp_path_factory.mktemp("landed")), settings)
    uses = {
        (name.partition("DefaultPolicy")[0], statement["Resource"], statement["Action"], service_of(statement))
        for name, statement in assembly.statements()
        if any(action.startswith("kms:") for action in listed(statement["Action"]))
    }
    assert uses == {
        ("JobsRole", INPUT_KEY, "kms:Decrypt", "s3"),
        ("JobsRole", BOOTSTRAP_KEY, "kms:Decrypt", "s3"),
        ("RecordsclicksRole", INPUT_KEY, "kms:Decrypt", "s3"),
        ("RecordsclicksRole", INPUT_KEY, "kms:GenerateDataKey", "s3"),
        ("RecordsclicksRole", SOURCE_KEY, "kms:Decrypt", "kinesis"),
    }


def service_of(statement: dict[str, Any]) -> str:
    """The one service through which a statement allows a key."""
    (via,) = listed(statement["Condition"]["StringEquals"]["kms:ViaService"])
    return str(via).partition(".")[0]
