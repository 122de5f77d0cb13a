"""route: whatever goes wrong, no event is lost, and one message does not end its neighbours."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from botocore.exceptions import ClientError

from lake.errors import TerminalError, TransientError
from lake.ledger import State
from lake.manifest import Lane
from lake.shards import FIRST_SHARD
from router.route import handler as route_module
from router.route.handler import route
from router.stream.runs import start_run
from tests.unit.router.conftest import Deployment, new_deployment
from tests.unit.router.events import batch, failures, message, raw_message, s3_record
from tests.unit.router.raising import RaisingClients, errors_of

OPERATIONS = (
    "dynamodb.get_item",
    "dynamodb.put_item",
    "s3.put_object",
    "s3.get_bucket_versioning",
    "glue.start_job_run",
)
"""Calls without which an arrival has no owner, or nothing converts it."""
HANDLED = ("ConditionalCheckFailedException",)
"""The row of the arrival exists."""


def lone_surrogate(identity: str) -> dict[str, Any]:
    """A message whose key is valid JSON, and cannot be encoded."""
    record = s3_record("orders/x.ndjson")
    record["s3"]["object"]["key"] = "orders/\ud800.ndjson"
    return raw_message(identity, json.dumps({"Records": [record]}))


@contextmanager
def routing(operation: str, error: Exception) -> Iterator[Deployment]:
    with new_deployment() as deployment:
        RaisingClients(failing=operation, error=error).install(deployment)
        yield deployment


@pytest.mark.repeats_lines
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_message_comes_again_after_every_error_of_every_call(operation: str) -> None:
    event = batch(message("m1", s3_record("orders/a.ndjson", versionId=None)))
    lost = []
    for error, passes in errors_of(operation):
        if type(error).__name__ in HANDLED:
            continue
        with routing(operation, error) as deployment:
            try:
                answer = route(event, deployment.services)
            except ClientError:
                # SQS redelivers all messages of an invocation that fails, and its alarm is raised.
                assert not passes
            else:
                lost += [error] if failures(answer) != ["m1"] else []
    assert lost == []


def test_a_message_that_cannot_be_routed_fails_alone(deployment: Deployment) -> None:
    # Given: one message among others whose key cannot be hashed
    good = [message(f"m{number}", s3_record(f"orders/{number}.ndjson")) for number in range(6)]
    event = batch(*good[:3], lone_surrogate("bad"), *good[3:])
    # When, Then
    assert failures(route(event, deployment.services)) == ["bad"]
    rows = deployment.ledger.manifests.open(Lane.STREAM, State.QUEUED)
    assert sum(row.files for row in rows) == len(good)


@pytest.mark.parametrize("error", [TransientError("later"), TerminalError("broken")])
def test_an_error_of_all_messages_returns_them_all(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    calls = []

    def raising(*arguments: object) -> None:
        calls.append(arguments)
        raise error

    monkeypatch.setattr(route_module, "route_arrivals", raising)
    event = batch(*(message(f"m{number}", s3_record(f"orders/{number}.ndjson")) for number in range(4)))
    assert failures(route(event, deployment.services)) == ["m0", "m1", "m2", "m3"]
    # A fault that passes concerns all of them: no part is tried by itself.
    assert len(calls) == (1 if isinstance(error, TransientError) else 7)


@pytest.mark.parametrize("name", ["ResourceNumberLimit", "ConcurrentRunsExceeded"])
def test_a_full_account_is_no_run_that_exists(name: str) -> None:
    error = next(error for error, _ in errors_of("glue.start_job_run") if name in str(error))
    event = batch(message("m1", s3_record("orders/a.ndjson")))
    with routing("glue.start_job_run", error) as deployment:
        assert failures(route(event, deployment.services)) == ["m1"]
        with pytest.raises(TransientError, match=r"Glue has no room to start the streaming job stream-job .*quotas"):
            start_run(deployment.services, FIRST_SHARD)
        # Then: the manifest is in the ledger, and the redelivered event starts the stream
        [row] = deployment.ledger.manifests.open(Lane.STREAM, State.QUEUED)
        assert row.files == 1
        RaisingClients().install(deployment)
        assert failures(route(event, deployment.services)) == []
        assert deployment.glue.runs == {"stream-job": {"jr_1": "RUNNING"}}
