"""A permission that is taken away on the deployed stack: nothing is called done, and nothing is lost."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from lake.ledger import State
from lake.manifest import Lane

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.scenario import Scenario


@contextmanager
def denied(scenario: Scenario, bucket: str, action: str) -> Iterator[None]:
    """The bucket's own policy, and a statement that denies an action, until the block is left."""
    s3 = scenario.deployment.s3
    own = s3.get_bucket_policy(Bucket=bucket)["Policy"]
    policy = json.loads(own)
    resource = f"arn:aws:s3:::{bucket}/*"
    policy["Statement"].append({"Effect": "Deny", "Principal": "*", "Action": action, "Resource": resource})
    s3.put_bucket_policy(Bucket=bucket, Policy=json.dumps(policy))
    try:
        yield
    finally:
        s3.put_bucket_policy(Bucket=bucket, Policy=own)


@pytest.mark.parametrize(
    ("kind", "action"), [("input", "s3:GetObject*"), pytest.param("lake", "s3:PutObject", marks=pytest.mark.long)]
)
def test_a_refused_bucket_fails_the_night_and_the_next_one_converts_everything(
    scenario: Scenario, kind: str, action: str, tmp_path: Path
) -> None:
    # Given files that wait for the night
    dataset = f"refused{kind}"
    files = [scenario.put(f"{dataset}/{number}.ndjson", [f'{{"n": {number}}}']) for number in range(3)]
    for file in files:
        scenario.wait_state(file, State.QUEUED)

    # When the night has no permission
    with denied(scenario, getattr(scenario.deployment.resources, f"{kind}_bucket"), action):
        refused = scenario.execute(scenario.deployment.outputs.overnight, {"dataset": dataset})

    # Then it fails after one job run, names the permission, and has used up no attempt
    listed = scenario.deployment.glue.get_job_runs(JobName=scenario.deployment.resources.batch_job)["JobRuns"]
    assert sum(f"/{refused['name']}/" in run["Arguments"].get("--run", "") for run in listed) == 1
    assert refused["status"] == "FAILED"
    assert action.removesuffix("*") in refused["cause"]
    waiting = [
        row
        for row in scenario.deployment.ledger.manifests.open(Lane.BATCH, State.QUEUED)
        if row.partition.dataset == dataset
    ]
    assert sum(row.files for row in waiting) == len(files)
    assert [row.tries for row in waiting] == [0] * len(waiting)

    # When it is granted again / Then the next night converts every file
    granted = scenario.execute(scenario.deployment.outputs.overnight, {"dataset": dataset})
    assert granted["status"] == "SUCCEEDED", granted.get("cause")
    assert json.loads(granted["output"])["verdict"] == "SUCCEEDED"
    assert sorted(scenario.lake_rows(dataset, tmp_path)) == [f'{{"n": "{number}"}}' for number in range(3)]
