"""The state machines on a local cloud, with stubs instead of the functions and the batch job."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from local.cloud import LocalCloud
from local.isolation import BUCKET_PLACE, REGION
from tests.e2e.made_by_hand import create_function, subscribe_queue
from tests.e2e.waiting import wait_for
from tests.roles import create_unlimited_role

HERE = Path(__file__).parent
MACHINES = HERE.parents[2] / "statemachines"
VALUES = {
    "PlanFunction": "stub-plan",
    "RunStatusFunction": "stub-run-status",
    "SettleFunction": "stub-settle",
    "CatalogFunction": "stub-catalog",
    "BackfillFunction": "stub-backfill",
    "ReprocessFunction": "stub-reprocess",
    "StreamControlFunction": "stub-stream-control",
    "Stage": "test",
    "HeldWaitSeconds": "1",
    "HeldRounds": "3",
    "MaxAttempts": "2",
    "IndexWaitSeconds": "0",
    "WatchSeconds": "1",
    "StopRounds": "2",
    "EmrTimeoutMinutes": "5",
    "WorkerType": "G.1X",
    "EmrSparkSubmitParameters": "--conf spark.dynamicAllocation.maxExecutors=1",
    "EmrLogGroup": "/aws/emr-serverless/stub",
    "EmrLogUri": "none",
    "EmrKeepsEventLogs": "True",
}
"""Placeholder -> value, where it does not depend on the cloud."""
BUCKET = "stubs"
JOB = "stub-batch"


@dataclass(frozen=True)
class StubbedMachines:
    """The deployed state machines, and the answers and calls of their stubs."""

    cloud: LocalCloud
    machines: dict[str, str]
    notifications: str
    """URL of the queue that subscribes to the topic."""
    emr_application: str
    """Id of an EMR Serverless application."""

    def set_answers(self, function: str, *answers: Any) -> None:
        """Set the answers of a function or of ``job``: one per call, the last one repeats; forget earlier calls."""
        s3 = self.cloud.client("s3")
        for key in self._calls(function):
            s3.delete_object(Bucket=BUCKET, Key=key)
        s3.put_object(Bucket=BUCKET, Key=f"{function}/answers.json", Body=json.dumps(answers))

    def calls(self, function: str) -> list[Any]:
        """The inputs of the function's calls, in order."""
        s3 = self.cloud.client("s3")
        return [json.loads(s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()) for key in self._calls(function)]

    def run(self, machine: str, request: Any) -> dict[str, Any]:
        """Start an execution and wait for its end; return its description."""
        states = self.cloud.client("stepfunctions")
        arn = states.start_execution(stateMachineArn=self.machines[machine], input=json.dumps(request))["executionArn"]
        wait_for(f"the end of {arn}", lambda: states.describe_execution(executionArn=arn)["status"] != "RUNNING")
        return dict(states.describe_execution(executionArn=arn))

    def index(self, *runs: str, **named: str | int) -> dict[str, Any]:
        """An answer of ``plan``, whose index on S3 lists these runs, by default with two workers on Glue."""
        way = {"engine": "glue", "workers": 2, "fallback": "", "beginBy": "9", **named}
        body = [{"run": run, "manifests": 1, "bytes": 10, **way} for run in runs]
        self.cloud.client("s3").put_object(Bucket=BUCKET, Key="index.json", Body=json.dumps(body))
        return {"runs": len(runs), "maxConcurrency": 2, "index": {"bucket": BUCKET, "key": "index.json"}}

    def take_notifications(self) -> list[str]:
        """The messages sent to the topic since the last call."""
        sqs, messages = self.cloud.client("sqs"), []
        while found := sqs.receive_message(QueueUrl=self.notifications, MaxNumberOfMessages=10).get("Messages"):
            for message in found:
                messages.append(json.loads(message["Body"])["Message"])
                sqs.delete_message(QueueUrl=self.notifications, ReceiptHandle=message["ReceiptHandle"])
        return messages

    def _calls(self, function: str) -> list[str]:
        found = self.cloud.client("s3").list_objects_v2(Bucket=BUCKET, Prefix=f"{function}/calls/")
        return [item["Key"] for item in found.get("Contents", [])]


