"""`hybrid-router sweep`, `overnight` and `backfill`: what they ask for, what they print, how they end."""

import json
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError, NoCredentialsError

import cli.change.executions
from cli.change.executions import run_backfill, run_overnight
from cli.change.requests import print_sweep
from cli.errors import ExitCode, NotReachableError
from lake.errors import InvalidInputError
from router.sweep.handler import COUNTS
from tests.unit.cli.stack_world import FakeLambda, FakeServices, stack_of, stack_with
from tests.unit.lake.world import World

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
NIGHT = {"verdict": "SUCCEEDED", "message": "all 3 manifests are done: 101 rows"}
FIELDS = {"dataset": "orders", "first": "2026-11-20", "last": "2026-11-20"}
REQUEST = {"dataset": "orders", "from": "2026-11-20", "to": "2026-11-20", "force": False}


@dataclass
class Machines(FakeServices):
    """Step Functions, whose executions end at the second look."""

    end: dict[str, Any] = field(default_factory=dict)
    started: list[Any] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    looks: int = 0

    def start_execution(self, stateMachineArn: str, name: str, input: str) -> dict[str, str]:  # noqa: A002, N803
        assert name not in self.names
        self.names.add(name)
        self.started.append(json.loads(input))
        return {"executionArn": "arn:1"}

    def describe_execution(self, executionArn: str) -> dict[str, Any]:  # noqa: N803
        self.looks += 1
        return {"status": "RUNNING"} if self.looks == 1 else self.end

    def get_execution_history(self, **_: Any) -> dict[str, Any]:
        names = {2: "Plan", 4: "Settle", 6: "Wait", 8: "Settle"}
        return {"events": [{"id": n, "timestamp": NOON, "stateEnteredEventDetails": {"name": names[n]}} for n in names]}


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli.change.executions, "POLL_SECONDS", 0)


def run(
    world: World, command: Any, fields: dict[str, Any], output: Any = NIGHT, *, status: str = "SUCCEEDED", **flags: bool
) -> tuple[int, list[Any]]:
    """The exit code, and what was started."""
    world.ledger.datasets.register("orders")
    machines = Machines(end={"status": status, "output": json.dumps(output), "cause": "why"})
    refusal = {"refused": "dataset = 'orderz' is unknown", "error": "InvalidInputError"}
    functions: Any = FakeLambda(refusal if fields.get("dataset") == "orderz" else {})
    stack = replace(stack_of(world, machines), functions=functions)
    try:
        return command(stack, **fields, **flags), machines.started
    except InvalidInputError:
        assert machines.started == []
        raise


@pytest.mark.parametrize(
    ("status", "output", "code", "told"),
    [
        ("SUCCEEDED", NIGHT, ExitCode.FINE, "SUCCEEDED: all 3 manifests are done: 101 rows\n"),
        ("SUCCEEDED", {"verdict": "EMPTY", "message": "nothing"}, ExitCode.FINE, "EMPTY: nothing\n"),
        ("FAILED", {}, ExitCode.NOT_SO, "FAILED: why\n"),
        ("SUCCEEDED", {"verdict": "FAILED", "message": "m"}, ExitCode.NOT_SO, "FAILED: m\n"),
    ],
)
def test_a_night_is_followed_and_its_verdict_is_the_exit_code(
    world: World, status: str, output: Any, code: ExitCode, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = run(world, run_overnight, {"dataset": "orders"}, output, status=status)
    assert ended == (code, [{"dataset": "orders"}])
    printed = capsys.readouterr()
    assert printed.out == told
    steps = [f"13:00:00  {name}" for name in ("Plan", "Settle", "Wait", "Settle")]
    assert printed.err.splitlines() == ["started: arn:1", "times in Europe/Berlin", *steps]


def test_an_execution_that_is_not_waited_for_is_named(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(world, run_overnight, {}, no_wait=True, as_json=True)[0] == ExitCode.FINE
    assert json.loads(capsys.readouterr().out) == {"execution": "arn:1"}


def test_ctrl_c_ends_the_command_and_not_the_execution(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    interrupt = Mock(side_effect=KeyboardInterrupt)
    monkeypatch.setattr(cli.change.executions.follow_execution, "__defaults__", (interrupt,))
    with pytest.raises(KeyboardInterrupt):
        run(world, run_overnight, {})
    assert capsys.readouterr().err.splitlines()[-1] == "the execution goes on"


@pytest.mark.parametrize(
    "error", [NoCredentialsError(), ClientError({"Error": {"Code": "ThrottlingException"}}, "DescribeExecution")]
)
def test_an_execution_that_cannot_be_followed_any_longer_is_not_to_be_started_again(
    world: World, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(cli.change.executions.follow_execution, "__defaults__", (Mock(side_effect=error),))
    with pytest.raises(NotReachableError, match=r"^arn:1 goes on, .* 'hybrid-router nights' shows its end$") as raised:
        run(world, run_overnight, {})
    assert "run the command again" not in str(raised.value)


@pytest.mark.parametrize(
    ("command", "fields", "flags", "error"),
    [
        (run_overnight, {"first": "2026-11-02", "last": "2026-11-01"}, {}, "from = "),
        (run_overnight, {"dataset": "orderz"}, {}, "the ledger has no dataset 'orderz'"),
        (run_backfill, {**FIELDS, "dataset": "orderz"}, {}, "dataset = 'orderz' is unknown"),
        (run_backfill, {**FIELDS, "dataset": "orderz"}, {"dry_run": True}, "dataset = 'orderz' is unknown"),
    ],
)
def test_a_wrong_request_starts_nothing(world: World, command: Any, fields: Any, flags: Any, error: str) -> None:
    with pytest.raises(InvalidInputError, match=error):
        run(world, command, fields, **flags)


def test_a_backfill_ends_as_its_night_does(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    ended = run(world, run_backfill, FIELDS, {"dryRun": False, "search": {}, "overnight": NIGHT})
    assert ended == (ExitCode.FINE, [{**REQUEST, "dryRun": False}])
    assert capsys.readouterr().out == "SUCCEEDED: all 3 manifests are done: 101 rows\n"


def test_a_dry_run_of_a_backfill_says_what_it_would_convert(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    search = {"found": 5, "known": 3, "recorded": 2, "bytes": 2_000_000, "archived": 1, "reprocessed": 4}
    output = {"dryRun": True, "search": search, "plan": {"files": 1, "bytes": 1000}}
    assert run(world, run_backfill, FIELDS, output, dry_run=True) == (ExitCode.FINE, [{**REQUEST, "dryRun": True}])
    told = capsys.readouterr().out
    assert "found: 5 files, of which 3 have an owner; to be converted: 2 files, 2 MB" in told
    assert "archived, so restore them first: 1 of the files to be converted" in told
    assert "to be converted again: 4 manifests" in told


def test_a_sweep_prints_its_counts_and_a_dry_run_its_items(capsys: pytest.CaptureFixture[str]) -> None:
    answer = {**dict.fromkeys(COUNTS, 0), "released": 2, "items": ["released: manifest m"]}
    stack = stack_with(FakeLambda(answer))
    print_sweep(stack, dry_run=False, as_json=False)
    assert capsys.readouterr().out == "manifests released: 2\n"
    print_sweep(stack, dry_run=True, as_json=False)
    assert capsys.readouterr().out.splitlines()[1:] == ["  released: manifest m", "manifests released: 2"]
