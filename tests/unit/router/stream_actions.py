"""What the function stream_control is asked to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from router.stream.handler import stream_control

if TYPE_CHECKING:
    from tests.unit.router.conftest import Deployment


def act(deployment: Deployment, action: str, shards: str = "") -> dict[str, Any]:
    """Start, stop or watch the streaming runs, of all shards or of these."""
    return stream_control({"action": action, "shards": shards}, deployment.services)
