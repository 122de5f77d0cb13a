"""route: whatever goes wrong, no event is lost, and one message does not end its neighbours."""

import json
from typing import Any

import pytest

from lake.errors import TerminalError, TransientError
from lake.ledger import State
from lake.manifest import Lane
from router.route import handler as route_module
from router.route.handler import route
from tests.unit.router.conftest import Deployment
from tests.unit.router.events import batch, failures, message, raw_message, s3_record


def lone_surrogate(identity: str) -> dict[str, Any]:
    """A message whose key is valid JSON, and cannot be encoded."""
    record = s3_record("orders/x.ndjson")
    record["s3"]["object"]["key"] = "orders/\ud800.ndjson"
    return raw_message(identity, json.dumps({"Records": [record]}))


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
