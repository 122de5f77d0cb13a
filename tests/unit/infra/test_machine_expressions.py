"""npm's asl-validator accepts every state machine, and JSONata's reference implementation each of its expressions."""

import json
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

from lake.settings.operation import STOP_GRACE_MINUTES
from lake.time import iso_utc
from router.requests import backfill, reprocess
from tests.unit.infra.npm_packages import NODE_BINARY, install

HERE = Path(__file__).parent
MACHINES = HERE.parents[2] / "statemachines"
FILES = sorted(MACHINES.glob("*.asl.json"))
LAMBDA = {"errorMessage": 'no "orders" here:\nC:\\x \u00e9', "errorType": "TransientError", "stackTrace": ["a", "b"]}
GLUE = {"Id": "jr_1", "JobRunState": "FAILED", "ErrorMessage": 'it said "no"', "Arguments": {"--region": "eu"}}
EMR = {"JobRunId": "00f1", "State": "FAILED", "StateDetails": 'it said "no"'}
NESTED = {"ExecutionArn": "arn", "Status": "FAILED", "Error": "E", "Cause": '{"errorMessage":"inner"}', "Input": "{}"}
CAUSES: dict[str, dict[str, Any]] = {
    "none": {},
    "empty": {"Cause": ""},
    "text": {"Cause": "The task timed out."},
    "Lambda": {"Cause": json.dumps(LAMBDA)},
    "Lambda without spaces": {"Cause": json.dumps(LAMBDA, separators=(",", ":"))},
    "Glue": {"Cause": json.dumps(GLUE, separators=(",", ":"))},
    "EMR Serverless": {"Cause": json.dumps(EMR, separators=(",", ":"))},
    "nested execution": {"Cause": json.dumps(NESTED, separators=(",", ":"))},
    "JSON without a message": {"Cause": '{"other":1}'},
    "a brace that begins no JSON": {"Cause": "{job} could not be started"},
    "braces that are no JSON": {"Cause": "{job: orders}"},
    "JSON cut off": {"Cause": json.dumps(LAMBDA)[:30]},
    "JSON cut off after a brace": {"Cause": '{"errorMessage":"a","errorType":{}'},
    "an escape that is not JSON": {"Cause": '{"errorMessage":"\\x"}'},
    "a list": {"Cause": "[1]"},
}
MESSAGES = {
    "none": "no cause was reported",
    "text": "The task timed out.",
    "Lambda": LAMBDA["errorMessage"],
    "Lambda without spaces": LAMBDA["errorMessage"],
    "braces that are no JSON": "{job: orders}",
}
"""What a notification prints for each cause of a function's failure."""


def strings(value: Any) -> Iterator[str]:
    """Every string of a parsed JSON document."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from strings(item)


def expressions(file: Path) -> list[str]:
    """The JSONata of a machine, each expression once."""
    found = dict.fromkeys(strings(json.loads(file.read_text(encoding="utf-8"))))
    return [text[2:-2].strip() for text in found if text.startswith("{%") and text.endswith("%}")]


def machine(name: str) -> dict[str, Any]:
    """The parsed file of a state machine."""
    return dict(json.loads((MACHINES / f"{name}.asl.json").read_text(encoding="utf-8")))


@pytest.fixture(scope="session")
def library() -> Path:
    return install(HERE / "jsonata", "jsonata/jsonata.js")


def evaluate(library: Path, cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    command = [str(NODE_BINARY), str(HERE / "evaluate_jsonata.js"), str(library)]
    result = subprocess.run(command, input=json.dumps(cases), capture_output=True, text=True, check=True)
    answers: list[dict[str, Any]] = json.loads(result.stdout)
    return answers


def value_of(library: Path, field: str, **case: Any) -> Any:
    """The value of a field of a machine, which is ``{% expression %}``."""
    (answer,) = evaluate(library, [{"expression": field[2:-2], **case}])
    return answer["value"]


def caught(library: Path, texts: list[str], cause: str) -> list[dict[str, Any]]:
    """The expressions' answers to an error with a cause from ``CAUSES``."""
    output = {"Error": "Some.Error", **CAUSES[cause]}
    return evaluate(library, [{"expression": text, "states": {"errorOutput": output}} for text in texts])


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_expression_compiles(library: Path, file: Path) -> None:
    found = expressions(file)
    answers = evaluate(library, [{"expression": expression} for expression in found])
    assert found
    assert {text: answer["error"] for text, answer in zip(found, answers, strict=True) if "error" in answer} == {}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_an_error_of_any_cause_has_a_text(library: Path, file: Path) -> None:
    # Given every expression that a Catch evaluates
    texts = [text for text in expressions(file) if "$states.errorOutput" in text]
    # When an error has one of the causes
    outputs = [{"Error": "Some.Error", **cause} for cause in CAUSES.values()]
    cases = [{"expression": text, "states": {"errorOutput": output}} for output in outputs for text in texts]
    answers = evaluate(library, cases)
    # Then each has a text: Step Functions fails an execution if one has no value, and nobody is notified.
    assert cases
    found = zip(cases, answers, strict=True)
    assert [(case, answer) for case, answer in found if not isinstance(answer.get("value"), str)] == []


