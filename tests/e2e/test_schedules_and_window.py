"""The schedules start their targets; the stream window keeps a run alive, and each failure reaches people."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from cli.change.stream import read_shards
from cli.inspect.trace import trace_arrival
from lake.errors import TerminalError
from lake.layout import PLAN_AHEAD_EXECUTION, plan_summary_key
from lake.ledger import State
from lake.manifest import ObjectVersion
from lake.time import iso_utc
from tests.e2e.made_by_hand import subscribe_queue
from tests.e2e.permissions import logs, role_name, sentences, without
from tests.e2e.scenario import Scenario
from tests.e2e.waiting import wait_for

pytestmark = pytest.mark.long
"""``make permissions`` plays them."""


def executions(scenario: Scenario, machine: str, since: datetime) -> list[dict[str, Any]]:
    found = scenario.deployment.sfn.list_executions(stateMachineArn=machine)["executions"]
    return [item for item in found if item["startDate"] >= since - timedelta(seconds=1)]


def written(scenario: Scenario, key: str) -> Any:
    """The time of the document's last write, or None if it was never written."""
    listed = scenario.deployment.s3.list_objects_v2(Bucket=scenario.deployment.resources.control_bucket, Prefix=key)
    return next((item["LastModified"] for item in listed.get("Contents", [])), None)


def test_each_function_with_a_schedule_is_started_by_it(scenario: Scenario) -> None:
    folder = scenario.cloud.logs_dir

    def log_of(name: str) -> str:
        return logs(folder, f"lambda/*{name}*.log")

    outcomes: dict[str, Callable[[], object]] = {
        "PlanAhead": lambda: written(scenario, plan_summary_key(PLAN_AHEAD_EXECUTION)),
        "Sweep": lambda: log_of("sweep").count('"message":"swept"'),
        "Catalog": lambda: log_of("catalog").count('"message":"catalog"'),
        "Tables": lambda: log_of("tables").count('"message":"tables"'),
    }
    for part, outcome in outcomes.items():
        changed = partial(has_changed, outcome, outcome())
        with scenario.started_soon(part):
            wait_for(f"what {part} starts", changed)


def has_changed(outcome: Callable[[], object], before: object) -> bool:
    return outcome() != before


def test_the_verification_is_started_by_its_schedule(scenario: Scenario) -> None:
    machine = scenario.deployment.outputs.overnight.replace("-overnight", "-verify")
    with scenario.started_soon("Verify") as since:
        wait_for("the verification", lambda: executions(scenario, machine, since))
    (execution,) = executions(scenario, machine, since)
    end = scenario.ended(execution["executionArn"])
    assert end["status"] == "SUCCEEDED", end.get("cause")


def idle(scenario: Scenario) -> None:
    """Wait until no run of the stream is alive."""
    wait_for("the end of the stream", lambda: not read_shards(scenario.deployment)[0].runs)


def working_run(scenario: Scenario, other_than: str = "") -> str:
    """Wait for a run that has begun to work; return its id."""
    stream = scenario.deployment.ledger.stream

    def begun() -> str | None:
        row = stream.get()
        return row.run if row.heartbeat_at is not None and row.run != other_than and not row.starts else None

    return wait_for("a run of the stream", begun)


def test_the_window_keeps_a_run_alive_until_it_is_over(scenario: Scenario) -> None:
    # Given the schedule of the window, which this stage has switched off
    stack = scenario.deployment
    idle(scenario)
    before = str(stack.ledger.stream.get().run)
    # When it starts the window, then a run is alive
    with scenario.started_soon("StreamWindow") as since:
        wait_for("the window", lambda: executions(scenario, stack.outputs.stream_window, since))
    (execution,) = executions(scenario, stack.outputs.stream_window, since)
    first = working_run(scenario, before)
    # When a person kills it, then the window starts another one
    assert stack.control_stream("kill")["killed"] == 1
    second = working_run(scenario, first)
    state = stack.glue.get_job_run(JobName=stack.resources.stream_job, RunId=first)["JobRun"]["JobRunState"]
    assert state == "STOPPED"
    # When its end has come, then that run stops, and so does the window
    stack.ledger.stream.open_window(iso_utc(since))
    assert scenario.ended(execution["executionArn"])["status"] == "SUCCEEDED"
    assert read_shards(stack)[0].runs == ()
    assert second != first


