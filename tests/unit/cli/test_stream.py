"""`hybrid-router stream`, and what commands print about the streaming jobs on EMR Serverless: runs, logs, settings."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from cli.change.stream import read_shards, stream_start_command, stream_status_command, stream_stop_command
from cli.deployed_stack import DeployedStack
from cli.errors import ExitCode
from cli.inspect.executions import local_log, log_stream
from lake.engines.emr_serverless import run_id
from lake.errors import HybridRouterError
from lake.shards import Shards
from tests.unit.cli.conftest import Answered, Printed
from tests.unit.cli.stack_world import FakeLambda, FakeServices, stack_of
from tests.unit.lake.world import World
from tests.unit.router.emr import APPLICATION, LAUNCH, FakeEmr

RUN = run_id(APPLICATION, "00run1")


def streaming(world: World, alive: bool, *answers: dict[str, Any], shards: int = 1) -> Any:
    runs = [{"Id": "jr_1", "JobRunState": "RUNNING" if alive else "STOPPED"}]
    stack, functions = stack_of(world, FakeServices(stream_runs=runs)), FakeLambda(*answers)
    return replace(stack, functions=functions, sfn=functions, outputs=replace(stack.outputs, shards=Shards(shards)))  # type: ignore[arg-type]


def test_the_streams_status_is_its_exit_code(world: World, answered: Answered, printed: Printed) -> None:
    # Given a run that starts after one that died in a micro-batch, and one that does not know its id
    stream, second = world.ledger.stream, world.ledger.stream.of("2")
    stream.record_heartbeat("jr_0", world.now, world.now)
    stream.count_start(stream.get(), "jr_1", world.now)
    second.record_heartbeat("manual-1", world.now + timedelta(days=10_000))
    second.set_backlog(0, world.now, spilling=True)
    text = printed(stream_status_command, streaming(world, alive=True, shards=2), code=ExitCode.OK)
    assert text.splitlines() == [
        "hybrid-router-dev, times in Europe/Berlin",
        "shard 1: running (jr_1), no heartbeat",
        "shard 2: running (jr_1), heartbeat 0 s ago, spilling to the batch lane",
    ]
    # And with a failed start
    stream.record_start_failure(stream.get(), "no\nrole")
    text = printed(stream_status_command, streaming(world, alive=False), code=ExitCode.NEGATIVE)
    assert text.endswith("not running, 1 start in succession failed: no\\nrole\n")
    (shard,) = answered(stream_status_command, streaming(world, alive=False), schema="stream-status")["shards"]
    assert (shard["runs"], shard["failedStarts"], shard["manifests"]) == ([], 1, 0)


@pytest.mark.parametrize(("running", "code"), [(True, ExitCode.OK), (False, ExitCode.NEGATIVE)])
def test_a_start_without_room_is_reported(world: World, running: bool, code: ExitCode, printed: Printed) -> None:
    stack = streaming(world, running, {"running": running})
    assert ("no run can be started now" in printed(stream_start_command, stack, code=code)) is not running
    # And an execution watches the window: it restarts the run, measures the backlog and stops the run at the end
    assert stack.functions.started == [{}]


def test_a_start_that_an_engine_refuses_leaves_no_window_without_a_watch(world: World) -> None:
    # Given a function that opens the window and raises the error of the engine
    stack = streaming(world, False, {"errorType": "TerminalError", "errorMessage": "AccessDenied"})
    stack.functions._error = True
    # When, Then
    with pytest.raises(HybridRouterError, match="AccessDenied"):
        stream_start_command(stack)
    assert stack.functions.started == [{}]


def test_a_stop_asks_again_only_the_shards_that_have_not_stopped(
    world: World, printed: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    # Given three shards: one has a new run while the last one still works
    answers = [
        {"running": True, "windowOver": False, "stopped": not stopping, "stopping": stopping}
        for stopping in ({"1": ["jr_1"], "2": ["jr_2"], "3": ["jr_3"]}, {"3": ["jr_3"]}, {})
    ]
    stack = streaming(world, True, *answers, shards=3)
    # When, Then
    output = printed(stream_stop_command, stack, code=ExitCode.NEGATIVE)
    calls = [(event["action"], event["shards"]) for _, event in stack.functions.requests]
    assert calls == [("stop", {}), *(("stop", answer["stopping"]) for answer in answers[:2])]
    assert "a new run converts what is still queued" in output
    assert "'hybrid-router stream start --stage dev' opens a window again" in output


@pytest.mark.parametrize("command", [stream_start_command, stream_stop_command])
@pytest.mark.parametrize("alive", [True, False])
def test_a_dry_run_asks_for_nothing(world: World, command: Any, alive: bool, answered: Answered) -> None:
    stack = streaming(world, alive)
    answer = answered(command, stack, dry_run=True, code=ExitCode.OK)
    assert stack.functions.requests == []
    assert answer["message"].startswith("dry run, nothing was done: ")


@pytest.fixture
def on_emr(world: World) -> DeployedStack:
    """A stack with two shards on EMR Serverless; the second shard has a run."""
    stack, emr = stack_of(world, FakeServices()), FakeEmr()
    outputs = replace(stack.outputs, shards=Shards(jobs=2), stream_application=APPLICATION)
    emr.start_job_run(**LAUNCH.request("2", outputs.resources.stream_job_of("2"), "token"))
    return replace(stack, outputs=outputs, stream_client=emr)


def test_runs_are_found_by_the_name_of_their_shard_and_logs_by_the_id_of_the_run(
    on_emr: DeployedStack, tmp_path: Any
) -> None:
    assert [state.runs for state in read_shards(on_emr)] == [(), (RUN,)]
    # And the log belongs to the only attempt, or to a run of the batch lane's application
    group, jobs = "/aws/emr-serverless/hybrid-router-dev", f"/applications/{APPLICATION}/jobs"
    assert log_stream(on_emr, RUN) == (f"{group}/stream", f"{jobs}/00run1/attempts/1/SPARK_DRIVER/stdout")
    batch = log_stream(on_emr, run_id("00batch", "00run2"))
    assert batch == (group, "/applications/00batch/jobs/00run2/SPARK_DRIVER/stdout")
    # And in the local cloud the id alone identifies the file
    file = tmp_path / on_emr.resources.stream_job / "00run1.log"
    file.parent.mkdir()
    file.touch()
    assert local_log(replace(on_emr, local=True, local_logs=str(tmp_path)), RUN) == file
