"""`hybrid-router promote`, `reprocess`, `sweep`, `overnight` and `backfill`: requests, output, exit codes."""

import json
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError, NoCredentialsError

import cli.change.executions
from cli.change.executions import backfill_command, overnight_command
from cli.change.requests import UNPROMOTED_LABELS, UNQUEUED_LABELS, promote_command, reprocess_command, sweep_command
from cli.commands import Answer
from cli.deployed_stack import DeployedStack
from cli.errors import ExitCode, NotReachableError
from lake.errors import InvalidInputError, TerminalError, UnknownDatasetError
from router.requests.promote import PROMOTE_COUNTS
from router.requests.reprocess import REPROCESS_COUNTS
from router.sweep.handler import COUNTS
from tests.unit.cli.conftest import Printed
from tests.unit.cli.stack_world import FakeLambda, FakeServices, stack_of, stack_with
from tests.unit.lake.world import World

FILES: dict[str, Any] = {"uris": ["s3://b/k"]}
RANGE = {"dataset": "orders", "from": "2026-11-20T08", "to": "2026-11-20T09"}
MESSAGES = {"dryRun": False, "messages": [], "omitted": 0}


def promoted(**changes: Any) -> dict[str, Any]:
    return {**MESSAGES, **dict.fromkeys(PROMOTE_COUNTS, 0), **changes}


def queued(**changes: Any) -> dict[str, Any]:
    return {**MESSAGES, "token": None, "selection": None, **dict.fromkeys(REPROCESS_COUNTS, 0), **changes}


HOURS = {"dataset": "orders", "first": "2026-11-20T08", "last": "2026-11-20T09"}


def test_every_count_has_a_label() -> None:
    assert {"promoted", "manifests", *UNPROMOTED_LABELS} == set(PROMOTE_COUNTS)
    assert {"queued", "files", "bytes", *UNQUEUED_LABELS} == set(REPROCESS_COUNTS)


@pytest.mark.parametrize(
    ("command", "body", "code", "summary"),
    [
        (promote_command, promoted(promoted=1, manifests=1, unknown=1), 0, "promoted: 1 (new manifests: 1), 1 unknown"),
        (promote_command, promoted(dryRun=True, promoted=1), 0, "dry run, nothing was done; to be promoted: 1"),
        (promote_command, promoted(tooLate=1, unknown=1), 0, "promoted: 0, 1 too late, 1 unknown"),
        (promote_command, promoted(unknown=2, ignored=1), 1, "promoted: 0, 1 ignored, 2 unknown"),
        (promote_command, promoted(), 0, "nothing to promote: no file of this selection waits in"),
        (reprocess_command, queued(queued=2, files=3, bytes=10**9), 0, "queued again: 2 manifests (3 files, 1 GB)"),
        (reprocess_command, queued(dryRun=True, queued=1), 0, "dry run, nothing was done; to be queued again: 1 man"),
        (reprocess_command, queued(open=2, unusable=1), 0, "queued again: 0 manifests, 2 still open, 1 unusable"),
        (reprocess_command, queued(ignored=1, unusable=1), 1, "queued again: 0 manifests, 1 ignored, 1 unusable"),
        (reprocess_command, queued(), 0, "nothing to reprocess: no manifest of this selection has ended"),
    ],
)
def test_a_request_ends_with_1_only_if_nothing_that_was_named_can_be_converted(
    command: Any, body: dict[str, Any], code: int, summary: str, printed: Printed
) -> None:
    assert printed(command, stack_with(FakeLambda(body)), **FILES, code=code).startswith(summary)


def test_only_the_given_options_are_sent_and_every_message_is_printed(printed: Printed) -> None:
    functions = FakeLambda(promoted(promoted=2, manifests=1, messages=["one", "two"], omitted=1234))
    text = printed(promote_command, stack_with(functions), dataset="orders", first="2026-11-20", dry_run=True)
    assert functions.requests == [("promote", {"dataset": "orders", "from": "2026-11-20", "dryRun": True})]
    assert text.splitlines()[:3] == ["one", "two", "... and 1,234 more"]


