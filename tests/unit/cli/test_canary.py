"""The findings of ``doctor --canary``, and that it leaves nothing, however it ends. Its jobs are tested end to end.

moto answers for ``--athena``; no query is executed.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from moto.athena.models import QueryResults, athena_backends
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.moto_api import state_manager

from cli.deployed_stack import DeployedStack
from cli.doctor.canary import ARGUMENT, MAX_QUERY_SECONDS, NAME_TIME, Canary, CanaryJob, ask_athena, run_canary
from cli.doctor.checks import Readiness
from cli.errors import ExitCode
from lake.canary import BODY, CanaryRequest, CheckResult
from lake.documents import to_json
from lake.engines import ENGINES, Engine
from lake.engines.description import Bill
from lake.engines.emr_serverless import STREAM_LAUNCH, EmrLaunch
from lake.errors import HybridRouterError
from lake.layout import canary_key, canary_report_key
from lake.manifest import Lane
from lake.settings import Settings
from lake.shards import FIRST_SHARD
from local.isolation import REGION
from tests.unit.cli.stack_world import FakeServices, stack_of
from tests.unit.lake.world import LEASE, World

SETTINGS = Settings(stage="dev")
PROCESS = {
    **dict.fromkeys(("python", "pyarrow", "boto3", "obstore", "machine"), "1"),
    "memory_mib": 1,
    "region_of_environment": None,
    "environment": ["AWS_REGION"],
}
SEEN = {"spark": "4.1.1", "java": "17", "region": "eu-central-1", "driver": PROCESS, "worker": PROCESS}
DENIED = ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "StartJobRun")
BUCKETS = ("input", "lake", "quarantine", "control")
NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)
ENDED = Bill("jr_1", None, Engine.GLUE, "", "", 60)
LACKS_LIBRARY = replace(ENDED, state="FAILED", reason="ModuleNotFoundError: No module named 'obstore'")


@dataclass(frozen=True)
class FakeJob(CanaryJob):
    """A job whose run leaves objects and a row, and a report if it succeeds."""

    world: Any = None
    problem: str | None = None
    end: Bill | None = ENDED
    refusal: Exception | None = None
    stopped: list[str] = field(default_factory=list)

    def start(self, request: CanaryRequest) -> str:
        if self.refusal is not None:
            raise self.refusal
        s3 = self.world.raw_s3
        assert s3.get_object(Bucket="input", Key=canary_key(f"{request.name}/object"))["Body"].read() == BODY
        s3.put_object(Bucket="lake", Key=canary_key(request.run), Body=BODY)
        s3.create_multipart_upload(Bucket="quarantine", Key=canary_key(request.run))
        self.world.ledger.canaries.create(request.run, self.world.clock(), LEASE)
        if self.end is ENDED:
            report = json.dumps({"checks": [asdict(CheckResult("ledger", self.problem))], "seen": SEEN})
            s3.put_object(Bucket="control", Key=canary_report_key(request.run), Body=report)
        log = Path(str(self.stack.local_logs)) / self.stack.resources.batch_job / f"{self.name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("2026-11-23T09:00:00Z ALARM canary\n")
        return self.name

    def bill(self, run: str) -> Bill | None:
        return self.end

    def stop(self, run: str) -> None:
        self.stopped.append(run)


@pytest.fixture
def stack(world: World, tmp_path: Path) -> DeployedStack:
    return replace(stack_of(world, FakeServices()), local=True, local_logs=str(tmp_path))


def job(stack: DeployedStack, world: World, name: str, **fields: Any) -> FakeJob:
    return FakeJob(stack, name, Lane.BATCH, "batch-job", ENGINES["glue"], "G.1X", None, 0.01, world=world, **fields)


def left_behind(world: World) -> list[str]:
    rows = [item["sk"] for item in world.ledger.canaries._table.query("canary")]
    uploads = world.raw_s3.list_multipart_uploads(Bucket="quarantine").get("Uploads", [])
    return [*rows, *(key for bucket in BUCKETS for key in world.keys(bucket)), *(item["Key"] for item in uploads)]


@pytest.mark.parametrize("repeated", [1, 2], ids=["create", "claim"])
def test_a_row_is_claimed_once_also_if_the_client_repeats_a_request(world: World, repeated: int) -> None:
    world.faults.repeat = repeated
    world.ledger.canaries.create("run", world.clock(), LEASE)
    assert [world.ledger.canaries.claim("run", owner) for owner in ("jr_1", "another")] == [True, False]


def test_every_check_of_every_job_is_a_row(
    world: World, stack: DeployedStack, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given a job that is fine, one with a problem, one that may not start, and one without a required library
    jobs = [
        job(stack, world, "fine"),
        job(stack, world, "broken", problem="dynamodb:UpdateItem is denied; allow it"),
        job(stack, world, "refused", refusal=DENIED),
        job(stack, world, "library", end=LACKS_LIBRARY),
    ]
    monkeypatch.setattr("cli.doctor.canary.canary_jobs", lambda *_: jobs)
    # When the canary runs
    answer = run_canary(stack, SETTINGS)
    # Then the findings name what to do, and the exit code reports that a permission is missing
    rows = {row["name"]: row for row in to_json(answer.document)["findings"]}
    assert {name: row["state"] for name, row in rows.items() if row["state"] != "ok"} == {
        "broken: ledger": "to do",
        "refused: start": "not reachable",
        "library: imports": "to do",
    }
    assert rows["broken: ledger"]["text"] == "dynamodb:UpdateItem is denied; allow it"
    assert "a permission is missing" in rows["refused: start"]["text"]
    assert "FAILED: ModuleNotFoundError: No module named 'obstore'" in rows["library: imports"]["text"]
    assert "60 s, $0.00" in rows["fine: billed"]["text"]
    assert "spark 4.1.1, java 17, region eu-central-1, python 1" in rows["fine: seen"]["text"]
    assert rows["fine: alarm line"]["state"] == "ok"
    assert answer.code == ExitCode.NOT_REACHABLE
    assert "about $0.08, at most $0.20" in capsys.readouterr().err
    # And nothing is left
    assert left_behind(world) == []


def test_a_run_that_hangs_is_stopped_and_the_others_are_reported(world: World, stack: DeployedStack) -> None:
    hung, fine, now = job(stack, world, "hung", end=None), job(stack, world, "fine"), [0.0]
    canary = Canary(stack, SETTINGS, wait=lambda _: now.append(now[-1] + 60), clock=lambda: now[-1])
    rows = canary.run([hung, fine])
    assert hung.stopped == ["hung"]
    assert now[-1] == pytest.approx(60 * (8 + 5), abs=60)
    assert [row.name for row in rows if row.state is Readiness.TO_DO] == ["hung: run"]
    assert left_behind(world) == []


def test_an_interrupted_canary_stops_its_runs_and_leaves_nothing(world: World, stack: DeployedStack) -> None:
    hung = job(stack, world, "hung", end=None)
    with pytest.raises(KeyboardInterrupt):
        Canary(stack, SETTINGS, wait=Mock(side_effect=KeyboardInterrupt)).run([hung])
    assert hung.stopped == ["hung"]
    assert left_behind(world) == []


def test_what_a_killed_canary_has_left_is_removed_and_nothing_else(world: World, stack: DeployedStack) -> None:
    # Given the remains of a killed canary, the objects of a running one, and an object of a dataset
    running = f"{datetime.now(UTC) - timedelta(minutes=30):{NAME_TIME}}-abcdef/stream"
    for run in ("20000101T093000-abcdef/stream", running):
        for bucket in ("input", "lake", "quarantine"):
            world.raw_s3.put_object(Bucket=bucket, Key=canary_key(run), Body=BODY)
        world.raw_s3.put_object(Bucket="control", Key=canary_report_key(run), Body=b"{}")
        world.raw_s3.create_multipart_upload(Bucket="quarantine", Key=canary_key(run))
        world.ledger.canaries.create(run, world.clock(), LEASE)
    world.raw_s3.put_object(Bucket="lake", Key="orders/part.parquet", Body=BODY)
    # When the next one runs without any job
    Canary(stack, SETTINGS).run([])
    # Then
    left = [running, *[canary_key(running)] * 4, canary_report_key(running), "orders/part.parquet"]
    assert sorted(left_behind(world)) == sorted(left)


@pytest.mark.parametrize("lane", [Lane.STREAM, Lane.BATCH])
def test_an_engine_that_only_the_settings_have_is_a_finding(stack: DeployedStack, lane: Lane) -> None:
    # Given a stack that was deployed before its settings named EMR Serverless
    functions: Any = SimpleNamespace(get_function_configuration=lambda **_: {"Environment": {"Variables": {}}})
    stack = replace(stack, functions=functions)
    canary = CanaryJob(stack, "emr", lane, "job", ENGINES["emr-serverless"], "G.1X", Mock(), 0.1)
    # When, Then
    with pytest.raises(HybridRouterError, match="deploy the stack again"):
        canary.start(CanaryRequest("name", "emr", "etag", "v1", "v2"))


def test_a_streaming_run_on_emr_differs_from_the_stacks_only_in_an_argument(stack: DeployedStack) -> None:
    # Given the functions that start the stream on EMR Serverless
    launch = EmrLaunch("00app", "role", "s3://code/main.py", "--a 1", "--conf x=y", 1440, "/logs")
    functions: Any = SimpleNamespace(
        get_function_configuration=lambda **_: {"Environment": {"Variables": {STREAM_LAUNCH: launch.to_text()}}}
    )
    sent: list[dict[str, Any]] = []

    def start_job_run(**request: Any) -> dict[str, str]:
        sent.append(request)
        return {"jobRunId": "00run"}

    emr: Any = SimpleNamespace(start_job_run=start_job_run)
    stack, engine = replace(stack, functions=functions), ENGINES["emr-serverless"]
    canary = CanaryJob(stack, "stream", Lane.STREAM, "stream-job", engine, "G.1X", emr, 0.1)
    # When its canary starts
    request = CanaryRequest("name", "stream", "etag", "v1", "v2")
    assert canary.start(request) == "emr-serverless:00app:00run"
    # Then only the argument and the timeout differ
    expected = launch.request(FIRST_SHARD, "stream-job", sent[0]["clientToken"])
    expected["jobDriver"]["sparkSubmit"]["entryPointArguments"] += [ARGUMENT, request.to_text()]
    assert sent == [{**expected, "executionTimeoutMinutes": 5}]
    assert CanaryRequest.from_text(request.to_text()) == request


WORKGROUP = "analysts"
client = partial(boto3.client, region_name=REGION)


@pytest.fixture
def with_table(world: World) -> Iterator[DeployedStack]:
    """A stage with one table of two columns, in an account with a workgroup."""
    with mock_aws():
        stack = replace(stack_of(world, FakeServices()), glue=client("glue"), open_client=client)
        database = stack.resources.tables_database
        stack.glue.create_database(DatabaseInput={"Name": database})
        columns = [{"Name": name, "Type": "string"} for name in ("date", "hour", "id", 'a "b"')]
        table: Any = {"Name": "orders", "StorageDescriptor": {"Columns": columns}}
        stack.glue.create_table(DatabaseName=database, TableInput=table)
        client("athena").create_work_group(Name=WORKGROUP)
        yield stack


@pytest.mark.parametrize(
    ("status", "counts", "state", "text"),
    [
        ("SUCCEEDED", (1000, 0, 7), Readiness.OK, "of 1,000 rows 1 of 2 columns have values"),
        ("SUCCEEDED", (1000, 0, 0), Readiness.TO_DO, "do not move readers to it"),
        ("SUCCEEDED", (0, 0, 0), Readiness.SKIPPED, "no rows yet"),
        ("FAILED", (), Readiness.TO_DO, "FAILED: "),
        ("RUNNING", (), Readiness.TO_DO, f"RUNNING: after {MAX_QUERY_SECONDS} seconds"),
    ],
)
def test_values_are_shown_or_nulls_or_the_query_does_not_succeed(
    with_table: DeployedStack, status: str, counts: tuple[int, ...], state: Readiness, text: str
) -> None:
    # Given a query that has no answer at the first poll
    backend = athena_backends[DEFAULT_ACCOUNT_ID][REGION]
    row = {"Data": [{"VarCharValue": str(count)} for count in counts]}
    backend.query_results_queue.append(QueryResults([{"Data": []}, row], []))
    waited: list[float] = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        (execution,) = backend.executions.values()
        execution.status = status

    state_manager.set_transition("athena::execution", {"progression": "manual", "times": 1000})
    # When
    (finding,) = ask_athena(with_table, WORKGROUP, wait)
    state_manager.unset_transition("athena::execution")
    # Then
    assert (finding.name, finding.state, text in finding.text) == ("athena: orders", state, True), finding
    assert len(waited) == (MAX_QUERY_SECONDS if status == "RUNNING" else 1)
    # And the query was one that Athena can read
    athena = client("athena")
    (query,) = athena.list_query_executions()["QueryExecutionIds"]
    statement = athena.get_query_execution(QueryExecutionId=query)["QueryExecution"]["Query"]
    assert statement.startswith('SELECT count(*), count("id"), count("a ""b""") FROM (SELECT * FROM "')


def test_an_unknown_workgroup_a_database_without_tables_and_none_at_all(with_table: DeployedStack) -> None:
    (finding,) = ask_athena(with_table, "other")
    assert finding.state is Readiness.UNREACHABLE
    with_table.glue.delete_table(DatabaseName=with_table.resources.tables_database, Name="orders")
    (finding,) = ask_athena(with_table, WORKGROUP)
    assert finding.state is Readiness.SKIPPED
    with_table.glue.delete_database(Name=with_table.resources.tables_database)
    (finding,) = ask_athena(with_table, WORKGROUP)
    assert finding.state is Readiness.UNREACHABLE
