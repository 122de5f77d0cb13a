"""``spark-history`` copies event logs and serves pages about them; a small server takes the place of Spark's."""

from __future__ import annotations

import os
import signal
import socket
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cli.exit_codes import NotFoundError
from cli.inspect import spark_history
from cli.inspect.event_logs import copy_event_logs, newest_event_logs
from cli.inspect.spark_history import EVENT_LOGS_ARGUMENT, HistoryServerError, serve_history
from tests.unit.cli.stack_world import FakeServices, stack_of

if TYPE_CHECKING:
    from cli.deployed_stack import DeployedStack
    from tests.unit.lake.world import World

GLUE = "spark-logs/eventlog_v2_spark-application-1"
EMR = "spark-logs/applications/00app/jobs/00run"
SERVER = """
import json, os, re, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

text = Path(sys.argv[2]).read_text()
folder = Path(re.search("logDirectory file://(.+)", text)[1])

class Answer(BaseHTTPRequestHandler):
    is_ready = False

    def do_GET(self):
        assert self.path == "/api/v1/applications"
        names = sorted(path.name for path in folder.iterdir())
        body = json.dumps([{"id": name, "name": f"hybrid-router-batch {name}"} for name in names]).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body if Answer.is_ready else b"<!DOCTYPE html><html>")
        Answer.is_ready = True

HTTPServer(("127.0.0.1", int(re.search("ui.port (.+)", text)[1])), Answer).serve_forever()
"""
"""It names each application after its log. As Spark's, it answers with its first page until its API is there."""


class Glue:
    """``get_job`` of a stage that keeps event logs, or does not."""

    def __init__(self, *, kept: bool) -> None:
        self.kept = kept

    def get_job(self, JobName: str) -> dict[str, Any]:  # noqa: N803
        """The streaming job."""
        assert JobName
        return {"Job": {"DefaultArguments": {EVENT_LOGS_ARGUMENT: "s3://control/spark-logs/"} if self.kept else {}}}


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture
def stack(world: World, monkeypatch: pytest.MonkeyPatch) -> DeployedStack:
    monkeypatch.setattr(spark_history, "server_command", lambda: [sys.executable, "-c", SERVER])
    monkeypatch.setattr(spark_history, "java_command", lambda: "java")
    return replace(stack_of(world, FakeServices()), glue=Glue(kept=True))


def put(stack: DeployedStack, *keys: str) -> None:
    for key in keys:
        stack.s3.put_object(Bucket=stack.resources.control_bucket, Key=key, Body=key.encode())


def test_the_logs_of_every_engine_are_copied_as_spark_expects_them(stack: DeployedStack, tmp_path: Path) -> None:
    # Given logs of Glue and of EMR Serverless, a single file, and what is not an event log
    put(stack, f"{GLUE}/events_1_a", f"{GLUE}/events_2_a", f"{GLUE}/appstatus_a", "spark-logs/one")
    put(stack, f"{EMR}/sparklogs/eventlog_v2_00run/events_1_00run", f"{EMR}/SPARK_DRIVER/stdout.gz")
    put(stack, "spark-logs/a/../b", "spark-logs/../c", "spark-logs/")
    # When
    logs = newest_event_logs(stack.s3, stack.resources.control_bucket, 20)
    copy_event_logs(stack.s3, stack.resources.control_bucket, logs, tmp_path)
    # Then
    copied = {str(path.relative_to(tmp_path)): path.read_text() for path in tmp_path.rglob("*") if path.is_file()}
    glue = "eventlog_v2_spark-application-1"
    assert copied == {
        **{f"{glue}/{name}": f"spark-logs/{glue}/{name}" for name in ("events_1_a", "events_2_a", "appstatus_a")},
        "one": "spark-logs/one",
        "eventlog_v2_00run/events_1_00run": f"{EMR}/sparklogs/eventlog_v2_00run/events_1_00run",
    }
    assert {log.name: log.size for log in logs}["one"] == len("spark-logs/one")
    assert len(newest_event_logs(stack.s3, stack.resources.control_bucket, 2)) == 2


def run_until_shown(
    monkeypatch: pytest.MonkeyPatch, stack: DeployedStack, run: str | None, port: int
) -> tuple[str, int | None]:
    """What the command prints, and its exit code; once it has shown the address, a person presses Ctrl-C."""
    printed: list[str] = []

    def echo(text: str, err: bool = False) -> None:
        printed.append(text)
        if not err:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr("cli.inspect.spark_history.typer.echo", echo)
    try:
        code: int | None = serve_history(stack, run, 20, port)
    except KeyboardInterrupt:
        code = None
    with socket.socket() as later:
        assert later.connect_ex(("127.0.0.1", port)) != 0, "the server is still there"
    return printed[-1], code


def test_the_pages_are_served_until_ctrl_c(stack: DeployedStack, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    put(stack, "spark-logs/jr_1", "spark-logs/jr_2")
    assert run_until_shown(monkeypatch, stack, None, port) == (
        f"http://127.0.0.1:{port}   (event logs: 2; Ctrl-C ends the server)",
        None,
    )
    shown, _ = run_until_shown(monkeypatch, stack, "jr_2", port)
    assert shown.startswith(f"http://127.0.0.1:{port}/history/jr_2/jobs/ ")


def test_a_run_without_a_log_is_said(stack: DeployedStack, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    put(stack, "spark-logs/jr_1", "spark-logs/jr_2")
    with pytest.raises(NotFoundError, match="none of the newest 2 event logs is of job run jr: pass a higher --limit"):
        run_until_shown(monkeypatch, stack, "jr", port)


@pytest.mark.parametrize(
    ("kept", "said"),
    [(True, "there are no event logs yet"), (False, "the stage keeps no event logs: set spark.ui_logs")],
)
def test_a_stage_without_logs_says_why(stack: DeployedStack, port: int, kept: bool, said: str) -> None:
    with pytest.raises(NotFoundError, match=said):
        serve_history(replace(stack, glue=Glue(kept=kept)), None, 20, port)


def test_a_server_that_ends_is_quoted(stack: DeployedStack, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    put(stack, "spark-logs/jr_1")
    monkeypatch.setattr(spark_history, "server_command", lambda: [sys.executable, "-c", "print('no class'); exit(3)"])
    with pytest.raises(HistoryServerError, match=r"exit code 3\. It said:\nno class"):
        serve_history(stack, None, 20, port)


def test_a_run_whose_log_was_not_read_in_time_is_not_said_to_have_none(
    stack: DeployedStack, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(stack, "spark-logs/jr_1", "spark-logs/jr_2")
    monkeypatch.setattr(spark_history, "MAX_START_SECONDS", 0)
    monkeypatch.setattr(spark_history, "_applications", lambda _: [{"id": "jr_1", "name": "hybrid-router-batch jr_1"}])
    message = (
        "has read 1 of 2 event logs within 0 seconds, and none of these is of job run jr_2: pass a smaller --limit"
    )
    with pytest.raises(HistoryServerError, match=message):
        serve_history(stack, "jr_2", 20, port)
