"""An input bucket without versions: files that could not be read are put again, and are converted once."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from cli.deployed_stack import DeployedStack
from infra.synth import synth
from lake.ledger import State
from lake.manifest import Lane
from lake.settings import InputSettings
from local import isolation
from local.isolation import BUCKET_PLACE
from tests.e2e.scenario import Scenario
from tests.e2e.stack_settings import e2e_settings
from tests.e2e.waiting import wait_for

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.long
"""``make permissions`` plays all end-to-end tests; ``tests/integration/test_returned_files.py`` is in ``make test``."""
DATASET, STAGE, BUCKET = "returned", "unversioned", "landing-without-versions"
KEYS = [f"{DATASET}/{name}" for name in ("whole.ndjson", "damaged.ndjson.gz", "gone.ndjson")]
BODIES = [f'{{"file": "{key}"}}\n'.encode() for key in KEYS]
REPAIRED = gzip.compress(BODIES[1], mtime=0)


@pytest.fixture(scope="module")
def unversioned(scenario: Scenario, tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    """A second stack on the same cloud, with an input bucket of its user, which has no versions."""
    cloud = scenario.cloud
    cloud.client("s3").create_bucket(Bucket=BUCKET, CreateBucketConfiguration=BUCKET_PLACE)
    settings = replace(e2e_settings(), stage=STAGE, input=InputSettings(bucket=BUCKET))
    outputs = cloud.deploy(synth(settings, tmp_path_factory.mktemp(STAGE) / "cdk.out"))
    session = isolation.session(cloud.access_key)
    return Scenario(cloud, DeployedStack.connect(outputs, session, cloud.endpoint, isolation.client_config()))


def put(scenario: Scenario, key: str, body: bytes) -> None:
    scenario.deployment.s3.put_object(Bucket=BUCKET, Key=key, Body=body)


def waiting_files(scenario: Scenario) -> int:
    return sum(row.files for row in scenario.deployment.ledger.manifests.open(Lane.BATCH, State.QUEUED))


def night(scenario: Scenario) -> str:
    """The verdict of an overnight execution."""
    execution = scenario.execute(scenario.deployment.outputs.overnight, {})
    assert execution["status"] == "SUCCEEDED", execution.get("cause")
    return str(json.loads(execution["output"])["verdict"])


def quarantined(scenario: Scenario) -> dict[str, str]:
    """Key and reason of each file that the quarantine has by reference."""
    s3, bucket = scenario.deployment.s3, scenario.deployment.resources.quarantine_bucket
    listed = s3.list_objects_v2(Bucket=bucket).get("Contents", [])
    bodies = [s3.get_object(Bucket=bucket, Key=item["Key"])["Body"].read() for item in listed]
    records = [json.loads(line) for body in bodies for line in body.splitlines()]
    return {record["source"].partition(f"{BUCKET}/")[2]: record["reason"] for record in records}


def test_a_file_that_is_repaired_or_comes_back_is_converted_once(unversioned: Scenario, tmp_path: Path) -> None:
    # Given a file that is whole, one that is damaged, and one that is gone when it is read
    whole, damaged, gone = KEYS
    put(unversioned, whole, BODIES[0])
    put(unversioned, damaged, REPAIRED[:-9])
    put(unversioned, gone, BODIES[2])
    wait_for("the files to be routed", lambda: waiting_files(unversioned) == len(KEYS))
    unversioned.deployment.s3.delete_object(Bucket=BUCKET, Key=gone)
    assert night(unversioned) == "SUCCEEDED_WITH_QUARANTINE"
    assert unversioned.lake_rows(DATASET, tmp_path / "before") == expected(whole)
    assert set(quarantined(unversioned)) == {damaged, gone}

    # When one is put again repaired, and the other with the same bytes, each twice
    for _ in range(2):
        put(unversioned, damaged, REPAIRED)
        put(unversioned, gone, BODIES[2])
    wait_for("both to be routed", lambda: waiting_files(unversioned) == 2)
    assert night(unversioned) == "SUCCEEDED"

    # Then each file is in the lake once, and the next night has nothing to do
    assert unversioned.lake_rows(DATASET, tmp_path / "after") == expected(*KEYS)
    assert night(unversioned) == "EMPTY"


def expected(*keys: str) -> Counter[str]:
    return Counter(json.dumps({"file": key}) for key in keys)