def test_a_notification_has_the_message_of_the_function(library: Path) -> None:
    texts = [text for text in expressions(MACHINES / "stream_window.asl.json") if "$states.errorOutput.Cause" in text]
    found = {cause: {answer["value"] for answer in caught(library, texts, cause)} for cause in MESSAGES}
    assert found == {cause: {message} for cause, message in MESSAGES.items()}


@pytest.mark.parametrize("engine", ["Glue", "EMR Serverless"])
def test_a_run_of_the_batch_lane_that_failed_keeps_its_id_and_its_reason(library: Path, engine: str) -> None:
    texts = expressions(MACHINES / "overnight.asl.json")
    texts = [text for text in texts if "$states.errorOutput" in text and "Id" in text]
    values = {str(answer["value"]) for answer in caught(library, texts, engine)}
    job_run = "jr_1" if engine == "Glue" else "emr-serverless:${EmrApplication}:00f1"
    assert {job_run, f'Some.Error: {job_run.rpartition(":")[2]} FAILED it said "no"'} <= values


@pytest.mark.parametrize(("state", "service"), [("RunJob", "Glue"), ("RunOnEmr", "EMRServerless")])
def test_a_refused_start_is_reported_once_to_the_function_that_checks_the_run(
    library: Path, state: str, service: str
) -> None:
    # Given an error with which the service has refused to start a run too often
    states = machine("overnight")["States"]["Runs"]["ItemProcessor"]["States"]
    error = {"errorOutput": {"Error": f"{service}.ThrottlingException", "Cause": "Rate exceeded"}}
    # Then the round has failed by a refusal, not by a run, and the next one begins without it
    (rule,) = states[state]["Catch"]
    made = {name: value_of(library, rule["Assign"][name], states=error) for name in ("refusal", "failure", "jobRun")}
    assert made == {"refusal": f"{service}.ThrottlingException: Rate exceeded", "failure": "", "jobRun": ""}
    assert (rule["Next"], states["Check"]["Assign"]["refusal"]) == ("Check", "{% '' %}")


@pytest.mark.parametrize(("redriven", "name"), [({}, "b"), ({"RedriveCount": 1}, "b-1")])
def test_a_backfill_names_its_overnight_execution_so_that_a_repeated_start_finds_it(
    library: Path, redriven: dict[str, int], name: str
) -> None:
    field = machine("backfill")["States"]["Overnight"]["Arguments"]["Name"]
    assert value_of(library, field, states={"context": {"Execution": {"Name": "b", **redriven}}}) == name


def test_a_round_on_emr_serverless_that_is_repeated_finds_its_job_run_and_one_that_is_redriven_does_not(
    library: Path,
) -> None:
    # Given a round at its start, after a lost answer, the next one, and a redriven one with a cancelled job run
    task = machine("overnight")["States"]["Runs"]["ItemProcessor"]["States"]["RunOnEmr"]
    tokens = [
        value_of(
            library,
            task["Arguments"]["ClientToken"],
            states={"context": {"Execution": {"Id": "arn", "RedriveCount": redriven}}},
            variables={"rounds": rounds},
        )
        for rounds, redriven in ((0, 0), (0, 0), (1, 0), (0, 1))
    ]
    first, repeated, following, redriven = tokens
    assert first == repeated
    assert len({first, following, redriven}) == 3


def test_a_dry_run_of_a_backfill_does_not_replace_the_plan_of_an_overnight_execution_of_its_name(library: Path) -> None:
    field = machine("backfill")["States"]["Plan"]["Arguments"]["Payload"]
    variables = {"request": {"from": "b", "force": True}, "search": {}}
    payload = value_of(library, field, states={"context": {"Execution": {"Name": "a"}}}, variables=variables)
    assert payload == {"from": "b", "execution": "dry-run-a", "found": {}, "raiseRefusal": True}


