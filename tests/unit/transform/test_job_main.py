"""Both jobs start here: arguments to a context, an error to the last line of the log; one session for all clients."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pyspark.sql
import pytest
from botocore.exceptions import ClientError, ResponseStreamingError

from lake.engines import services_of
from lake.engines.emr_serverless import APPLICATION_VARIABLE, JOB_RUN_VARIABLE
from lake.errors import TransientError
from lake.resource_names import ResourceNames
from lake.settings import Settings, parse_settings
from transform import job_main
from transform.job_main import parse_arguments
from transform.task_model import ConversionContext

SETTINGS = Settings(stage="t")
REGION = "eu-central-1"
RESOURCES = ResourceNames("input", "lake", "quarantine", "control", "ledger", "stream-job", "batch-job", "catalog")
NAMES = [word for pair in RESOURCES.to_arguments().items() for word in pair]
ARGV = [*NAMES, "--region", REGION, "--settings", "t.toml"]


@pytest.fixture
def builder(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Builds Spark sessions; the deployment's clients and settings are stubs."""
    builder = Mock(**{"getOrCreate.return_value": "session"})
    builder.appName.return_value = builder.config.return_value = builder
    monkeypatch.setattr(pyspark.sql, "SparkSession", SimpleNamespace(builder=builder))
    for name in ("s3_client", "dynamodb_client", "engine_clients"):
        monkeypatch.setattr(job_main, name, Mock())
    monkeypatch.setattr(job_main, "load_settings", lambda _: SETTINGS)
    return builder


def test_a_job_gets_its_context_and_arguments(builder: Mock, capsys: pytest.CaptureFixture[str]) -> None:
    # Given
    calls: list[tuple[Any, Mapping[str, str]]] = []

    def run(context: ConversionContext, arguments: Mapping[str, str]) -> int:
        calls.append((context, arguments))
        context.log("one line, with a command: run 'hybrid-router failures'")
        return 0

    # When
    failure = job_main.run_job([*ARGV, "--JOB_RUN_ID", "jr_1", "--x=y"], "app", run)

    # Then
    ((context, arguments),) = calls
    assert failure is None
    builder.appName.assert_called_once_with("app jr_1")
    config = dict(call.args for call in builder.config.call_args_list)
    assert config == {"spark.hadoop.fs.s3a.endpoint.region": REGION, "spark.scheduler.mode": "FAIR"}
    assert (context.spark, context.run, context.resources) == ("session", "jr_1", RESOURCES)
    assert context.clock().utcoffset() == timedelta(0)
    assert (arguments["JOB_RUN_ID"], arguments["x"]) == ("jr_1", "y")
    instant, message = capsys.readouterr().out.split(" ", 1)
    assert datetime.fromisoformat(instant).utcoffset() == timedelta(0)
    assert message == "one line, with a command: run 'hybrid-router failures --stage t'\n"


@pytest.mark.parametrize(
    ("arguments", "environment", "expected"),
    [
        ({"JOB_RUN_ID": "jr_1"}, {}, "jr_1"),
        ({}, {APPLICATION_VARIABLE: "00app", JOB_RUN_VARIABLE: "00run"}, "emr-serverless:00app:00run"),
        ({}, {APPLICATION_VARIABLE: "00app"}, "manual-"),
        ({}, {JOB_RUN_VARIABLE: "00run", APPLICATION_VARIABLE: ""}, "manual-"),
    ],
)
def test_a_run_holds_its_leases_by_the_id_that_its_engine_knows(
    arguments: dict[str, str], environment: dict[str, str], expected: str
) -> None:
    assert job_main.run_id(arguments, environment).startswith(expected)


@pytest.mark.parametrize(
    ("fields", "glue_jobs", "asks_emr"),
    [
        ({"stream": {"jobs": 2}}, ["batch-job", "stream-job", "stream-job-2"], False),
        ({"batch": {"engines": ["emr-serverless"]}}, ["batch-job", "stream-job"], True),
        ({"stream": {"engine": "emr-serverless"}}, ["batch-job"], True),
    ],
    ids=["Glue", "batch lane on EMR", "stream lane on EMR"],
)
def test_only_the_stages_services_are_asked_whether_a_run_has_ended(
    monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any], glue_jobs: list[str], asks_emr: bool
) -> None:
    # Given services that know no run, and record their requests
    requested: list[str] = []

    def unknown(job: str, code: str) -> None:
        requested.append(job)
        raise ClientError({"Error": {"Code": code, "Message": ""}}, "GetJobRun")

    glue = SimpleNamespace(get_job_run=lambda JobName, RunId: unknown(JobName, "EntityNotFoundException"))  # noqa: N803
    emr = SimpleNamespace(get_job_run=lambda **_: unknown("application", "ResourceNotFoundException"))
    clients = {"glue": glue, "emr-serverless": emr}
    monkeypatch.setattr(
        job_main, "engine_clients", lambda _, engines: {name: clients[name] for name in services_of(engines)}
    )
    # When
    has_ended = job_main.end_check(RESOURCES, parse_settings({"stage": "t", **fields}), REGION)
    assert not has_ended("jr_1")
    assert not has_ended("emr-serverless:00app:00run")
    # Then
    assert requested == [*glue_jobs, *(["application"] if asks_emr else [])]


