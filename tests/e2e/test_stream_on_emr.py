"""The stream lane on EMR Serverless: it converts, ends on request, begins again, and reports its cost."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cli.change.stream import live_runs, read_shards
from cli.errors import ExitCode
from cli.inspect.logs import logs_command
from lake.engines import Engine
from lake.engines.emr_serverless import split_run_id
from lake.ledger import CostRow, State
from lake.manifest import Lane
from tests.e2e.scenario import Scenario
from tests.e2e.stack_settings import e2e_settings
from tests.e2e.test_engines import LINES, ROWS
from tests.e2e.waiting import wait_for

pytestmark = pytest.mark.long
"""``make permissions`` plays all end-to-end tests."""
STAGE, DATASET = "emr_stream", "same"


@pytest.fixture(scope="module")
def on_emr(scenario: Scenario, tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    """A second stack on the same cloud, whose streaming job runs on EMR Serverless."""
    settings = e2e_settings()
    stream = replace(settings.stream, engine=Engine.EMR_SERVERLESS.value, idle_minutes=60)
    settings = replace(settings, stage=STAGE, stream=stream)
    return Scenario.deploy(scenario.cloud, settings, tmp_path_factory.mktemp(STAGE) / "cdk.out")


def live(scenario: Scenario) -> list[str]:
    """The ids of the streaming runs that are alive."""
    return live_runs(scenario.deployment, "1")


def job_run(scenario: Scenario, run: str) -> dict[str, Any]:
    application, service_id = split_run_id(run)
    client = scenario.deployment.stream_client
    found: dict[str, Any] = client.get_job_run(applicationId=application, jobRunId=service_id)
    return dict(found["jobRun"])


def costs_of(scenario: Scenario, run: str) -> list[CostRow]:
    return [row for row in scenario.costs() if row.id.startswith(f"{run}#")]


def test_the_stream_converts_as_every_engine_and_ends_when_it_is_asked_to(
    on_emr: Scenario, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given an urgent file, for which route starts the streaming job
    stack = on_emr.deployment
    file = on_emr.put(f"{DATASET}/urgent/a.ndjson", LINES)
    row = on_emr.wait_state(file, State.DONE)
    # Then it was the only run of the application, it is alive, and the lake has the rows of every other engine
    (run,) = live(on_emr)
    assert (row.lane, row.owner) == (Lane.STREAM, run)
    assert read_shards(stack)[0].runs == (run,)
    assert stack.ledger.stream.get().run == run
    assert on_emr.lake_rows(DATASET, tmp_path) == ROWS
    # When it is asked to end, repeatedly as by the state machine, then it ends by itself
    wait_for("the streaming run to end", lambda: stack.control_stream("stop")["stopped"])
    assert job_run(on_emr, run)["state"] == "SUCCESS"
    assert job_run(on_emr, run)["mode"] == "STREAMING"
    # And its cost is in the ledger, by its vCPUs
    costs = costs_of(on_emr, run)
    assert {(cost.engine, cost.lane) for cost in costs} == {(Engine.EMR_SERVERLESS, Lane.STREAM)}
    assert sum(cost.vcpu_milliseconds for cost in costs) > 0
    assert [share.dataset for cost in costs for share in cost.shares] == [DATASET]
    # And its log is where commands expect it
    assert logs_command(stack, Lane.STREAM, "1h", "stopped as requested", run, 1, as_json=False) == ExitCode.OK
    assert "stopped as requested" in capsys.readouterr().out


def test_a_promoted_file_starts_another_run_and_a_kill_cancels_it(on_emr: Scenario) -> None:
    # Given a file of the batch lane, when no run is alive
    stack = on_emr.deployment
    file = on_emr.queued(f"{DATASET}/b.ndjson", ['{"n": 2}'])
    assert live(on_emr) == []
    # When it is promoted, then another run converts it
    stack.invoke("promote", {"files": [file.uri]})
    wait_for("a streaming run", lambda: live(on_emr))
    (run,) = live(on_emr)
    wait_for("the promoted file", lambda: stack.ledger.stream.get().run == run and not open_manifests(on_emr))
    # When it is killed, then its run is cancelled
    assert stack.control_stream("kill")["killed"] == 1
    wait_for("the killed run to end", lambda: not live(on_emr))
    assert job_run(on_emr, run)["state"] == "CANCELLED"


def open_manifests(scenario: Scenario) -> list[str]:
    manifests = scenario.deployment.ledger.manifests
    return [row.id for state in (State.QUEUED, State.RUNNING) for row in manifests.open(Lane.STREAM, state)]
