"""The deployed probe stack as tests use it."""

import json
from dataclasses import dataclass
from typing import Any

from local.cloud import LocalCloud
from local.isolation import REGION
from tests.e2e.waiting import wait_for


@dataclass(frozen=True, slots=True)
class Probe:
    """The deployed probe stack and its outputs."""

    cloud: LocalCloud
    outputs: dict[str, str]

    def client(self, service: str) -> Any:
        return self.cloud.client(service)

    def start_run(self, job: str, timeout: int | None = None, **arguments: str) -> str:
        given = {f"--{name.replace('_', '-')}": value for name, value in {"region": REGION, **arguments}.items()}
        limit = {"Timeout": timeout} if timeout else {}
        return str(self.client("glue").start_job_run(JobName=job, Arguments=given, **limit)["JobRunId"])

    def run(self, job: str, run_id: str) -> dict[str, Any]:
        return dict(self.client("glue").get_job_run(JobName=job, RunId=run_id)["JobRun"])

    def ended_run(self, job: str, run_id: str) -> dict[str, Any]:
        live = ("STARTING", "RUNNING", "STOPPING")
        wait_for(f"the end of {run_id}", lambda: self.run(job, run_id)["JobRunState"] not in live)
        return self.run(job, run_id)

    def put_json(self, key: str, value: object) -> str:
        self.client("s3").put_object(Bucket=self.outputs["Bucket"], Key=key, Body=json.dumps(value).encode())
        return key

    def object_json(self, key: str) -> Any:
        s3 = self.client("s3")
        found = wait_for(
            f"the object {key}", lambda: s3.list_objects_v2(Bucket=self.outputs["Bucket"], Prefix=key).get("Contents")
        )
        assert len(found) == 1
        return json.loads(s3.get_object(Bucket=self.outputs["Bucket"], Key=key)["Body"].read())

    def execute(self, machine: str, given: object) -> str:
        request = {"stateMachineArn": self.outputs[machine], "input": json.dumps(given)}
        return str(self.client("stepfunctions").start_execution(**request)["executionArn"])

    def ended_execution(self, arn: str) -> dict[str, Any]:
        states = self.client("stepfunctions")
        wait_for(f"the end of {arn}", lambda: states.describe_execution(executionArn=arn)["status"] != "RUNNING")
        return dict(states.describe_execution(executionArn=arn))

    def invoke(self, payload: object) -> Any:
        answer = self.client("lambda").invoke(FunctionName=self.outputs["Function"], Payload=json.dumps(payload))
        return json.loads(answer["Payload"].read())
