"""The stream lane on EMR Serverless: it converts, ends when it is asked to, and begins again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from cli.deployed_stack import DeployedStack
from infra.synth import synth
from lake.engines import Engine
from lake.job_runs import live_emr_runs, split_emr_run_id
from lake.ledger import State
from local import isolation
from tests.e2e.scenario import Scenario
from tests.e2e.stack_settings import e2e_settings
from tests.e2e.waiting import wait_for

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

pytestmark = pytest.mark.long
"""``make permissions`` plays all end-to-end tests."""
STAGE, DATASET = "emr_stream", "small"


@pytest.fixture(scope="module")
def on_emr(scenario: Scenario, tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    """A second stack on the same cloud, whose streaming job runs on EMR Serverless."""
    cloud, settings = scenario.cloud, e2e_settings()
    stream = replace(settings.stream, engine=Engine.EMR_SERVERLESS.value, idle_minutes=60)
    settings = replace(settings, stage=STAGE, stream=stream)
    outputs = cloud.deploy(synth(settings, tmp_path_factory.mktemp(STAGE) / "cdk.out"))
    session = isolation.session(cloud.access_key)
    return Scenario(cloud, DeployedStack.connect(outputs, session, cloud.endpoint, isolation.client_config()))


def live(scenario: Scenario) -> list[str]:
    """The ids of the streaming runs that are alive."""
    stack = scenario.deployment
    emr: Any = scenario.cloud.client("emr-serverless")
    return live_emr_runs(emr, stack.outputs.stream_application, stack.resources.stream_job)


def state_of(scenario: Scenario, run: str) -> str:
    application, job_run = split_emr_run_id(run)
    emr: Any = scenario.cloud.client("emr-serverless")
    return str(emr.get_job_run(applicationId=application, jobRunId=job_run)["jobRun"]["state"])


def test_the_stream_converts_ends_when_asked_and_begins_again(on_emr: Scenario, tmp_path: Path) -> None:
    # Given an urgent file, for which route starts the streaming job
    first = on_emr.put(f"{DATASET}/urgent/a.ndjson", ['{"n": 1}'])
    row = on_emr.wait_state(first, State.DONE)
    # Then it was the only run of the application
    (run,) = live(on_emr)
    assert (row.lane, row.owner) == ("stream", run)
    # When it is asked to end
    assert not on_emr.deployment.control_stream("stop")["stopped"]
    wait_for("the streaming run to end", lambda: not live(on_emr))
    # Then it has ended by itself, and the next file is converted by another run
    assert state_of(on_emr, run) == "SUCCESS"
    assert on_emr.deployment.control_stream("stop")["stopped"]
    second = on_emr.put(f"{DATASET}/urgent/b.ndjson", ['{"n": 2}'])
    again = on_emr.wait_state(second, State.DONE)
    assert again.owner == live(on_emr)[0] != run
    assert sorted(on_emr.lake_rows(DATASET, tmp_path)) == ['{"n": "1"}', '{"n": "2"}']
    # When it is killed, then its run is cancelled
    assert on_emr.deployment.control_stream("kill")["killed"] == 1
    wait_for("the killed run to end", lambda: not live(on_emr))
    assert state_of(on_emr, str(again.owner)) == "CANCELLED"