@pytest.mark.parametrize(
    ("machine", "part", "action", "subject"),
    [
        ("stream_window", "RouterstreamcontrolRole", "dynamodb:UpdateItem", "hybrid-router: stream window failed"),
        ("backfill", "RouterbackfillRole", "dynamodb:GetItem", "hybrid-router: backfill execution failed"),
    ],
)
def test_a_failed_execution_reaches_its_subscribers(
    scenario: Scenario, machine: str, part: str, action: str, subject: str
) -> None:
    # Given a subscriber, and a function that lacks a permission
    outputs, iam, sqs = scenario.deployment.outputs, scenario.cloud.client("iam"), scenario.cloud.client("sqs")
    queue = subscribe_queue(scenario.cloud, outputs.alarm_topic, f"people-of-{machine.replace('_', '-')}")
    request = {"dataset": "failing", "from": "2026-01-01", "to": "2026-01-01"} if machine == "backfill" else {}
    role = role_name(iam, part)
    # When
    with without(iam, role, action):
        end = scenario.execute(getattr(outputs, machine), request)
    # Then the message names it
    assert end["status"] == "FAILED"
    found = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10).get("Messages", [])
    bodies = [json.loads(item["Body"]) for item in found]
    (text,) = [body["Message"] for body in bodies if body["Subject"] == subject]
    assert sentences(text, role, action)


def test_the_stream_reports_what_it_may_not_read_and_converts_it_afterwards(scenario: Scenario) -> None:
    # Given jobs that may not read the input
    iam = scenario.cloud.client("iam")
    idle(scenario)
    with without(iam, role_name(iam, "JobsRole"), "s3:GetObjectVersion"):
        file = scenario.put("unreadable/urgent/a.ndjson", ['{"n": 1}'])

        # Then the manifest waits for the permission, and names the action
        def has_reason() -> bool:
            row = scenario.manifest_of(file)
            return row is not None and "s3:GetObjectVersion" in str(row.reason)

        wait_for("the reason of the manifest", has_reason)
        idle(scenario)
    assert scenario.wait_state(file, State.QUEUED).tries == 0
    # When they have it, and a person starts the stream, then the manifest is converted
    scenario.start_stream()
    scenario.wait_state(file, State.DONE)


def test_every_user_of_a_stream_that_cannot_start_gets_the_reason(scenario: Scenario) -> None:
    # Given three runs in succession that have failed before they began to work, and a file that waits for the night
    stack, job = scenario.deployment, scenario.deployment.resources.stream_job
    idle(scenario)
    other = scenario.queued("impatient/b.ndjson", ['{"n": 1}'])
    arguments = {"--settings": f"s3://{stack.resources.control_bucket}/no-settings.json"}
    for _ in range(3):
        run = stack.glue.start_job_run(JobName=job, Arguments=arguments)["JobRunId"]
        idle(scenario)
        stack.ledger.stream.count_start(stack.ledger.stream.get(), run, datetime.now(UTC))
    message = f"3 consecutive runs of the streaming job {job} ended"
    # When an urgent file arrives, then route logs the failures
    urgent = scenario.put("impatient/urgent/a.ndjson", ['{"n": 2}'])
    waiting = scenario.wait_state(urgent, State.QUEUED)
    wait_for("the log of route", lambda: message in logs(scenario.cloud.logs_dir, "lambda/*route*.log"))
    # When a person promotes the other file, or the sweep finds the first one, then the answer reports them as well
    assert message in stack.invoke("promote", {"files": [other.uri]})["messages"][0]
    scenario.make_older(waiting, timedelta(minutes=20))
    scenario.wait_in_index(waiting, State.QUEUED)
    with pytest.raises(TerminalError, match=message):
        stack.invoke("sweep", {"dryRun": False})
    # And so does the watch of the window, which measures the backlog first
    with pytest.raises(TerminalError, match=message):
        stack.control_stream("watch")
    # When a person has removed the cause and starts the stream, then both are converted
    scenario.start_stream()
    for file in (urgent, other):
        wait_for(f"{file.key} to be converted", partial(is_done, scenario, file))


def is_done(scenario: Scenario, file: ObjectVersion) -> bool:
    stack, arrival = scenario.deployment, scenario.deployment.ledger.arrivals.get(file)
    return arrival is not None and trace_arrival(stack.s3, stack.ledger, stack.resources, arrival).state == State.DONE
