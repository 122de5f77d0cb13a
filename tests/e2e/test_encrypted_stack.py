"""Both lanes in a stack that is encrypted by a KMS key, with the key policy of docs/deploy.md."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from infra.synth import synth
from lake.layout import lake_prefix
from lake.ledger import State
from lake.settings import DatasetRule, EncryptionSettings, VerifySettings
from local import isolation
from local.cloud import LocalCloud
from local.errors import LocalCloudError
from tests.e2e.made_by_hand import subscribe_queue
from tests.e2e.permissions import role_name
from tests.e2e.scenario import Scenario
from tests.e2e.stack_settings import e2e_settings
from tests.unit.docs.pages import CHECKOUT

DATASET = "sealed"

pytestmark = pytest.mark.long
"""``make permissions`` plays them."""


def printed_policy() -> dict[str, Any]:
    """The key's policy as the page prints it."""
    page = (CHECKOUT / "docs" / "deploy.md").read_text(encoding="utf-8")
    (found,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    return dict(json.loads(found))


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    with LocalCloud.start(tmp_path_factory.mktemp("encrypted") / "state") as cloud:
        yield cloud


@pytest.fixture(scope="module")
def key(cloud: LocalCloud) -> str:
    """The ARN of a key with the printed policy."""
    created = cloud.client("kms").create_key(Policy=json.dumps(printed_policy()))
    return str(created["KeyMetadata"]["Arn"])


@pytest.fixture(scope="module")
def sealed(cloud: LocalCloud, key: str, tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    """The stack of the other end-to-end tests with two streaming jobs, encrypted by the key."""
    settings = replace(
        (base := e2e_settings()),
        datasets=(DatasetRule(DATASET, f"{DATASET}/"), DatasetRule("{folder}")),
        stream=replace(base.stream, jobs=2),
        encryption=EncryptionSettings(kms_key=key),
        verify=VerifySettings(),
    )
    return Scenario.deploy(cloud, settings, tmp_path_factory.mktemp("encrypted") / "cdk.out")


def test_both_lanes_convert_under_the_key(sealed: Scenario, key: str, tmp_path: Path) -> None:
    # Given an urgent file and a file that waits for the night
    urgent = sealed.put(f"{DATASET}/urgent/a.ndjson", ['{"n": 1}', "not JSON"])
    waiting = sealed.put(f"{DATASET}/b.ndjson", ['{"n": 2}'])
    # When
    stream = sealed.wait_state(urgent, State.DONE)
    sealed.wait_state(waiting, State.QUEUED)
    execution = sealed.execute(sealed.deployment.outputs.overnight, {})
    # Then
    assert execution["status"] == "SUCCEEDED", execution.get("cause")
    assert json.loads(execution["output"])["damagedObjects"] == 0
    assert (stream.lane, sealed.wait_state(waiting, State.DONE).lane) == ("stream", "batch")
    assert sorted(sealed.lake_rows(DATASET, tmp_path)) == ['{"n": "1"}', '{"n": "2"}']
    # And the job of the manifest's shard has converted the urgent file, by a pointer in its own inbox
    resources, s3 = sealed.deployment.resources, sealed.deployment.s3
    runs = {
        shard: sealed.deployment.glue.get_job_runs(JobName=resources.stream_job_of(shard))["JobRuns"]
        for shard in sealed.deployment.outputs.shards.names
    }
    own = sealed.deployment.outputs.shards.of(stream.id)
    assert {shard: len(found) for shard, found in runs.items()} == {"1": 0, "2": 0, own: 1}
    assert stream.owner == runs[own][0]["Id"]
    assert sealed.deployment.ledger.stream.of(own).get().run == stream.owner
    assert s3.list_objects_v2(Bucket=resources.control_bucket, Prefix="inbox")["KeyCount"] == 0
    # And its objects are encrypted by the key
    bucket = resources.lake_bucket
    prefix = lake_prefix(stream.partition, stream.id, stream.generation)
    (item,) = s3.list_objects_v2(Bucket=bucket, Prefix=prefix)["Contents"]
    head = s3.head_object(Bucket=bucket, Key=item["Key"], ChecksumMode="ENABLED")
    assert (head["ServerSideEncryption"], head["SSEKMSKeyId"], head["ChecksumType"]) == ("aws:kms", key, "FULL_OBJECT")


def test_without_the_right_to_encrypt_the_night_fails_and_the_next_one_converts(
    sealed: Scenario, key: str, cloud: LocalCloud
) -> None:
    # Given a file that waits, and a key with which the jobs may not write through S3
    file = sealed.queued(f"{DATASET}/c.ndjson", ['{"n": 3}'])
    jobs_role = role_name(cloud.client("iam"), "JobsRole")
    denial = {
        "Effect": "Deny",
        "Principal": {"AWS": f"arn:aws:iam::{isolation.ACCOUNT}:role/{jobs_role}"},
        "Action": "kms:GenerateDataKey",
        "Resource": "*",
        "Condition": {"StringEquals": {"kms:ViaService": f"s3.{isolation.REGION}.amazonaws.com"}},
    }
    policy = printed_policy()
    put = partial(cloud.client("kms").put_key_policy, KeyId=key, PolicyName="default")
    # When
    put(Policy=json.dumps({**policy, "Statement": [*policy["Statement"], denial]}))
    refused = sealed.execute(sealed.deployment.outputs.overnight, {})
    put(Policy=json.dumps(policy))
    # Then the night fails with the name of the action, and no attempt is used up
    assert refused["status"] == "FAILED"
    assert "kms:GenerateDataKey" in refused["cause"]
    assert sealed.wait_state(file, State.QUEUED).tries == 0
    # When the write is allowed again, then the next night converts the file
    granted = sealed.execute(sealed.deployment.outputs.overnight, {})
    assert granted["status"] == "SUCCEEDED", granted.get("cause")
    assert sealed.wait_state(file, State.DONE).lane == "batch"


def test_an_alarm_reaches_the_topic_only_with_its_statement(sealed: Scenario, cloud: LocalCloud, key: str) -> None:
    # Given a subscriber of the topic
    queue = subscribe_queue(cloud, sealed.deployment.outputs.alarm_topic, "people")
    cloudwatch, policy = cloud.client("cloudwatch"), printed_policy()
    alarm = cloudwatch.describe_alarms()["MetricAlarms"][0]["AlarmName"]
    others = [item for item in policy["Statement"] if item["Sid"] != "Alarms"]
    # When the key's policy lacks the statement, then nothing arrives; with it, the alarm arrives
    for statements, arrived in ((others, 0), (policy["Statement"], 1)):
        given = json.dumps({**policy, "Statement": statements})
        cloud.client("kms").put_key_policy(KeyId=key, PolicyName="default", Policy=given)
        for state in ("OK", "ALARM"):
            cloudwatch.set_alarm_state(AlarmName=alarm, StateValue=state, StateReason="test")
        assert len(cloud.client("sqs").receive_message(QueueUrl=queue).get("Messages", [])) == arrived


@pytest.mark.parametrize("statement", ["EventsOfTheInputBucket", "LogGroups"])
def test_without_a_statement_for_a_service_the_deployment_fails(
    cloud: LocalCloud, tmp_path: Path, statement: str
) -> None:
    policy = printed_policy()
    others = [item for item in policy["Statement"] if item["Sid"] != statement]
    created = cloud.client("kms").create_key(Policy=json.dumps({**policy, "Statement": others}))
    encryption = EncryptionSettings(kms_key=created["KeyMetadata"]["Arn"])
    settings = replace(e2e_settings(), stage=f"no_{statement.lower()}", encryption=encryption)
    with pytest.raises(LocalCloudError):
        cloud.deploy(synth(settings, tmp_path / "cdk.out"))
