"""The machines' files on a local cloud, with scripted functions and a scripted job in place of the real ones."""

from __future__ import annotations

import io
import json
import re
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from local.cloud import LocalCloud

HERE = Path(__file__).parent
MACHINES = HERE.parents[2] / "statemachines"
ROLE = "arn:aws:iam::000000000000:role/stub"
FUNCTIONS = {
    "PlanFunction": "stub-plan",
    "RunStatusFunction": "stub-run-status",
    "SettleFunction": "stub-settle",
    "CatalogFunction": "stub-catalog",
    "BackfillFunction": "stub-backfill",
    "StreamControlFunction": "stub-stream-control",
}
NUMBERS = {
    "HeldWaitSeconds": "1",
    "HeldRounds": "3",
    "MaxAttempts": "2",
    "WatchSeconds": "1",
    "StopRounds": "2",
}
BUCKET = "stubs"
JOB = "stub-batch"


@dataclass(frozen=True)
class Stage:
    """What the tests script, start and look at."""

    cloud: LocalCloud
    machines: dict[str, str]
    notices: str

    def answers(self, function: str, *answers: Any) -> None:
        """Script a function (or ``job``) and forget its earlier calls."""
        s3 = self.cloud.client("s3")
        for key in self._calls(function):
            s3.delete_object(Bucket=BUCKET, Key=key)
        s3.put_object(Bucket=BUCKET, Key=f"{function}/answers.json", Body=json.dumps(answers))

    def calls(self, function: str) -> list[Any]:
        """What the function was called with."""
        s3 = self.cloud.client("s3")
        return [json.loads(s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()) for key in self._calls(function)]

    def run(self, machine: str, given: Any) -> dict[str, Any]:
        """Start an execution and wait for its end."""
        states = self.cloud.client("stepfunctions")
        arn = states.start_execution(stateMachineArn=self.machines[machine], input=json.dumps(given))["executionArn"]
        deadline = time.monotonic() + 60
        while (end := states.describe_execution(executionArn=arn))["status"] == "RUNNING":
            assert time.monotonic() < deadline, f"{machine} did not end: {end}"
            time.sleep(0.1)
        return end

    def index(self, *runs: str) -> dict[str, Any]:
        """A plan's answer whose index lists these runs."""
        body = [{"run": run, "manifests": 1, "bytes": 10} for run in runs]
        self.cloud.client("s3").put_object(Bucket=BUCKET, Key="index.json", Body=json.dumps(body))
        return {"runs": len(runs), "maxConcurrency": 2, "index": {"bucket": BUCKET, "key": "index.json"}}

    def notified(self) -> list[str]:
        """Messages that went to the topic since the last look."""
        sqs, messages = self.cloud.client("sqs"), []
        while found := sqs.receive_message(QueueUrl=self.notices, MaxNumberOfMessages=10).get("Messages"):
            for message in found:
                messages.append(json.loads(message["Body"])["Message"])
                sqs.delete_message(QueueUrl=self.notices, ReceiptHandle=message["ReceiptHandle"])
        return messages

    def _calls(self, function: str) -> list[str]:
        found = self.cloud.client("s3").list_objects_v2(Bucket=BUCKET, Prefix=f"{function}/calls/")
        return [item["Key"] for item in found.get("Contents", [])]


@pytest.fixture(scope="session")
def stubbed(cloud: LocalCloud) -> Stage:
    """Functions, job, topic and the three machines, filled in as the stack fills them in."""
    s3 = cloud.client("s3")
    s3.create_bucket(Bucket=BUCKET)
    s3.upload_file(str(HERE / "stub_job.py"), BUCKET, "job.py")
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.write(HERE / "stub_function.py", "stub_function.py")
    for name in FUNCTIONS.values():
        cloud.client("lambda").create_function(
            FunctionName=name,
            Runtime="python3.13",
            Role=ROLE,
            Handler="stub_function.handler",
            Code={"ZipFile": code.getvalue()},
            Environment={"Variables": {"BUCKET": BUCKET}},
            Timeout=30,
        )
    cloud.client("glue").create_job(
        Name=JOB,
        Role=ROLE,
        Command={"Name": "glueetl", "ScriptLocation": f"s3://{BUCKET}/job.py"},
        DefaultArguments={"--stubs": BUCKET},
        ExecutionProperty={"MaxConcurrentRuns": 2},
        Timeout=5,
    )
    topic, queue = _topic(cloud)
    values = {**FUNCTIONS, **NUMBERS, "BatchJob": JOB, "Topic": topic}
    machines: dict[str, str] = {}
    for name in ("overnight", "backfill", "stream_window"):
        values["OvernightMachine"] = machines.get("overnight", "")
        machines[name] = _create(cloud, name, values)
    return Stage(cloud, machines, queue)


@pytest.fixture
def stage(stubbed: Stage) -> Iterator[Stage]:
    """Everything goes well, until a test says otherwise."""
    stubbed.answers("stub-plan", stubbed.index("s3://control/runs/0"))
    stubbed.answers("stub-run-status", {"open": 0, "terminal": 1, "held": 0})
    stubbed.answers("stub-settle", verdict("SUCCEEDED", "all 1 manifests are done"))
    stubbed.answers("stub-catalog", {"tables": 1, "created": [], "extended": []})
    stubbed.answers("job", 0)
    stubbed.notified()
    return stubbed


def verdict(outcome: str, message: str) -> dict[str, Any]:
    """An answer of ``settle``."""
    return {"verdict": outcome, "message": message, "verdictUri": "s3://control/verdict.json"}


def _create(cloud: LocalCloud, name: str, values: dict[str, str]) -> str:
    text = (MACHINES / f"{name}.asl.json").read_text()
    definition = re.sub(r"\$\{(\w+)\}", lambda match: values[match[1]], text)
    answer = cloud.client("stepfunctions").create_state_machine(
        name=f"stub-{name}", definition=definition, roleArn=ROLE
    )
    return str(answer["stateMachineArn"])


def _topic(cloud: LocalCloud) -> tuple[str, str]:
    sns, sqs = cloud.client("sns"), cloud.client("sqs")
    topic = sns.create_topic(Name="stub-notices")["TopicArn"]
    queue = sqs.create_queue(QueueName="stub-notices")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)
    return topic, queue
