"""The command line as a whole: ``--help``, how a stack is found, how a command ends, how wide tables are."""

import errno
import json
import os
import re
import shlex
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import fields
from io import BytesIO, TextIOWrapper
from itertools import chain
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import boto3
import click
import pytest
import typer
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    EndpointConnectionError,
    InvalidRegionError,
    NoCredentialsError,
    NoRegionError,
    ProfileNotFound,
    ReadTimeoutError,
)
from botocore.parsers import ResponseParserError
from typer.testing import CliRunner

from cli.commands import MODULES, Place
from cli.deployed_stack import INVOKE_CONFIG, DeployedStack, connect_to_stage
from cli.errors import ExitCode, NotReachableError, errors_on_stderr
from cli.local_clouds import LOCAL_PROFILE, aws_on_local_cloud, local_config, local_state
from cli.main import app, run
from cli.terminal import format_table, print_table
from infra.names import OPTIONAL, StackOutputs, camel_case
from lake.errors import InvalidInputError, InvalidSettingsError, TransientError, UnknownDatasetError
from lake.resource_names import ResourceNames
from local.isolation import REGION, AccessKey
from tests.unit.cli.conftest import Printed
from tests.unit.docs.pages import CHECKOUT


def test_a_character_that_the_terminal_lacks_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = TextIOWrapper(BytesIO(), encoding="latin-1")
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setattr("cli.main.app", lambda: typer.echo("größe😀"))
    run()
    terminal.seek(0)
    assert terminal.read() == "größe\\U0001f600\n"


def test_pipes_in_non_blocking_mode_wait_for_their_other_end() -> None:
    # Given pipes that another process, such as Node.js, has set to non-blocking
    pipes = [os.pipe() for _ in range(3)]
    ends = stdin, stdout, stderr = pipes[0][0], pipes[1][1], pipes[2][1]
    for end in ends:
        os.set_blocking(end, False)
    # When
    command = [sys.executable, "-m", "cli", "--version"]
    subprocess.run(command, cwd=CHECKOUT, stdin=stdin, stdout=stdout, stderr=stderr, check=True)
    # Then a pause of a writer is not the end of the input, and a pause of a reader cuts no output
    assert [os.get_blocking(end) for end in ends] == [True, True, True]
    for end in chain.from_iterable(pipes):
        os.close(end)


def test_a_shell_completes_a_command() -> None:
    # Given the environment that the bash completion script sets
    completion = {"COMP_WORDS": "hybrid-router settings ch", "COMP_CWORD": "2"}
    environment = {"_HYBRID_ROUTER_COMPLETE": "complete_bash", **completion}
    # When, Then
    completed = CliRunner().invoke(app, [], prog_name="hybrid-router", env=environment).stdout
    assert ("check" in completed, "explain" in completed) == (True, False)


def test_a_command_that_is_declared_is_listed_and_can_be_called() -> None:
    files = (path.read_text(encoding="utf-8") for path in CHECKOUT.glob("cli/**/*.py"))
    declared = {name for text in files for name in re.findall(r"^def (\w+)_command\(", text, re.MULTILINE)}
    listed = list(chain.from_iterable(MODULES.values()))
    assert declared == {re.sub("[ -]", "_", words) for words in listed}
    for words in listed:
        assert CliRunner().invoke(app, [*words.split(), "--help"]).exit_code == ExitCode.OK


