"""A bucket, a function and a Glue job that report what they see of a local cloud, shared by all tests."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from local.cloud import LocalCloud
from local.isolation import BUCKET_PLACE, REGION
from tests.e2e.made_by_hand import create_function
from tests.e2e.waiting import wait_for
from tests.roles import create_unlimited_role

HERE = Path(__file__).parent
BUCKET, FUNCTION, JOB = "probe", "probe-function", "probe-job"


@dataclass(frozen=True, slots=True)
class Probe:
    """The probe of one cloud."""

    cloud: LocalCloud
    role: str

    @classmethod
    def create(cls, cloud: LocalCloud) -> "Probe":
        """Create its resources."""
        role, s3 = create_unlimited_role(cloud.client("iam"), "probe"), cloud.client("s3")
        s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration=BUCKET_PLACE)
        s3.upload_file(str(HERE / "probe_job.py"), BUCKET, "job.py")
        create_function(cloud.client("lambda"), FUNCTION, role, HERE / "probe_function.py", {})
        command = {"Name": "glueetl", "ScriptLocation": f"s3://{BUCKET}/job.py"}
        cloud.client("glue").create_job(Name=JOB, Role=role, Command=command, DefaultArguments={"--region": REGION})
        return cls(cloud, role)

    def run(self, **arguments: str) -> None:
        """Run the job to its end, which must be SUCCEEDED."""
        glue = self.cloud.client("glue")
        given = {f"--{name.replace('_', '-')}": value for name, value in arguments.items()}
        run = glue.start_job_run(JobName=JOB, Arguments=given)["JobRunId"]

        def ended() -> dict[str, Any] | None:
            found: dict[str, Any] = glue.get_job_run(JobName=JOB, RunId=run)["JobRun"]
            return found if found["JobRunState"] not in ("STARTING", "RUNNING") else None

        assert (end := wait_for(f"the end of {run}", ended))["JobRunState"] == "SUCCEEDED", end

    def invoke(self, payload: object) -> Any:
        answer = self.cloud.client("lambda").invoke(FunctionName=FUNCTION, Payload=json.dumps(payload))
        return json.loads(answer["Payload"].read())


@pytest.fixture(scope="session")
def probe(cloud: LocalCloud) -> Probe:
    return Probe.create(cloud)