@pytest.mark.parametrize(
    ("body", "error", "sentence"),
    [
        ({"refused": "set this", "error": "InvalidInputError"}, InvalidInputError, "set this"),
        ({"refused": "set this", "error": "UnknownDatasetError"}, UnknownDatasetError, "set this"),
        (
            {"errorType": "ClientError", "errorMessage": "set this"},
            TerminalError,
            "promote failed: set this; see its log",
        ),
    ],
)
def test_a_refusal_of_the_function_is_passed_on_verbatim(
    body: dict[str, Any], error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error) as caught:
        promote_command(stack_with(FakeLambda(body, error="errorType" in body)), **FILES)
    assert (type(caught.value), str(caught.value)) == (error, sentence)


@pytest.mark.parametrize("options", [{"uris": []}, {**FILES, "last": "2026-11-20"}])
@pytest.mark.parametrize("command", [promote_command, reprocess_command])
def test_anything_but_one_kind_of_target_is_refused(command: Any, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match=r"run 'hybrid-router (promote|reprocess) s3://bucket/key', or"):
        command(stack_with(FakeLambda({})), **options)


def test_all_pages_are_one_request(printed: Printed) -> None:
    # Given: a function that needs two invocations
    first = queued(queued=1, files=1, token="t", messages=["one"])
    functions = FakeLambda(first, queued(queued=2, files=2, selection=RANGE, messages=["two"]))
    # When
    text = printed(reprocess_command, stack_with(functions), **HOURS, code=0)
    # Then
    (_, request), (_, further) = functions.requests
    assert request == {**RANGE, "all": False, "dryRun": False, "request": request["request"]}
    assert further == {**request, "token": "t"}
    assert text.splitlines() == [
        "one",
        "so far: queued again: 1 manifest (1 file, 0 B)",
        "two",
        "queued again: 2 manifests (2 files, 0 B)",
        "the next overnight run converts them",
    ]


@pytest.mark.parametrize(
    ("body", "dry_run", "started"),
    [
        (queued(queued=1, selection=RANGE), False, [RANGE]),
        (queued(queued=1, selection=RANGE), True, []),
        (queued(open=1), False, []),
    ],
)
def test_now_starts_overnight_for_the_hours_that_were_queued(
    body: dict[str, Any], dry_run: bool, started: list[Any]
) -> None:
    functions = FakeLambda(body)
    assert reprocess_command(stack_with(functions), manifest=["m"], now=True, dry_run=dry_run, every=True) == 0
    assert functions.started == started
    assert functions.requests[0][1]["all"]


