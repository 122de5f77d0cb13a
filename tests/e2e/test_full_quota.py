"""Other jobs of the account use up its quota of Glue runs: both lanes wait for room, and lose nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from lake.ledger import State
from local.limits import Limits
from tests.e2e.redelivery import fast_redelivery
from tests.e2e.waiting import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.scenario import Scenario

DATASET = "quota"


def wait_for_refusal(scenario: Scenario, job: str) -> None:
    log = scenario.cloud.logs_dir / "emulator.log"
    wait_for(f"a refused run of {job}", lambda: f"refused: a run of {job}: Max" in log.read_text())


def stream_has_ended(scenario: Scenario) -> bool:
    job = scenario.deployment.resources.stream_job
    runs = scenario.deployment.glue.get_job_runs(JobName=job)["JobRuns"]
    return not {run["JobRunState"] for run in runs} & {"STARTING", "RUNNING", "STOPPING"}


def test_without_room_for_a_run_both_lanes_wait(scenario: Scenario, tmp_path: Path) -> None:
    resources = scenario.deployment.resources
    wait_for("the end of the streaming job", lambda: stream_has_ended(scenario))
    with fast_redelivery(scenario):
        # Given an account without room for any run
        with scenario.limited(Limits(glue_runs=0)):
            # When an urgent file arrives, and when the night begins with another one
            urgent = scenario.put(f"{DATASET}/urgent/a.ndjson", ['{"n": 1}'])
            waiting = scenario.put(f"{DATASET}/b.ndjson", ['{"n": 2}'])
            for file in (urgent, waiting):
                scenario.wait_state(file, State.QUEUED)
            overnight = scenario.start(scenario.deployment.outputs.overnight, {"dataset": DATASET})
            # Then both jobs are refused, and the files wait
            for job in (resources.stream_job, resources.batch_job):
                wait_for_refusal(scenario, job)
            for file in (urgent, waiting):
                scenario.wait_state(file, State.QUEUED)
        # When there is room again, then both files are converted, each in its lane
        assert scenario.wait_state(urgent, State.DONE).lane == "stream"
        execution = scenario.ended(overnight)
    assert execution["status"] == "SUCCEEDED", execution.get("cause")
    assert json.loads(execution["output"])["verdict"] == "SUCCEEDED"
    assert scenario.wait_state(waiting, State.DONE).lane == "batch"
    assert scenario.lake_rows(DATASET, tmp_path) == {'{"n": "1"}': 1, '{"n": "2"}': 1}
