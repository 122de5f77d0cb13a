"""The door of the local cloud: it answers programs that name it, and no web page that a browser has open."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

Event = Any
"""A value of the ASGI protocol, which the servers type each in their own way."""
App = Callable[[Event, Event, Event], Awaitable[None]]
"""An ASGI application: ``app(scope, receive, send)``."""

_OPEN_PATHS = ("/_ministack/health", "/_ministack/cfn-response/", "/_ministack/cfn-signal/")
"""Needed without an access key: the start of the cloud, and answers of CloudFormation, whose paths hold a token."""


def only_own_requests(app: App, port: int) -> App:
    """``app`` behind a check of each request's Host, Origin and path.

    A page of another site can send requests to loopback, and by a name that resolves to 127.0.0.1 it can read the
    answers. Both show in these headers: a browser sets them, and no script can.
    """
    hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}

    async def checked(scope: Event, receive: Event, send: Event) -> None:
        reason = _refusal(scope, hosts) if scope["type"] in ("http", "websocket") else None
        if reason is None:
            await app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            body = json.dumps({"__type": "AccessDeniedException", "message": reason}).encode()
            headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
            await send({"type": "http.response.start", "status": 403, "headers": headers})
            await send({"type": "http.response.body", "body": body})

    return checked


def _refusal(scope: Mapping[str, Any], hosts: set[str]) -> str | None:
    headers = [(name.lower(), value.decode("latin-1")) for name, value in scope.get("headers", ())]
    named = [value for name, value in headers if name == b"host"]
    if len(named) != 1 or named[0] not in hosts:
        return "The Host header names another server than this local cloud."
    if any(name == b"origin" for name, _ in headers):
        return "Requests of web pages are refused."
    path = str(scope.get("path", ""))
    if path.startswith(("/_ministack", "/_localstack")) and not path.startswith(_OPEN_PATHS):
        return "The emulator's own interface is closed."
    return None