def test_a_deliberate_error_is_the_last_line_and_the_end_of_the_process(
    builder: Mock, capsys: pytest.CaptureFixture[str]
) -> None:
    failure = job_main.run_job(ARGV, "app", Mock(side_effect=TransientError("S3 did not answer: try again")))
    printed = capsys.readouterr()
    assert failure == "TransientError: S3 did not answer: try again"
    assert (printed.out.split(" ", 1)[1], printed.err) == (f"{failure}\n", "")


def test_a_run_that_is_not_finished_ends_with_its_last_line(builder: Mock) -> None:
    def run(context: ConversionContext, arguments: Mapping[str, str]) -> int:
        context.log("a line")
        context.log("ALARM s3:GetObject is denied\nfor s3://input/a: grant it")
        return 1

    assert job_main.run_job(ARGV, "app", run) == "s3:GetObject is denied for s3://input/a: grant it"


NO_SPACE = "java.io.IOException: No space left on device"


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("a\n\tat org.apache.spark", " (a)"),
        ("", ""),
        # py4j's error, for a Spark that cannot start
        (f"An error occurred while calling None.JavaSparkContext.\n: {NO_SPACE}\n\tat java.base", f" ({NO_SPACE})"),
    ],
)
def test_the_trace_of_any_other_error_follows_the_sentence(
    builder: Mock, capsys: pytest.CaptureFixture[str], text: str, quoted: str
) -> None:
    failure = job_main.run_job(ARGV, "app", Mock(side_effect=ZeroDivisionError(text)))
    printed = capsys.readouterr()
    assert failure == (
        f"the run ended with ZeroDivisionError{quoted}, its trace is in the same log: remove the cause; nothing is "
        "lost, what was not published is converted again"
    )
    assert "Traceback (most recent call last):" in printed.err
    assert printed.out.splitlines()[-1].endswith(failure)


def test_a_fault_of_the_environment_is_named_in_place_of_its_class(builder: Mock) -> None:
    # Given a body, such as the settings or the run document, that is truncated in transit
    cut = ResponseStreamingError(error="Connection broken")
    # When
    failure = job_main.run_job(ARGV, "app", Mock(side_effect=cut))
    # Then
    assert failure == (
        f"the run ended: AWS could not be reached: {cut}; the next run retries it: if it persists, check the "
        "health of the service; nothing is lost, what was not published is converted again"
    )


def test_a_job_without_a_region_is_refused(
    builder: Mock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given the arguments of a deployment before --region
    monkeypatch.setenv("AWS_REGION", REGION)
    # When / Then
    failure = job_main.run_job(NAMES, "app", lambda *_: 0)
    assert "the job argument --region is missing: deploy the stack again" in str(failure)
    assert capsys.readouterr().out.endswith(f"{failure}\n")
    builder.getOrCreate.assert_not_called()


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["--JOB_NAME", "j", "--conf", "a=1 --conf b=2"], {"JOB_NAME": "j", "conf": "a=1 --conf b=2"}),
        (["--run", "s3://c/k=1.json", "--x=y", "stray"], {"run": "s3://c/k=1.json", "x": "y"}),
        (["--run", "--settings", "s"], {"run": "", "settings": "s"}),
        (["--run=", "stray"], {"run": ""}),
        (["--run", "a", "--run", "b"], {"run": "b"}),
        (["--run", "-x"], {"run": "-x"}),
        (["--", "--run", "u"], {"": "", "run": "u"}),
    ],
)
def test_every_word_with_two_dashes_is_a_key_and_no_value_is_lost(argv: list[str], expected: dict[str, str]) -> None:
    assert parse_arguments(argv) == expected
