"""Processes of a history that can be killed or put to sleep, and the clients they share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import boto3

from tests.chaos.injection import Fault, Injector, Killed
from transform.clients import JOB_CLIENT_CONFIG, s3_client

if TYPE_CHECKING:
    from tests.chaos.world import World


@dataclass(frozen=True, slots=True)
class Clients:
    """Made once per process: they know no deployment."""

    s3: Any
    dynamodb: Any


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
        self.world.sleep_past_the_lease(self.name)

    def fired(self, fault: Fault) -> bool:
        return self.world.record(fault)


@cache
def clients() -> Clients:
    """From the environment, as every process of the product does."""
    return Clients(s3_client(), boto3.Session().resource("dynamodb", config=JOB_CLIENT_CONFIG).meta.client)