@pytest.fixture(scope="session")
def deployed_machines(cloud: LocalCloud) -> StubbedMachines:
    """Stubs, topic and the three machines, with substitutions as in the stack."""
    s3 = cloud.client("s3")
    role = create_unlimited_role(cloud.client("iam"), "stub")
    s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration=BUCKET_PLACE)
    s3.upload_file(str(HERE / "stub_job.py"), BUCKET, "job.py")
    for name in (value for key, value in VALUES.items() if key.endswith("Function")):
        create_function(cloud.client("lambda"), name, role, HERE / "stub_function.py", {"BUCKET": BUCKET})
    cloud.client("glue").create_job(
        Name=JOB,
        Role=role,
        Command={"Name": "glueetl", "ScriptLocation": f"s3://{BUCKET}/job.py"},
        DefaultArguments={"--stubs": BUCKET, "--region": REGION},
        ExecutionProperty={"MaxConcurrentRuns": 2},
        Timeout=5,
    )
    topic = str(cloud.client("sns").create_topic(Name="stub-notifications")["TopicArn"])
    application = _application(cloud)
    values = {
        **VALUES,
        "BatchJob": JOB,
        "Topic": topic,
        "EmrApplication": application,
        "EmrRole": role,
        "EmrEntryPoint": f"s3://{BUCKET}/job.py",
        "EmrArguments": f"--stubs {BUCKET} --region {REGION}",
    }
    machines: dict[str, str] = {}
    for name in ("overnight", "backfill", "stream_window"):
        values["OvernightMachine"] = machines.get("overnight", "")
        machines[name] = _create(cloud, name, values, role)
    return StubbedMachines(cloud, machines, subscribe_queue(cloud, topic, "stub-notifications"), application)


def _application(cloud: LocalCloud) -> str:
    """The id of an application of EMR Serverless, which the local cloud creates only from a template."""
    properties = {"Name": JOB, "ReleaseLabel": "emr-spark-8.1.0", "Type": "SPARK"}
    resources = {"Emr": {"Type": "AWS::EMRServerless::Application", "Properties": properties}}
    cloudformation = cloud.client("cloudformation")
    cloudformation.create_stack(StackName=JOB, TemplateBody=json.dumps({"Resources": resources}))
    cloudformation.get_waiter("stack_create_complete").wait(StackName=JOB, WaiterConfig={"Delay": 1})
    [found] = cloudformation.describe_stack_resources(StackName=JOB)["StackResources"]
    return str(found["PhysicalResourceId"])


@pytest.fixture
def stubbed(deployed_machines: StubbedMachines) -> StubbedMachines:
    """The machines with stubs that succeed, unless a test sets other answers."""
    stubbed = deployed_machines
    stubbed.set_answers("stub-plan", stubbed.index("s3://control/runs/0"))
    stubbed.set_answers("stub-run-status", {"open": 0, "terminal": 1, "held": 0})
    stubbed.set_answers("stub-settle", verdict("SUCCEEDED", "its manifest is done"))
    stubbed.set_answers("stub-catalog", {"tables": 1, "created": 0, "extended": 0})
    stubbed.set_answers("job", 0)
    stubbed.take_notifications()
    return stubbed


def verdict(outcome: str, message: str, *, notify: bool = False) -> dict[str, Any]:
    """An answer of ``settle``."""
    return {
        "verdict": outcome,
        "message": message,
        "notify": notify,
        "notification": f"{outcome}: {message}",
        "verdictUri": "s3://control/verdict.json",
    }


def _create(cloud: LocalCloud, name: str, values: dict[str, str], role: str) -> str:
    # Retries without a wait: otherwise a storm of errors takes minutes.
    text = re.sub(r'"IntervalSeconds": \d+', '"IntervalSeconds": 0', (MACHINES / f"{name}.asl.json").read_text())
    definition = re.sub(r"\$\{(\w+)\}", lambda match: values[match[1]], text)
    answer = cloud.client("stepfunctions").create_state_machine(
        name=f"stub-{name}", definition=definition, roleArn=role
    )
    return str(answer["stateMachineArn"])
