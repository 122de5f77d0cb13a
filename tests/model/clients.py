"""The clients of an actor: each call is a step of the history. Without an actor, calls meet no faults."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tests.model.scheduler import is_read

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.model.scheduler import Actor
    from tests.model.world import World


class ActorClient:
    """One service as one actor sees it."""

    def __init__(self, world: World, actor: Actor | None, client: Any) -> None:
        self._world, self._actor, self._target = world, actor, client
        self.exceptions = client.exceptions

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        if operation == "get_paginator":
            return lambda name: _Paginator(getattr(self, name))
        scheduler, actor, method = self._world.scheduler, self._actor, getattr(self._target, operation)
        self._world.wait(timedelta(milliseconds=1))
        if actor is None or scheduler is None:
            return lambda **request: self._call_without_faults(operation, method, request)
        return lambda **request: scheduler.call(actor, self._target, operation, request)

    def _call_without_faults(self, operation: str, method: Callable[..., Any], request: dict[str, Any]) -> Any:
        response = method(**request)
        if not is_read(operation):
            self._world.issued_at = self._world.now
            self._world.after_write()
        return response


@dataclass(frozen=True)
class _Paginator:
    call: Callable[..., Any]

    def paginate(self, **request: Any) -> Any:
        while True:
            page = self.call(**request)
            yield page
            if not page["IsTruncated"]:
                return
            if "Uploads" in page:
                request |= {"KeyMarker": page["NextKeyMarker"], "UploadIdMarker": page["NextUploadIdMarker"]}
            elif "Versions" in page:
                request["KeyMarker"] = page["NextKeyMarker"]
            else:
                request["StartAfter"] = page["Contents"][-1]["Key"]
