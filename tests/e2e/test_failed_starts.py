"""A streaming job that dies at its start on the local cloud: it is started less often, and a person learns why."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner, Result

from cli.main import app
from lake.time import iso_utc
from router.services import Services
from router.stream.handler import stream_control
from router.stream.runs import FailedStartsError
from tests.e2e.stack_settings import NOW, e2e_settings
from tests.e2e.user_commands import leave_local_state
from tests.e2e.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.scenario import Scenario

STAGE = "e2e"
REASON = "ModuleNotFoundError: No module named 'wheels_that_are_missing'"


@pytest.fixture
def services(scenario: Scenario) -> Services:
    """The services of ``stream_control``; its window lasts half a day."""
    stack, settings = scenario.deployment, e2e_settings()
    schedule = replace(settings.schedule, stream_end=f"{NOW + timedelta(hours=12):%H:%M}")
    return Services(
        settings=replace(settings, schedule=schedule),
        resources=stack.resources,
        ledger=stack.ledger,
        s3=stack.s3,
        glue=stack.glue,
        clock=lambda: datetime.now(UTC),
    )


@contextmanager
def broken_job(scenario: Scenario) -> Iterator[None]:
    """The script of the streaming job fails in its first line until the block is left."""
    stack = scenario.deployment
    glue, name = scenario.cloud.client("glue"), stack.resources.stream_job
    command = glue.get_job(JobName=name)["Job"]["Command"]
    bucket, _, key = command["ScriptLocation"].removeprefix("s3://").partition("/")
    script = f"{key.rpartition('/')[0]}/broken.py".lstrip("/")
    scenario.cloud.client("s3").put_object(Bucket=bucket, Key=script, Body=b"import wheels_that_are_missing\n")
    glue.update_job(JobName=name, JobUpdate={"Command": {**command, "ScriptLocation": f"s3://{bucket}/{script}"}})
    try:
        yield
    finally:
        glue.update_job(JobName=name, JobUpdate={"Command": command})


def run(*arguments: str) -> Result:
    """A command line on the stack, as a person runs it."""
    return CliRunner().invoke(app, [*arguments, "--local", "--stage", STAGE])


def test_a_job_that_dies_at_its_start_waits_and_its_reason_reaches_a_person(
    scenario: Scenario, services: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack, begun = scenario.deployment, datetime.now(UTC)
    stream = stack.ledger.stream

    def alive() -> bool:
        runs = stack.glue.get_job_runs(JobName=stack.resources.stream_job)["JobRuns"]
        return any(item["JobRunState"] in ("STARTING", "RUNNING", "STOPPING") for item in runs)

    def act(action: str, minutes: float) -> dict[str, Any]:
        """The function, this time after the first start."""
        later = replace(services, clock=lambda: begun + timedelta(minutes=minutes))
        return stream_control({"action": action}, later)

    # Given no streaming run, and a script that cannot be imported
    wait_for("the streaming run to end", lambda: stack.control_stream("stop")["stopped"])
    with broken_job(scenario):
        # When it is watched, Then the second and the third start wait one and two minutes
        act("start", 0)
        for starts, early, due in ((1, 0.9, 1), (2, 2.9, 3)):
            wait_for("the run to die", lambda: not alive())
            assert (act("watch", early)["running"], stream.get().starts) == (False, starts)
            assert (act("watch", due)["running"], stream.get().starts) == (True, starts + 1)
        # And after the third failure the caller gets Glue's reason
        wait_for("the run to die", lambda: not alive())
        with pytest.raises(FailedStartsError, match=REASON):
            act("watch", 6.9)
        # And a person sees it
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
        leave_local_state(scenario, STAGE)
        status = " ".join(run("status").output.split())
        assert "not running, 3 starts in succession failed" in status
        assert REASON in status
    # When it is repaired and a person starts it, Then it works, and nothing is left of the failures
    started = run("stream", "start")
    assert (started.exit_code, started.output.strip()) == (0, "the streaming job runs")
    wait_for("the run to work", lambda: stream.get().starts == 0)
    assert stream.get().start_failure is None
    # Then the stream ends as other tests expect it
    stream.open_window(iso_utc(begun))
    wait_for("the streaming run to end", lambda: stack.control_stream("stop")["stopped"])
