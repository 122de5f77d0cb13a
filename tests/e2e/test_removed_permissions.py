"""A role that lacks one permission: its work fails with a sentence that names role and action; nothing is lost."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lake.ledger import State
from tests.e2e.permissions import logs, role_name, sentences, without
from tests.e2e.scenario import Scenario
from tests.e2e.waiting import wait_for

LONG = pytest.mark.long
"""``make permissions`` plays them; ``make test`` a sample."""


@contextmanager
def fast_redelivery(scenario: Scenario) -> Iterator[None]:
    """Inside the block, events that ``route`` refused are redelivered after 5 seconds instead of 12 minutes."""
    sqs, queue = scenario.cloud.client("sqs"), scenario.deployment.outputs.arrivals_queue
    names: Any = ["VisibilityTimeout", "RedrivePolicy"]
    before = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=names)["Attributes"]
    redrive = json.dumps({**json.loads(before["RedrivePolicy"]), "maxReceiveCount": 1000})
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"VisibilityTimeout": "5", "RedrivePolicy": redrive})
    try:
        yield
    finally:
        sqs.set_queue_attributes(QueueUrl=queue, Attributes=before)


@pytest.mark.parametrize(
    "action",
    ["s3:PutObject", pytest.param("dynamodb:PutItem", marks=LONG), pytest.param("sqs:ReceiveMessage", marks=LONG)],
)
def test_route_reports_what_it_may_not_do_and_takes_the_file_afterwards(scenario: Scenario, action: str) -> None:
    # Given a role without a permission, and files of two new datasets, which an unreadable queue delivers at once
    iam, folder = scenario.cloud.client("iam"), scenario.cloud.logs_dir
    role, name = role_name(iam, "RouterrouteRole"), re.sub("[^a-z]", "", action.lower())
    with fast_redelivery(scenario):
        with without(iam, role, action):
            files = [scenario.put(f"{dataset}/a.ndjson", ['{"a": 1}']) for dataset in (name, f"{name}_too")]
            # Then the log names both; an unreadable queue shows in its age, so on AWS the event source reports it
            pattern = "emulator.log" if action.startswith("sqs:") else "lambda/*route*.log"
            wait_for("the refusal", lambda: sentences(logs(folder, pattern), role, action))
            assert [scenario.manifest_of(file) for file in files] == [None, None]
        # When it has the permission again, then the events are redelivered
        for file in files:
            scenario.wait_state(file, State.QUEUED)


@pytest.mark.parametrize(
    ("part", "action", "engine"),
    [
        pytest.param("MachinesOvernightRole", "lambda:InvokeFunction", "glue", marks=LONG),
        pytest.param("MachinesOvernightRole", "glue:StartJobRun", "glue", marks=LONG),
        pytest.param("MachinesOvernightRole", "emr-serverless:StartJobRun", "emr-serverless", marks=LONG),
        pytest.param("MachinesOvernightRole", "iam:PassRole", "emr-serverless", marks=LONG),
        ("RouterplanRole", "dynamodb:Query", "glue"),
        pytest.param("RoutersettleRole", "s3:ListBucket", "glue", marks=LONG),
        pytest.param("JobsRole", "s3:PutObject", "glue", marks=LONG),
        pytest.param("JobsRole", "dynamodb:UpdateItem", "glue", marks=LONG),
        pytest.param("EmrRole", "s3:PutObject", "emr-serverless", marks=LONG),
    ],
)
def test_a_night_names_the_missing_permission_and_the_next_one_converts(
    scenario: Scenario, part: str, action: str, engine: str, tmp_path: Path
) -> None:
    # Given a file that waits for the night, and a role without a permission
    iam, dataset = scenario.cloud.client("iam"), re.sub("[^a-z]", "", f"{part}{action}".lower())
    scenario.queued(f"{dataset}/a.ndjson", ['{"a": 1}'])
    role, overnight = role_name(iam, part), scenario.deployment.outputs.overnight
    with without(iam, role, action):
        refused = scenario.execute(overnight, {"dataset": dataset, "engine": engine})
    # Then the night fails, and its cause is a sentence of role and action; without the ledger only the run's log has it
    assert refused["status"] == "FAILED"
    text = refused["cause"].replace("\\n", "\n")
    if action == "dynamodb:UpdateItem":
        text = logs(scenario.cloud.logs_dir, f"{scenario.deployment.resources.batch_job}/*.log")
    assert sentences(text, role, action), refused["cause"]
    # When it has the permission again, then the next night converts the file
    granted = scenario.execute(overnight, {"dataset": dataset, "engine": engine})
    assert granted["status"] == "SUCCEEDED", granted.get("cause")
    assert sorted(scenario.lake_rows(dataset, tmp_path)) == ['{"a": "1"}']
