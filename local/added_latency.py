"""Requests of the local cloud that take as long as those of a cloud far away, where its owner wants that."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import Any

    from local.limits import Limits
    from local.own_requests import App, Event

READING_METHODS = ("GET", "HEAD")
READING_OPERATIONS = ("BatchGet", "Describe", "Get", "List", "Query", "Scan")
"""What the names of operations begin with that only read, where the header X-Amz-Target names one, as for DynamoDB."""


def with_latency(
    app: App, limits: Callable[[], Limits], pause: Callable[[float], Awaitable[object]] = asyncio.sleep
) -> App:
    """``app`` with the seconds of ``Limits.read_seconds`` or ``Limits.write_seconds`` before each request."""

    async def delayed(scope: Event, receive: Event, send: Event) -> None:
        if scope["type"] == "http":
            found = limits()
            seconds = found.read_seconds if _only_reads(scope) else found.write_seconds
            if seconds:
                await pause(seconds)
        await app(scope, receive, send)

    return delayed


def _only_reads(scope: Mapping[str, Any]) -> bool:
    for name, value in scope.get("headers", ()):
        if name.lower() == b"x-amz-target":
            operation: str = value.decode("latin-1").rpartition(".")[2]
            return operation.startswith(READING_OPERATIONS)
    method: str = scope["method"]
    return method in READING_METHODS
