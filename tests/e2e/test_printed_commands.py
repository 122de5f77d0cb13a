"""Every command that the pages for operators name, and every one that the product advises, runs as it is printed."""

import ast
import json
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.change.dead_letters import dead_letters_ls_command, dead_letters_redrive_command
from cli.demo.run import notifications_paused
from cli.deployed_stack import DeployedStack
from cli.errors import ExitCode, exit_code_of
from cli.inspect.status import read_alarms
from cli.local_clouds import LOCAL_PROFILE, local_config
from cli.main import app
from lake.ledger import State
from lake.texts import WITHOUT_STAGE, with_options
from tests.e2e.scenario import Scenario, event_body
from tests.e2e.waiting import wait_for
from tests.unit.docs.pages import CHECKOUT, Page

STAGE, DATASET = "e2e", "printed"
PLACE = f" --local --stage {STAGE}"
PAGES = [Page(CHECKOUT / "docs" / name) for name in ("runbook.md", "repair.md")]
VALUE = re.compile(r"\{[^{}]*?(\w+)[)\]]*\}|<(\w+)[^>]*>|\b(FILE|s3://bucket/[\w/.]+|2026-\d\d-\d\d(?:T\d\d)?)")
"""A placeholder of a page, an example of one, or the expression of a value in the code."""
STARTED_OTHERWISE = ("local ", "doctor --canary", "{", "(")
"""They run until Ctrl-C, have a separate test, or are not complete commands."""
WITHOUT_TABLE = re.compile("has no Iceberg table|of the stage has an Iceberg table|no rule of .* gives .* table = ")
"""What restore and rebuild answer for a dataset that has none."""
PACKAGES = {path.parent for path in CHECKOUT.glob("*/__init__.py")} - {CHECKOUT / "tests", CHECKOUT / "bench"}
QUOTED = re.compile(r"'hybrid-router ([^']*)'")
ALONE = re.compile(r"(?:^|: )hybrid-router ([a-z][^']*)$")
"""A text that is a command, or a line that ends with one: a person copies it."""


def advised_commands() -> dict[str, str]:
    """Command line without the program name -> file that contains it; ``{}`` holds the expression of a value."""
    paths = (path for package in sorted(PACKAGES) for path in sorted(package.rglob("*.py")))
    return {
        command.strip(): path.relative_to(CHECKOUT).as_posix()
        for path in paths
        for text in texts(path.read_text(encoding="utf-8"))
        for command in (*QUOTED.findall(text), *ALONE.findall(text))
    }


