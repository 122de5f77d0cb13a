"""What commands say of the streaming jobs on EMR Serverless: runs, logs, event logs, settings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from cli.inspect.backlog import read_shards
from cli.inspect.executions import local_log, log_stream
from cli.offline.settings import summary
from lake.engines.emr_serverless import run_id
from lake.manifest import Lane
from lake.settings import EmrSettings, Settings, StreamSettings
from lake.shards import Shards
from tests.unit.cli.stack_world import FakeServices, stack_of
from tests.unit.lake.world import World
from tests.unit.router.emr import APPLICATION, LAUNCH, FakeEmr

if TYPE_CHECKING:
    from cli.deployed_stack import DeployedStack

RUN = run_id(APPLICATION, "00run1")


@pytest.fixture
def stack(world: World) -> DeployedStack:
    """A stack with two shards on EMR Serverless, of which the second one has a run."""
    stack, emr = stack_of(world, FakeServices()), FakeEmr()
    outputs = replace(stack.outputs, shards=Shards(jobs=2), stream_application=APPLICATION)
    emr.start_job_run(**LAUNCH.request("2", outputs.resources.stream_job_of("2"), "token"))
    return replace(stack, outputs=outputs, stream_client=emr)


def test_the_runs_of_each_shard_are_those_of_its_name(stack: DeployedStack) -> None:
    assert [state.runs for state in read_shards(stack)] == [(), (RUN,)]


def test_the_log_of_a_streaming_run_is_that_of_its_only_attempt(stack: DeployedStack) -> None:
    group = "/aws/emr-serverless/hybrid-router-dev"
    assert log_stream(stack, RUN) == (
        f"{group}/stream",
        f"/applications/{APPLICATION}/jobs/00run1/attempts/1/SPARK_DRIVER/stdout",
    )
    # And a run of the batch lane has that of the other application
    batch = log_stream(stack, run_id("00batch", "00run2"))
    assert batch == (group, "/applications/00batch/jobs/00run2/SPARK_DRIVER/stdout")


def test_the_log_of_a_streaming_run_of_the_local_cloud_is_a_file(stack: DeployedStack, tmp_path: Any) -> None:
    file = tmp_path / stack.resources.stream_job / "00run1.log"
    file.parent.mkdir()
    file.touch()
    assert local_log(replace(stack, local=True, local_logs=str(tmp_path)), RUN, Lane.STREAM) == file


def test_settings_are_said_in_words_with_the_price_of_a_quiet_hour() -> None:
    stream = StreamSettings(engine="emr-serverless", max_workers=5)
    settings = Settings(stage="dev", stream=stream, emr=EmrSettings(architecture="arm64"))
    told = dict(summary(settings))["stream lane"]
    assert "unless more wait than 16 cores convert in 300 s" in told
    words = "on emr-serverless a driver and 0 to 4 executors G.1X, $0.1212 an hour while one is quiet"
    assert told.endswith(words)