def test_a_reprocess_whose_answer_was_lost_counts_what_it_has_queued(library: Path) -> None:
    field = machine("backfill")["States"]["Reprocess"]["Assign"]["search"]
    # Given a repetition that finds two manifests queued, and queues one
    states = {"result": {"Payload": {"queued": 1, "repeated": 2}}}
    search = value_of(library, field, states=states, variables={"search": {"found": 5}})
    assert search == {"found": 5, "reprocessed": 3}


@pytest.mark.parametrize(
    ("given", "argument"),
    [
        ({}, "due"),
        ({"date": "2026-11-20"}, "2026-11-20"),
        ({"Date": "2026-11-20"}, '{"Date":"2026-11-20"}'),
        ({"date": None}, "null"),
        ({"date": 20261120}, "20261120"),
        ("2026-11-20", "2026-11-20"),
    ],
)
def test_a_verification_of_a_wrong_input_gets_it_as_its_date_which_the_job_refuses(
    library: Path, given: Any, argument: str
) -> None:
    field = machine("verify")["States"]["Compare"]["Arguments"]["Arguments"]["--verify"]
    assert value_of(library, field, states={"input": given}) == argument


DAY_SECONDS = 24 * 60 * 60
MAX_EVENTS = 25_000
"""Maximum of one execution; Step Functions ends it above (AWS Step Functions Developer Guide, "Service quotas")."""
ROUND_EVENTS = 9
"""A wait and a choice have two each, and a call of Lambda that succeeds has five."""


@pytest.mark.parametrize("seconds", [1, 5, 30, 60])
def test_a_window_of_a_day_has_fewer_events_than_an_execution_may_have(library: Path, seconds: int) -> None:
    # Given the interval between two checks as the machine waits for it, after any number of earlier checks
    expression = machine("stream_window")["States"]["Wait"]["Seconds"][2:-2].replace("${WatchSeconds}", str(seconds))
    cases = [{"expression": expression, "states": {}, "variables": {"checks": number}} for number in range(3_000)]
    waits = [answer["value"] for answer in evaluate(library, cases)]
    # When a window of a day is watched, and the run is asked to stop for the same time
    passed = list(accumulate(waits))
    checks = sum(time < DAY_SECONDS for time in passed)
    stops = STOP_GRACE_MINUTES * 60 / seconds
    # Then the execution sees its end
    assert passed[-1] > DAY_SECONDS
    assert ROUND_EVENTS * (1 + checks + stops) < MAX_EVENTS
    assert waits[:100] == [seconds] * 100


@pytest.mark.parametrize(
    ("window_over", "hours", "following"), [(False, 24, "Wait"), (True, 8, "Stop"), (False, 26, "Done")]
)
def test_an_execution_leaves_a_stream_that_a_later_one_watches_without_a_stop(
    library: Path, window_over: bool, hours: float, following: str
) -> None:
    # Given windows without a pause between them: the next execution opens its window before this one checks again
    window, start = machine("stream_window"), datetime(2026, 11, 20, tzinfo=UTC)
    state = window["States"]["WindowOver"]
    times = {
        "Execution": {"StartTime": iso_utc(start)},
        "State": {"EnteredTime": iso_utc(start + timedelta(hours=hours))},
    }
    states = {"input": {"windowOver": window_over}, "context": times}
    cases = [{"expression": choice["Condition"][2:-2], "states": states} for choice in state["Choices"]]
    # When
    answers = evaluate(library, cases)
    # Then it ends before its timeout, which would raise an alarm
    met = (choice["Next"] for choice, answer in zip(state["Choices"], answers, strict=True) if answer["value"])
    assert next(met, state["Default"]) == following
    assert hours * 3600 <= window["TimeoutSeconds"]


@pytest.mark.parametrize("time", [backfill.TIME_PER_CALL, reprocess.TIME_PER_CALL])
def test_a_backfill_lists_until_its_timeout_with_fewer_events_than_an_execution_may_have(time: timedelta) -> None:
    # Given calls that all take their full time, until only the time of the overnight execution is left
    search = machine("backfill")
    seconds = search["TimeoutSeconds"] - search["States"]["Overnight"]["TimeoutSeconds"]
    assert ROUND_EVENTS * seconds / time.total_seconds() < MAX_EVENTS


@pytest.fixture(scope="session")
def validator() -> Path:
    return install(HERE / "asl_validator", "asl-validator/dist/bin/asl-validator.js")


def validate(validator: Path, file: Path) -> subprocess.CompletedProcess[str]:
    command = [str(NODE_BINARY), str(validator), "--json-path", str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_validator_accepts_the_machine(validator: Path, file: Path) -> None:
    result = validate(validator, file)
    assert result.returncode == 0, result.stdout + result.stderr