def refused(code: str, status: int = 400, operation: str = "DescribeStacks") -> ClientError:
    error: Any = {
        "Error": {"Code": code, "Message": "reported by AWS"},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    return ClientError(error, operation)


NO_NETWORK = EndpointConnectionError(endpoint_url="https://cloudformation.eu-central-1.amazonaws.com")


@pytest.mark.parametrize(
    ("error", "code", "advice"),
    [
        (InvalidInputError("from = 'x' is wrong"), ExitCode.USAGE_ERROR, "from = 'x' is wrong"),
        (UnknownDatasetError("the ledger has no dataset 'x'"), ExitCode.NEGATIVE, "the ledger has no dataset 'x'"),
        (InvalidSettingsError("stage", 1, "text"), ExitCode.USAGE_ERROR, "settings: stage = 1"),
        (TransientError("try again"), ExitCode.NEGATIVE, "try again"),
        (NoCredentialsError(), ExitCode.NOT_REACHABLE, "sign in with 'aws sso login'"),
        (NoRegionError(), ExitCode.NOT_REACHABLE, "pass --region"),
        (ResponseParserError("invalid XML"), ExitCode.NOT_REACHABLE, "check the network, the proxy and the region"),
        (ProfileNotFound(profile="x"), ExitCode.NOT_REACHABLE, "name a profile of ~/.aws/config"),
        (NO_NETWORK, ExitCode.NOT_REACHABLE, "check the network"),
        (refused("AccessDenied"), ExitCode.NOT_REACHABLE, "a permission is missing"),
        (refused("ExpiredToken"), ExitCode.NOT_REACHABLE, "sign in again"),
        (refused("400", 400, "HeadObject"), ExitCode.NOT_REACHABLE, "sign in again; if other objects can be read"),
        (refused("RequestTimeTooSkewed", 403), ExitCode.NOT_REACHABLE, "check the clock"),
        (refused("Throttling"), ExitCode.NOT_REACHABLE, "run the command again"),
        (refused("a code of tomorrow", 503), ExitCode.NOT_REACHABLE, "run the command again"),
        (refused("a code of tomorrow", 403), ExitCode.NOT_REACHABLE, "a permission is missing"),
        (refused("403", 403, "HeadObject"), ExitCode.NOT_REACHABLE, "missing (s3:GetObject, for a version "),
        (refused("ResourceNotFoundException"), ExitCode.NOT_REACHABLE, "restore it under the same name"),
        (refused("StateMachineDoesNotExist"), ExitCode.NOT_REACHABLE, "restore it under the same name"),
        (refused("AWS.SimpleQueueService.NonExistentQueue"), ExitCode.NOT_REACHABLE, "under the same name"),
        (refused("KMS.DisabledException"), ExitCode.NOT_REACHABLE, "enable it, or cancel its deletion"),
        (refused("NoSuchKey", 404), ExitCode.NOT_REACHABLE, "run the command again; if it is still gone, restore it"),
        (OSError(errno.ENOSPC, "full", "/lake"), ExitCode.NOT_REACHABLE, "/lake: full: remove the cause and run"),
        (OSError(errno.ENOSPC, "full"), ExitCode.NOT_REACHABLE, "hybrid-router: full: remove the cause and run"),
        (ValueError("Invalid endpoint: localhost:4566"), ExitCode.NOT_REACHABLE, "with https:// or http://"),
        (ValueError("a defect"), ExitCode.INTERNAL_ERROR, "internal error (ValueError: a defect)"),
    ],
)
def test_an_error_is_one_sentence_and_a_code(
    error: Exception, code: ExitCode, advice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended, errors_on_stderr(debug=False):
        raise error
    printed = capsys.readouterr().err
    assert ended.value.code == code
    assert advice in printed
    assert printed.startswith("hybrid-router: ")
    assert printed.count("\n") == 1


@pytest.mark.parametrize("stderr", ["closed", "full"])
def test_a_message_that_cannot_be_written_changes_no_code(stderr: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Python has no stream for a descriptor that was closed before it began.
    with suppress(OSError), Path("/dev/full").open("w", 1, encoding="utf-8") as full:
        monkeypatch.setattr(sys, "stderr", full if stderr == "full" else None)
        with pytest.raises(SystemExit) as ended, errors_on_stderr(debug=False):
            raise NotReachableError("no stack")
    assert ended.value.code == ExitCode.NOT_REACHABLE


def test_a_reader_that_has_ended_is_not_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("stdout", "stderr"):
        # Typer replaces both.
        monkeypatch.setattr(sys, name, getattr(sys, name))
    monkeypatch.setattr(sys, "argv", ["hybrid-router", "settings", "explain", "stream"])
    monkeypatch.setattr(typer, "echo", Mock(side_effect=BrokenPipeError(errno.EPIPE, "Broken pipe")))
    with pytest.raises(SystemExit) as ended:
        run()
    assert ended.value.code == ExitCode.PIPE_CLOSED


@pytest.mark.parametrize("arguments", [["convert", "a.json", "-o", ""], ["report", "--output="]])
def test_an_empty_argument_is_not_the_current_folder(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.main.app", Mock())
    monkeypatch.setattr(sys, "argv", ["hybrid-router", *arguments])
    with pytest.raises(SystemExit) as ended:
        run()
    assert ended.value.code == ExitCode.USAGE_ERROR


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (NoCredentialsError(), "no AWS credentials"),
        (InvalidRegionError(region_name="eu_west"), "'eu_west' is not an AWS region: pass --region"),
        (refused("ValidationError"), "there is no stack hybrid-router-prod in this account and region"),
        (refused("ValidationError"), "run 'AWS_REGION=eu-west-1 cdk --profile ops deploy -c stage=prod'"),
    ],
)
def test_the_reason_why_a_stack_is_not_found_is_reported(
    error: BotoCoreError | ClientError, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("boto3.Session", Mock(side_effect=error))
    with pytest.raises(NotReachableError, match=re.escape(advice)) as raised:
        connect_to_stage(Place("prod", profile="ops", region="eu-west-1"))
    assert "or add --local" in str(raised.value)


def test_the_profile_of_a_local_cloud_leads_there_and_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a person who has credentials for AWS
    config = tmp_path / "the clouds.aws"
    config.write_text(local_config("http://127.0.0.1:4567", AccessKey("local-id", "local-secret")), encoding="utf-8")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "of-aws")
    # When a shell reads the printed words
    assignment, program, option, profile = shlex.split(aws_on_local_cloud(config))
    assert (program, option, profile) == ("aws", "--profile", LOCAL_PROFILE)
    monkeypatch.setenv(*assignment.split("=", 1))
    session = boto3.Session(profile_name=profile)
    # Then: the libraries of the AWS command line read the same file
    client = session.client("sqs")
    credentials = session.get_credentials()
    assert (client.meta.endpoint_url, client.meta.region_name) == ("http://127.0.0.1:4567", REGION)
    assert credentials is not None
    assert (credentials.access_key, credentials.secret_key, credentials.token) == ("local-id", "local-secret", None)
    assert "local-secret" not in aws_on_local_cloud(config)


@pytest.fixture
def session() -> Mock:
    """A session of boto3 in an account with one stack."""
    names = [item.name for item in (*fields(ResourceNames), *fields(StackOutputs)) if item.name not in OPTIONAL]
    outputs = [{"OutputKey": camel_case(name), "OutputValue": "hybrid-router-prod-eu"} for name in names]
    session = Mock()
    session.client.return_value.describe_stacks.return_value = {"Stacks": [{"Outputs": outputs}]}
    return session


def test_on_aws_printed_commands_have_the_profile_and_region_of_the_person(
    session: Mock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boto3, "Session", lambda **_: session)
    named = connect_to_stage(Place("prod_eu", profile="my prod", region="eu-central-1"))
    assert named.options == " --stage prod_eu --profile 'my prod' --region eu-central-1"
    # And no client waits for minutes if AWS cannot be reached
    assert {call.kwargs["config"].connect_timeout for call in session.client.call_args_list} == {5}
    assert connect_to_stage(Place("prod_eu")).options == " --stage prod_eu"


def test_an_invocation_that_gets_no_answer_is_not_begun_again(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a Lambda that accepts requests and never answers
    monkeypatch.setattr("cli.deployed_stack.INVOKE_CONFIG", INVOKE_CONFIG.merge(Config(read_timeout=0.1)))
    names = [item.name for item in (*fields(ResourceNames), *fields(StackOutputs)) if item.name not in OPTIONAL]
    outputs = {camel_case(name): "hybrid-router-prod-eu" for name in names}
    with socket.create_server(("127.0.0.1", 0)) as server:
        endpoint = f"http://127.0.0.1:{server.getsockname()[1]}"
        stack = DeployedStack.connect(outputs, boto3.Session("id", "secret", region_name=REGION), endpoint)
        # When, Then: the person is asked, and is warned that the function may still be working
        with pytest.raises(ReadTimeoutError):
            stack.invoke("sweep", {})
        server.settimeout(0.1)
        server.accept()[0].close()
        with pytest.raises(TimeoutError):
            server.accept()


def test_a_local_cloud_has_the_outputs_of_its_last_deployment(
    session: Mock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a running cloud, to which `cdk deploy` has deployed another version since it was started
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    local_state().mkdir(parents=True)
    monkeypatch.setattr("local.isolation.session", lambda _key: session)
    with socket.create_server(("127.0.0.1", 0)) as server:
        endpoint = f"http://127.0.0.1:{server.getsockname()[1]}"
        key = {"id": "local-id", "secret": "local-secret"}
        started = {"endpoint": endpoint, "access_key": key}
        (local_state() / "prod_eu.json").write_text(json.dumps(started))
        # When
        stack = connect_to_stage(Place("prod_eu", local=True))
    # Then
    assert stack.outputs.overnight == "hybrid-router-prod-eu"
    session.client.return_value.describe_stacks.assert_called_once_with(StackName="hybrid-router-prod-eu")
    assert stack.options == " --stage prod_eu --local"
    # And the file of a killed cloud, whose port has no listener, is not a cloud
    with pytest.raises(NotReachableError, match="no local cloud of stage prod_eu is running on this machine"):
        connect_to_stage(Place("prod_eu", local=True))
    # And an unreadable file is not reported as a fault of the cloud
    monkeypatch.setattr(Path, "read_text", Mock(side_effect=PermissionError(errno.EACCES, "Permission denied")))
    with pytest.raises(PermissionError):
        connect_to_stage(Place("prod_eu", local=True))


TABLE = ("Nights", ("began", "execution", "outcome"), ("files", "rows"))
ROWS = [
    ("2026-11-20 22:00", "3f1c6a52-8a0e-4a52-9d59-0c8c8e4f7a11", "SUCCEEDED_WITH_QUARANTINE", "338,000", "東京 1"),
    ("today 22:00", "manual-1\t", "FAILED", "17", "150,000"),
]


def test_the_widest_columns_but_the_first_are_below_their_row_where_all_do_not_fit() -> None:
    assert click.unstyle(format_table(*TABLE, ROWS, 80)).splitlines() == [
        "Nights",
        "began             outcome                      files     rows",
        "2026-11-20 22:00  SUCCEEDED_WITH_QUARANTINE  338,000   東京 1",
        "  execution: 3f1c6a52-8a0e-4a52-9d59-0c8c8e4f7a11",
        "today 22:00       FAILED                          17  150,000",
        "  execution: manual-1\t",
    ]
    numbers = ("files done", "size done", "rows", "quarantined", "manifests failed", "open")
    rows = [("production_orders_eu", "17", "12.1 MB", "150,000", "0", "2", "3")]
    assert click.unstyle(format_table("", ("dataset",), numbers, rows, 64)).splitlines()[1:] == [
        "production_orders_eu          17    12.1 MB  150,000     3",
        "  quarantined: 0",
        "  manifests failed: 2",
    ]


def test_in_a_pipe_there_are_tabs() -> None:
    lines = ["Nights", "\t".join((*TABLE[1], *TABLE[2])), "\t".join(ROWS[0])]
    assert format_table(*TABLE, ROWS, None).splitlines() == [*lines, "today 22:00\tmanual-1 \tFAILED\t17\t150,000"]


@pytest.mark.parametrize("columns", [80, 120])
def test_the_output_is_as_wide_as_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch, printed: Printed) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    text = printed(print_table, "T", ("a", "b"), ("n",), [("x" * 50, "y" * 40, "1")])
    assert (f"{'x' * 50}  {'y' * 40}  1" in text) == (columns == 120)


def test_a_closed_output_changes_no_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", None)
    print_table(*TABLE, ROWS)
