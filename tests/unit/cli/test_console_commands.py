"""`hybrid-router sweep`, `overnight`, `backfill` and `stream`: what they ask for, what they print, how they end."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

import cli.change.executions
from cli.change.executions import run_backfill, run_overnight
from cli.change.requests import SWEEP_LABELS, print_sweep
from cli.change.stream import print_stream, start_stream, stop_stream
from cli.errors import ExitCode
from lake.errors import InvalidInputError
from lake.ledger import StreamRow
from lake.shards import Shards
from router.sweep.handler import COUNTS
from tests.unit.cli.stack_world import FakeServices
from tests.unit.lake.world import RESOURCES

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
NIGHT = {"verdict": "SUCCEEDED", "message": "all 3 manifests are done: 101 rows"}


class FakeStack:
    """A stack whose executions end at the second look, and whose functions answer what a test gives."""

    def runnable(self, text: str) -> str:
        return text

    def __init__(self, status: str = "SUCCEEDED", output: Any = None, **answers: Any) -> None:
        self.asked: list[Any] = []
        self.options = " --stage test"
        self.outputs = SimpleNamespace(
            overnight="arn:aws:states:here:1:stateMachine:overnight", overnight_schedule="night"
        )
        self.scheduler = FakeServices()
        self._events = [
            {"id": number, "timestamp": NOON, "stateEnteredEventDetails": {"name": name}}
            for number, name in ((2, "Plan"), (4, "Runs"))
        ]
        self.sfn = SimpleNamespace(
            describe_execution=self._describe, get_execution_history=lambda **_: {"events": list(self._events)}
        )
        self.ledger = SimpleNamespace(
            datasets=SimpleNamespace(is_known=lambda name: name == "orders", names=lambda: ["orders"])
        )
        self.answers = answers
        self._looks = 0
        self._end = {"status": status, "output": json.dumps(output)} if output else {"status": status, "cause": "why"}

    def _describe(self, executionArn: str) -> dict[str, Any]:  # noqa: N803
        assert executionArn == "arn:1"
        self._looks += 1
        return {"status": "RUNNING"} if self._looks == 1 else self._end

    def start(self, _machine: str, selection: Any) -> str:
        self.asked.append(selection)
        return "arn:1"

    def invoke(self, name: str, event: Any) -> dict[str, Any]:
        if name == "sweep":
            return {**dict.fromkeys(COUNTS, 0), "released": 2}
        request = event["input"]
        assert set(request) >= {"dataset", "dryRun"}
        if request["dataset"] != "orders":
            raise InvalidInputError(f"dataset = {request['dataset']!r} is unknown: pass one of orders")
        return {}

    def control_stream(self, action: str, shards: str = "") -> dict[str, Any]:
        self.asked.append(f"{action} {shards}".rstrip())
        answer: dict[str, Any] = self.answers["stream"].pop(0)
        return answer


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli.change.executions, "POLL_SECONDS", 0)


def run(command: Any, stack: FakeStack, fields: dict[str, Any], **flags: bool) -> int:
    return int(command(stack, fields, **{"dry_run": False, "wait": True, "as_json": False, **flags}))


@pytest.mark.parametrize(
    ("status", "output", "code", "told"),
    [
        ("SUCCEEDED", NIGHT, ExitCode.FINE, "SUCCEEDED: all 3 manifests are done: 101 rows\n"),
        ("SUCCEEDED", {"verdict": "EMPTY", "message": "nothing"}, ExitCode.FINE, "EMPTY: nothing\n"),
        ("FAILED", None, ExitCode.NOT_SO, "FAILED: why\n"),
        ("TIMED_OUT", None, ExitCode.NOT_SO, "TIMED_OUT: why\n"),
        ("SUCCEEDED", {"verdict": "FAILED", "message": "m"}, ExitCode.NOT_SO, "FAILED: m\n"),
    ],
)
def test_a_night_is_followed_and_its_verdict_is_the_exit_code(
    status: str, output: Any, code: ExitCode, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stack = FakeStack(status, output)
    assert run(run_overnight, stack, {"dataset": "orders", "from": None}) == code
    assert stack.asked == [{"dataset": "orders"}]
    printed = capsys.readouterr()
    assert printed.out == told
    assert printed.err.splitlines() == ["started: arn:1", "times in Europe/Berlin", "13:00:00  Plan", "13:00:00  Runs"]


def test_an_execution_that_is_not_waited_for_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(run_overnight, FakeStack(), {}, wait=False, as_json=True) == ExitCode.FINE
    assert json.loads(capsys.readouterr().out) == {"execution": "arn:1"}


def test_ctrl_c_ends_the_command_and_not_the_execution(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli.change.executions.follow_execution, "__defaults__", (interrupt,))
    with pytest.raises(KeyboardInterrupt):
        run(run_overnight, FakeStack(output=NIGHT), {})
    assert capsys.readouterr().err.splitlines()[-1] == "the execution goes on"


@pytest.mark.parametrize("hours", [{"from": "yesterday", "to": None}, {"from": "2026-11-02", "to": "2026-11-01"}])
def test_wrong_hours_start_no_night(hours: dict[str, Any]) -> None:
    stack = FakeStack()
    with pytest.raises(InvalidInputError, match="from = "):
        run(run_overnight, stack, {"dataset": "orders", **hours})
    assert stack.asked == []


@pytest.mark.parametrize("dry_run", [False, True])
def test_what_the_function_refuses_starts_no_backfill(dry_run: bool) -> None:
    stack = FakeStack()
    with pytest.raises(InvalidInputError, match="dataset = 'orderz' is unknown"):
        run(run_backfill, stack, {"dataset": "orderz"}, dry_run=dry_run)
    assert stack.asked == []


def test_a_backfill_ends_as_its_night_does(capsys: pytest.CaptureFixture[str]) -> None:
    fields = {"dataset": "orders", "from": "2026-11-20", "to": "2026-11-20", "force": False}
    stack = FakeStack(output={"dryRun": False, "search": {}, "overnight": NIGHT})
    assert run(run_backfill, stack, fields) == ExitCode.FINE
    assert stack.asked == [{**fields, "dryRun": False}]
    assert capsys.readouterr().out == "SUCCEEDED: all 3 manifests are done: 101 rows\n"


def test_a_dry_run_of_a_backfill_says_what_it_would_convert(capsys: pytest.CaptureFixture[str]) -> None:
    search, plan = {"found": 5, "known": 3, "recorded": 2, "bytes": 2_000_000}, {"files": 1, "bytes": 1000}
    stack = FakeStack(output={"dryRun": True, "search": search, "plan": plan})
    assert run(run_backfill, stack, {"dataset": "orders"}, dry_run=True, wait=False) == ExitCode.FINE
    assert stack.asked == [{"dataset": "orders", "dryRun": True}]
    told = capsys.readouterr().out
    assert "found: 5 files, of which 3 have an owner; to be converted: 2 files, 2 MB" in told


def test_a_sweep_prints_its_counts(capsys: pytest.CaptureFixture[str]) -> None:
    stack: Any = FakeStack()
    assert print_sweep(stack, as_json=False) == ExitCode.FINE
    assert capsys.readouterr().out == "2 manifests released\n"
    assert set(SWEEP_LABELS) == set(COUNTS)


def streaming(alive: bool, *answers: dict[str, Any], shards: int = 1) -> Any:
    stack: Any = FakeStack(stream=list(answers))
    states = [("jr_1", "RUNNING" if alive else "STOPPED")]
    runs = [{"Id": name, "JobRunState": state} for name, state in states]
    stack.stream_client = SimpleNamespace(get_job_runs=lambda **_: {"JobRuns": runs})
    stack.resources = RESOURCES
    stack.outputs = SimpleNamespace(shards=Shards(shards), stream_application="", stream_engine="glue")
    row = StreamRow("jr_1", "2026-11-20T12:00:00.000+00:00" if alive else None, spilling=alive)
    rows = SimpleNamespace(get=lambda: row)
    stack.ledger = SimpleNamespace(
        stream=SimpleNamespace(of=lambda _: rows), manifests=SimpleNamespace(open=lambda *_: [])
    )
    return stack


def test_the_streams_status_is_its_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert print_stream(streaming(True), as_json=False) == ExitCode.FINE
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "run jr_1, last heartbeat 2026-11-20T12:00:00.000+00:00, spilling"
    assert print_stream(streaming(False), as_json=True) == ExitCode.NOT_SO
    assert json.loads(capsys.readouterr().out)["backlog"] == {"manifests": 0, "files": 0, "bytes": 0}


@pytest.mark.parametrize(("running", "code"), [(True, ExitCode.FINE), (False, ExitCode.NOT_SO)])
def test_a_start_without_room_is_told(running: bool, code: ExitCode, capsys: pytest.CaptureFixture[str]) -> None:
    answer = {"running": running, "windowOver": False, "stopped": not running}
    assert start_stream(streaming(running, answer), dry_run=False, as_json=False) == code
    assert ("no room for a run now" in capsys.readouterr().out) is not running


def test_a_stop_asks_again_only_the_shards_that_have_not_stopped(capsys: pytest.CaptureFixture[str]) -> None:
    # Given three shards, of which one has a new run while the last one still works
    answers = [
        {"running": True, "windowOver": True, "stopped": not stopping, "stopping": stopping}
        for stopping in ("1,2,3", "3", "")
    ]
    stack = streaming(True, *answers, shards=3)
    # When, Then
    assert stop_stream(stack, dry_run=False, as_json=False, wait=lambda _: None) == ExitCode.NOT_SO
    assert stack.asked == ["stop", "stop 1,2,3", "stop 3"]


def test_the_streams_status_is_that_of_each_shard(capsys: pytest.CaptureFixture[str]) -> None:
    assert print_stream(streaming(True, shards=2), as_json=False) == ExitCode.FINE
    told = capsys.readouterr().out.splitlines()
    assert [line for line in told if not line.startswith("  ")] == ["shard 1", "shard 2"]
    assert told.count("  backlog: 0 manifests, 0 files, 0 bytes") == 2
    print_stream(streaming(True, shards=2), as_json=True)
    document = json.loads(capsys.readouterr().out)
    assert [shard["shard"] for shard in document["shards"]] == ["1", "2"]
    assert document["runs"] == ["jr_1"] * 2


def test_a_stop_inside_a_window_says_that_it_starts_again(capsys: pytest.CaptureFixture[str]) -> None:
    stack = streaming(False, {"running": True, "windowOver": False, "stopped": True, "stopping": ""})
    assert stop_stream(stack, dry_run=False, as_json=False) == ExitCode.NOT_SO
    assert "a new run converts what is still queued" in (told := capsys.readouterr().out)
    assert "its window is open" in told


@pytest.mark.parametrize("command", [start_stream, stop_stream])
def test_a_dry_run_asks_for_nothing(command: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for alive in (True, False):
        stack = streaming(alive)
        assert command(stack, dry_run=True, as_json=False) == ExitCode.FINE
        assert stack.asked == []
        assert capsys.readouterr().out.startswith("dry run, nothing was done: ")
