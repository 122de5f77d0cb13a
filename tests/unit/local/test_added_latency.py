"""Requests wait as long as the owner of the local cloud says: reads and writes apart."""

import asyncio
from typing import Any

import pytest

from local.added_latency import with_latency
from local.limits import Limits

SLOW = Limits(read_seconds=0.025, write_seconds=0.04)


def events_of(scope: dict[str, Any], limits: Limits) -> list[object]:
    """The pauses before the application, and the scope that it gets."""
    events: list[object] = []

    async def app(asked: Any, _receive: Any, _send: Any) -> None:
        events.append(asked["type"])

    async def pause(seconds: float) -> None:
        events.append(seconds)

    async def send() -> None:
        await with_latency(app, lambda: limits, pause)(scope, None, None)

    asyncio.run(send())
    return events


def request(method: str, target: str | None = None) -> dict[str, Any]:
    headers = [(b"host", b"127.0.0.1")] + ([(b"X-Amz-Target", target.encode())] if target else [])
    return {"type": "http", "method": method, "headers": headers}


@pytest.mark.parametrize(
    ("scope", "seconds"),
    [
        (request("GET"), 0.025),
        (request("HEAD"), 0.025),
        (request("PUT"), 0.04),
        (request("DELETE"), 0.04),
        (request("POST"), 0.04),
        (request("POST", "DynamoDB_20120810.GetItem"), 0.025),
        (request("POST", "DynamoDB_20120810.BatchGetItem"), 0.025),
        (request("POST", "DynamoDB_20120810.Query"), 0.025),
        (request("POST", "DynamoDB_20120810.UpdateItem"), 0.04),
        (request("POST", "DynamoDB_20120810.TransactWriteItems"), 0.04),
    ],
)
def test_a_request_waits_before_it_is_answered(scope: dict[str, Any], seconds: float) -> None:
    assert events_of(scope, SLOW) == [seconds, "http"]


def test_nothing_waits_by_default_and_a_lifespan_never() -> None:
    assert events_of(request("PUT"), Limits()) == ["http"]
    assert events_of({"type": "lifespan"}, SLOW) == ["lifespan"]
