"""Processes of a history that faults can kill or stall, and the clients that they share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from local.isolation import REGION
from tests.chaos.injection import Fault, Injector, Killed
from tests.unit.router.event_bridge import FakeEventBridge
from transform.clients import dynamodb_client, s3_client

if TYPE_CHECKING:
    from tests.chaos.world import World


@dataclass(frozen=True, slots=True)
class Clients:
    """Created once per process and shared by all deployments."""

    s3: Any
    dynamodb: Any
    events: FakeEventBridge


@dataclass
class Process:
    """A Lambda invocation or a job run."""

    world: World
    name: str
    injector: Injector | None = None

    def kill(self, fault: Fault) -> None:
        assert self.injector is not None
        self.injector.dead = True
        raise Killed

    def stall(self, fault: Fault) -> None:
        self.world.stall_past_the_lease(self.name)

    def fired(self, fault: Fault) -> bool:
        return self.world.record(fault)


@cache
def clients() -> Clients:
    """Configured like those of every process of the product."""
    return Clients(s3_client(REGION), dynamodb_client(REGION), FakeEventBridge())