def test_what_was_queued_is_printed_also_if_overnight_may_not_be_started(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    denial = ClientError({"Error": {"Code": "AccessDeniedException", "Message": ""}}, "StartExecution")
    monkeypatch.setattr(DeployedStack, "start", Mock(side_effect=denial))
    with pytest.raises(ClientError):
        reprocess_command(stack_with(FakeLambda(queued(queued=1, selection=RANGE))), manifest=["m"], now=True)
    assert capsys.readouterr().out.startswith("queued again: 1 manifest (0 files, 0 B)\nthe next overnight run")


NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
NIGHT = {"verdict": "SUCCEEDED", "message": "all 3 manifests are done: 101 rows"}
FIELDS = {"dataset": "orders", "first": "2026-11-20", "last": "2026-11-20"}
REQUEST = {"dataset": "orders", "from": "2026-11-20", "to": "2026-11-20", "force": False}


@dataclass
class Machines(FakeServices):
    """Step Functions with executions that end at the second poll."""

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
) -> tuple[Answer, list[Any]]:
    """The answer, and the started executions."""
    world.ledger.datasets.admit({"orders": ""}, 0)
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
    ("status", "output", "code", "expected"),
    [
        ("SUCCEEDED", NIGHT, ExitCode.OK, "SUCCEEDED: all 3 manifests are done: 101 rows\n"),
        ("SUCCEEDED", {"verdict": "EMPTY", "message": "nothing"}, ExitCode.OK, "EMPTY: nothing\n"),
        ("FAILED", {}, ExitCode.NEGATIVE, "FAILED: why\n"),
        ("SUCCEEDED", {"verdict": "FAILED", "message": "m"}, ExitCode.NEGATIVE, "FAILED: m\n"),
    ],
)
def test_a_night_is_followed_and_its_verdict_is_the_exit_code(
    world: World, status: str, output: Any, code: ExitCode, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    answer, started = run(world, overnight_command, {"dataset": "orders"}, output, status=status)
    assert (answer.print(as_json=False), started) == (code, [{"dataset": "orders"}])
    printed = capsys.readouterr()
    assert printed.out == expected
    steps = [f"13:00:00  {name}" for name in ("Plan", "Settle", "Wait", "Settle")]
    assert printed.err.splitlines() == ["started: arn:1", "times in Europe/Berlin", *steps]


def test_ctrl_c_ends_the_command_and_not_the_execution(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    interrupt = Mock(side_effect=KeyboardInterrupt)
    monkeypatch.setattr(cli.change.executions.follow_execution, "__defaults__", (interrupt,))
    with pytest.raises(KeyboardInterrupt):
        run(world, overnight_command, {})
    assert capsys.readouterr().err.splitlines()[-1] == "the execution continues"


@pytest.mark.parametrize(
    "error", [NoCredentialsError(), ClientError({"Error": {"Code": "ThrottlingException"}}, "DescribeExecution")]
)
def test_an_execution_that_cannot_be_followed_any_longer_is_not_to_be_started_again(
    world: World, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(cli.change.executions.follow_execution, "__defaults__", (Mock(side_effect=error),))
    with pytest.raises(NotReachableError, match=r"^arn:1 continues, .* nights' shows its end$") as raised:
        run(world, overnight_command, {})
    assert "run the command again" not in str(raised.value)


@pytest.mark.parametrize(
    ("command", "fields", "flags", "error"),
    [
        (overnight_command, {"first": "2026-11-02", "last": "2026-11-01"}, {}, "from = "),
        (overnight_command, {"dataset": "orderz"}, {}, "the ledger has no dataset 'orderz'"),
        (backfill_command, {**FIELDS, "dataset": "orderz"}, {}, "dataset = 'orderz' is unknown"),
        (backfill_command, {**FIELDS, "dataset": "orderz"}, {"dry_run": True}, "dataset = 'orderz' is unknown"),
    ],
)
def test_a_wrong_request_starts_nothing(world: World, command: Any, fields: Any, flags: Any, error: str) -> None:
    with pytest.raises(InvalidInputError, match=error):
        run(world, command, fields, **flags)


def test_a_backfill_ends_as_its_night_does_or_is_named_and_not_waited_for(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    answer, started = run(world, backfill_command, FIELDS, {"dryRun": False, "search": {}, "overnight": NIGHT})
    assert (answer.print(as_json=False), started) == (ExitCode.OK, [{**REQUEST, "dryRun": False}])
    assert capsys.readouterr().out == "SUCCEEDED: all 3 manifests are done: 101 rows\n"
    for command, fields in ((backfill_command, FIELDS), (overnight_command, {})):
        answer, _ = run(world, command, fields, no_wait=True)
        assert (answer.document, answer.code) == ({"execution": "arn:1"}, ExitCode.OK)


def test_a_backfills_dry_run_shows_what_it_would_convert(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    search = {"found": 5, "known": 3, "recorded": 2, "bytes": 2_000_000, "archived": 1, "reprocessed": 4}
    forecast = {"minutes": 90, "dollars": 2, "other_dollars": 3}
    plan = {"files": 3, "bytes": 2_001_000, "runs": 1, "engine": "glue", "forecast": forecast}
    output = {"dryRun": True, "search": search, "plan": plan}
    answer, started = run(world, backfill_command, FIELDS, output, dry_run=True)
    assert (answer.print(as_json=False), started) == (ExitCode.OK, [{**REQUEST, "dryRun": True}])
    text = capsys.readouterr().out
    assert "found: 5 files, of which 3 have an owner; to be converted: 2 files, 2 MB" in text
    assert "archived, so restore them first: 1 of the files to be converted" in text
    assert "queued in these hours already: 1 file, 1 kB" in text
    assert "with these: 1 run on glue, 1 h 30 min, $2.00; requests, ledger and functions: $3.00" in text
    assert "to be converted again in addition: 4 manifests" in text


def test_a_sweep_prints_its_counts_and_a_dry_run_its_items(printed: Printed) -> None:
    answer = {**dict.fromkeys(COUNTS, 0), "released": 2, "items": ["released: manifest m"]}
    stack = stack_with(FakeLambda(answer))
    assert printed(sweep_command, stack) == "manifests released: 2\n"
    text = printed(sweep_command, stack, dry_run=True)
    assert text.splitlines()[1:] == ["  released: manifest m", "manifests released: 2"]
