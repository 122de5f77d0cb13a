"""``doctor --canary`` on the deployed stack: every job is fine, and each broken part is named."""

import io
import zipfile
from typing import Any
from urllib.parse import urlsplit

import pytest

from cli.change.stream import read_shards
from cli.deployed_stack import DeployedStack
from cli.doctor.canary import Canary, CanaryJob, run_canary
from cli.doctor.checks import Finding, Readiness
from cli.errors import ExitCode
from lake.documents import to_json
from lake.engines import ENGINES
from lake.layout import CANARY
from lake.manifest import Lane
from tests.e2e.permissions import role_name, without
from tests.e2e.scenario import Scenario
from tests.e2e.stack_settings import e2e_settings
from tests.e2e.waiting import wait_for

JOBS = ("stream", "batch-glue", "batch-glue-flex", "batch-emr-serverless")


class BrokenGlue:
    """Glue's client, which starts runs with arguments other than the job's."""

    def __init__(self, glue: Any, arguments: dict[str, str]) -> None:
        self._glue, self._arguments = glue, arguments

    def start_job_run(self, **request: Any) -> Any:
        return self._glue.start_job_run(**{**request, "Arguments": {**request["Arguments"], **self._arguments}})

    def __getattr__(self, name: str) -> Any:
        return getattr(self._glue, name)


@pytest.fixture
def stack(scenario: Scenario) -> DeployedStack:
    """The stack, once no run of the stream is alive."""
    wait_for("the end of the stream", lambda: not any(shard.runs for shard in read_shards(scenario.deployment)))
    return scenario.deployment


def left_behind(scenario: Scenario) -> list[str]:
    """Keys of objects and uploads, and rows of the ledger, that name a canary."""
    resources, s3 = scenario.deployment.resources, scenario.deployment.s3
    found = []
    for bucket in (resources.input_bucket, *resources.output_buckets, resources.control_bucket):
        listed = s3.list_object_versions(Bucket=bucket)
        found += [item["Key"] for item in (*listed.get("Versions", ()), *listed.get("DeleteMarkers", ()))]
        found += [item["Key"] for item in s3.list_multipart_uploads(Bucket=bucket).get("Uploads", [])]
    pages = scenario.cloud.client("dynamodb").get_paginator("scan").paginate(TableName=resources.ledger_table)
    found += [str(item) for page in pages for item in page["Items"]]
    return [text for text in found if "canary" in text]


def broken(stack: DeployedStack, name: str, arguments: dict[str, str]) -> CanaryJob:
    """The batch job, started with these arguments."""
    glue: Any = BrokenGlue(stack.glue, arguments)
    job = stack.resources.batch_job
    return CanaryJob(stack, name, Lane.BATCH, job, ENGINES["glue"], "G.1X", glue, 0.01)


def changed_code(stack: DeployedStack, name: str, changes: dict[str, tuple[str, str]]) -> dict[str, str]:
    """The argument with a copy of the jobs' zip in which files have another text; "" replaces the whole file."""
    uri = stack.glue.get_job(JobName=stack.resources.batch_job)["Job"]["DefaultArguments"]["--extra-py-files"]
    place = urlsplit(str(uri))
    body: bytes = stack.s3.get_object(Bucket=place.netloc, Key=place.path[1:])["Body"].read()
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        files = {item.filename: archive.read(item).decode() for item in archive.infolist()}
    for path, (before, after) in changes.items():
        assert before in files.get(path, "")
        files[path] = files[path].replace(before, after) if before else after
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    key = f"{place.path[1:].removesuffix('.zip')}-{name}.zip"
    stack.s3.put_object(Bucket=place.netloc, Key=key, Body=target.getvalue())
    return {"--extra-py-files": f"s3://{place.netloc}/{key}"}


def problems(findings: list[Finding], job: str) -> dict[str, str]:
    """What to do, by check."""
    to_do = (item for item in findings if item.state is Readiness.TO_DO and item.name.startswith(f"{job}: "))
    return {item.name.removeprefix(f"{job}: "): item.text for item in to_do}


def test_every_job_is_fine_and_nothing_is_left(
    scenario: Scenario, stack: DeployedStack, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given the remains of an interrupted canary
    stack.s3.put_object(Bucket=stack.resources.lake_bucket, Key=f"{CANARY}20260101T000000-abcdef/stream", Body=b"")
    # When the canary runs in the account
    answer = run_canary(stack, e2e_settings())
    # Then it first prints its price, every job makes every check, and all of them are fine
    assert "at most $" in capsys.readouterr().err
    document = to_json(answer.document)
    assert [row for row in document["findings"] if row["state"] != Readiness.OK] == []
    assert answer.code == ExitCode.OK
    resources = stack.resources
    for job in JOBS:
        names = (row["name"].partition(": ") for row in document["findings"])
        assert {check for of_job, _, check in names if of_job == job} == {
            *("imports", "imports (worker)", "region", "read by obstore", "deleted version"),
            *(f"upload to {bucket}" for bucket in resources.output_buckets),
            *("complete twice", "ledger", "job runs", "seen", "alarm line", "billed"),
        }
        assert document["seen"][job]["spark"] == "4.1.1"
    # And nothing is left: no object, no upload, no row of the ledger
    assert left_behind(scenario) == []


def test_a_stream_that_is_alive_is_left_alone(stack: DeployedStack) -> None:
    # Given a run of the stream
    run = stack.glue.start_job_run(JobName=stack.resources.stream_job)["JobRunId"]
    try:
        # When its canary would start
        name = stack.resources.stream_job
        job = CanaryJob(stack, "stream", Lane.STREAM, name, ENGINES["glue"], "G.1X", stack.glue, 0.01)
        rows = Canary(stack, e2e_settings()).run([job])
        # Then the run continues, and the row names it
        assert [(row.state, run in row.text) for row in rows] == [(Readiness.SKIPPED, True)]
        assert read_shards(stack)[0].runs == (run,)
    finally:
        stack.glue.batch_stop_job_run(JobName=stack.resources.stream_job, JobRunIds=[run])


def test_each_broken_part_is_named(scenario: Scenario, stack: DeployedStack) -> None:
    # Given a missing library, a completion that finds no object, another region, and a denied read
    library = {"obstore/__init__.py": ("", 'raise ModuleNotFoundError("No module named obstore")')}
    completion = {"lake/publish.py": ("return etag if found == (item.size, item.checksum) else None", "return None")}
    jobs = [
        broken(stack, "library", changed_code(stack, "library", library)),
        broken(stack, "completion", changed_code(stack, "completion", completion)),
        broken(stack, "region", {"--region": "us-east-1"}),
    ]
    iam = scenario.cloud.client("iam")
    with without(iam, role_name(iam, "JobsRole"), "s3:GetObjectVersion"):
        # When the canary runs
        rows = Canary(stack, e2e_settings()).run(jobs)
    # Then each is named, under its check, and the others are fine
    (text,) = problems(rows, "library").values()
    assert "No module named obstore" in text
    found = problems(rows, "completion")
    assert set(found) == {"complete twice", "read by obstore", "deleted version"}
    assert "disappeared before completion" in found["complete twice"]
    assert "s3:GetObjectVersion is denied" in found["read by obstore"]
    assert "the bucket" in problems(rows, "region")["region"]
    assert left_behind(scenario) == []