def texts(source: str) -> Iterator[str]:
    """The strings of a module without docstrings; the values of an f-string are in braces."""
    tree = ast.parse(source)
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    statements = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(map(_part, node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside | statements:
            yield node.value


def _part(part: ast.expr) -> str:
    if isinstance(part, ast.FormattedValue):
        return f"{{{ast.unparse(part.value)}}}".replace("'", '"')
    assert isinstance(part, ast.Constant)
    return str(part.value)


@pytest.fixture(scope="module")
def values(scenario: Scenario, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    """Placeholder -> value from a stage with a converted file, in a folder other than the checkout's."""
    file = scenario.put(f"{DATASET}/a.ndjson", ['{"a":1}', "not JSON"])
    scenario.wait_state(file, State.QUEUED)
    night = scenario.execute(scenario.deployment.outputs.overnight, {"dataset": DATASET})["executionArn"]
    scenario.leave_local_state(STAGE)
    folder = tmp_path_factory.mktemp("elsewhere")
    settings = folder / "settings"
    settings.mkdir()
    for name in ("dev", "prod"):
        (settings / f"{name}.toml").write_text(f'stage = "{STAGE}"\n')
    (folder / "day.toml").write_text("files = 100\n[[sizes]]\nbytes = 1_000_000\nshare = 1\n")
    (folder / "copy.ndjson").write_text('{"a":1}\n')
    (folder / "aws").write_text(local_config(scenario.cloud.endpoint, scenario.cloud.access_key, folder))
    row = scenario.wait_state(file, State.DONE)
    hour = row.partition.stamp
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("AWS_CONFIG_FILE", str(folder / "aws"))
        patch.setenv("AWS_PROFILE", LOCAL_PROFILE)
        yield {
            **dict.fromkeys(("dataset", "name"), DATASET),
            **dict.fromkeys(("manifest", "id"), row.id),
            **dict.fromkeys(("hour", "stamp", "first", "last"), hour),
            **dict.fromkeys(("uri", "key", "bucket"), file.uri),
            **dict.fromkeys(("options", "_options", "place"), ""),
            "execution": night.rsplit(":", 1)[-1],
            "_execution": night.rsplit(":", 1)[-1],
            "lane": row.lane.value,
            "job_run": str(row.owner),
            "KEPT": "1h",
            "function": "route",
            "stage": STAGE,
            "day": hour[:10],
            "settings_file": "settings/dev.toml",
            "file": "repair.ndjson",
            "new": "again.ndjson",
            "command": f"--dataset {DATASET} --from {hour} --to {hour}",
            "FILE": "copy.ndjson",
        }


def filled(command: str, values: Mapping[str, str]) -> str:
    """The command with values for its placeholders, the dataset and the hours of the stage."""

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2] or match[3]
        if name.startswith("s3://"):
            return values["uri"]
        if name.startswith("2026-"):
            return values["hour"] if "T" in name else values["day"]
        return values[name]

    text = command.replace("s3://<bucket>/<key>", "<uri>").replace("--dataset orders", f"--dataset {DATASET}")
    return re.sub(r" orders\b(?!/)", f" {DATASET}", VALUE.sub(value, text))


def problem_of(command: str) -> str | None:
    """The problem of a command line; None if it is understood, and answered with yes, no, or not proven."""
    arguments = shlex.split(command)
    if arguments[0] not in WITHOUT_STAGE:
        arguments = shlex.split(with_options(f"'hybrid-router {command}'", PLACE).strip("'"))[1:]
    result = CliRunner().invoke(app, arguments)
    error = result.exception
    code = exit_code_of(error) if isinstance(error, Exception) else result.exit_code
    is_unproven = arguments[0] == "verify" and code == ExitCode.NOT_REACHABLE
    if code in (ExitCode.OK, ExitCode.NEGATIVE) or is_unproven or WITHOUT_TABLE.search(str(error)):
        return None
    return f"{shlex.join(arguments)}: {code}, {error!r}, {result.output[-500:]}"


def test_each_entry_of_the_runbook_can_be_followed(values: Mapping[str, str]) -> None:
    # Given the commands of both pages in the order in which they are printed, each once, and a line to repair.
    lines = [code.strip().removeprefix(".venv/bin/") for page in PAGES for code in page.code]
    assert not [line for line in lines if line.startswith("aws ")]
    commands = dict.fromkeys(line.removeprefix("hybrid-router ") for line in lines if line.startswith("hybrid-router "))
    assert problem_of(f"quarantine export repair.ndjson --dataset {DATASET}") is None
    # Then each is understood and answered.
    selected = [item for item in commands if not item.startswith((*STARTED_OTHERWISE, "quarantine export"))]
    assert len(selected) > 50
    assert [found for item in selected if (found := problem_of(filled(item, values)))] == []


def test_each_command_that_the_product_advises_runs(values: Mapping[str, str]) -> None:
    commands = {item: place for item, place in advised_commands().items() if not item.startswith(STARTED_OTHERWISE)}
    assert len(commands) > 30
    problems = {place: problem_of(filled(item, values)) for item, place in commands.items()}
    assert {place: found for place, found in problems.items() if found} == {}


def open_alarms(stack: DeployedStack) -> str:
    return " ".join(alarm.name for alarm in read_alarms(stack)[0])


@pytest.mark.usefixtures("values")
def test_the_alarm_on_quarantined_lines_is_open_after_a_night_of_them(scenario: Scenario) -> None:
    assert "QuarantinedShare" in open_alarms(scenario.deployment)


def test_dead_letters_are_listed_and_a_redrive_gives_a_lost_file_an_owner(
    scenario: Scenario, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given dead letters of a file that was never routed, of a file that has an owner, and of a refused start.
    stack = scenario.deployment
    with notifications_paused(stack):
        lost = scenario.put(f"{DATASET}/lost.ndjson", ['{"a":1}'])
    owned = scenario.put(f"{DATASET}/owned.ndjson", ['{"a":1}'])
    scenario.wait_state(owned, State.QUEUED)
    assert scenario.manifest_of(lost) is None
    refused = {"TARGET_ARN": stack.outputs.overnight, "ERROR_CODE": "AccessDeniedException"}
    attributes = {name: {"DataType": "String", "StringValue": value} for name, value in refused.items()}

    def send(body: str, **more: Any) -> None:
        stack.sqs.send_message(QueueUrl=stack.outputs.dead_letters, MessageBody=body, **more)

    send(event_body(lost))
    send(event_body(owned))
    send("{}", MessageAttributes=attributes)
    # When they are listed, twice, and a dry run reads them, then they stay.
    for _ in range(2):
        answer: Any = dead_letters_ls_command(stack, 100)
        letters = answer.document["deadLetters"]
        assert answer.code == ExitCode.NEGATIVE
        assert {item["subject"]: item["is_sent"] for item in letters} == {
            lost.uri: True,
            owned.uri: False,
            stack.outputs.overnight: False,
        }
        assert "AccessDeniedException" in str(letters)
    wait_for("the alarm on dead letters", lambda: "DeadLetters" in open_alarms(stack))
    dead_letters_redrive_command(stack, dry_run=True, as_json=True)
    assert json.loads(capsys.readouterr().out) == {"removed": 3, "sent": 1, "dryRun": True}
    # When they are redriven, then the lost file gets an owner and the queue is empty.
    dead_letters_redrive_command(stack, dry_run=False, as_json=False)
    assert "removed: 3 dead letters, of which 1 event sent to route again" in capsys.readouterr().out
    scenario.wait_state(lost, State.QUEUED)
    assert dead_letters_ls_command(stack, 100).code == ExitCode.OK
