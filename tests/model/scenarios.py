"""Scenarios of the model: the initial state, the actors, and the faults that can occur at each request."""

from __future__ import annotations

from dataclasses import dataclass

from lake.manifest import Lane
from tests.model.scheduler import CRASH, LOSE_REQUEST, LOSE_RESPONSE, REPEAT, STALE_READ, SWITCH, is_read

EVENTS_WITH_SWITCH = ("expire_lease", "report_stopped", "change_document")
"""Events that can also occur together with a switch to another actor."""


@dataclass(frozen=True)
class Scenario:
    """The initial state of a history, its actors, and the events that can occur."""

    name: str
    actors: tuple[str, ...]
    manifests: tuple[tuple[str, ...], ...] = ()
    """Files of each manifest that is QUEUED at the start."""
    arriving: tuple[str, ...] = ()
    """Files whose events the route actors receive."""
    lane: Lane = Lane.BATCH
    reprocessed: bool = False
    """The manifests are published at the start, and ``force`` has been called on them."""
    events: tuple[str, ...] = ("expire_lease", "report_stopped")
    poisonous: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    slow: bool = False
    urgent: tuple[str, ...] = ()
    """Files that the promote actors make urgent."""


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("workers", ("worker1", "worker2", "sweep1"), (("a", "b"),)),
        Scenario(
            "vanish",
            ("worker1", "worker2", "sweep1"),
            (("a", "b"),),
            events=("expire_lease", "lose_upload", "advance_hours"),
        ),
        Scenario(
            "tampered", ("worker1", "worker2", "sweep1"), (("a", "b"),), events=("expire_lease", "change_document")
        ),
        Scenario(
            "reprocess",
            ("worker1", "sweep1", "worker2", "sweep2"),
            (("a", "b"),),
            reprocessed=True,
            events=("expire_lease", "force", "advance_hours", "report_stopped"),
        ),
        Scenario(
            "ownership",
            ("route1", "route2", "sweep1", "worker1"),
            arriving=("a", "b"),
            events=("expire_lease", "advance_hours"),
        ),
        Scenario(
            "stream",
            ("route1", "stream1", "stream2", "sweep1"),
            arriving=("a", "b"),
            lane=Lane.STREAM,
            events=("expire_lease", "report_stopped", "lose_checkpoint", "advance_hours"),
        ),
        Scenario("plan", ("plan1", "worker1", "plan2", "sweep1"), (("a",), ("b",), ("c",))),
        Scenario(
            "promote",
            ("promote1", "worker1", "plan1", "stream1", "promote2", "sweep1"),
            (("a", "b"), ("c",)),
            events=("expire_lease", "report_stopped", "lose_checkpoint", "advance_hours"),
            urgent=("a", "c"),
        ),
        Scenario("poison", ("worker1", "worker2", "sweep1"), (("a", "b"),), poisonous=("orders/b.ndjson",)),
        Scenario("unreadable", ("worker1", "worker2", "sweep1"), (("a", "b"),), unreadable=("orders/b.ndjson",)),
        Scenario("slow", ("worker1", "sweep1", "worker2"), (("a", "b"),), slow=True, events=("report_stopped",)),
    )
}


def single_faults(scenario: Scenario, operation: str) -> list[str]:
    """Faults of a call and events of the environment, one of which can occur at a request."""
    faults = [CRASH, LOSE_REQUEST] if is_read(operation) else [CRASH, LOSE_RESPONSE, LOSE_REQUEST, REPEAT]
    faults += [STALE_READ] if operation == "query" else []
    return [*faults, *scenario.events]


def switches(scenario: Scenario, actor: str) -> list[str]:
    """Switches to another actor at a request, with and without an event."""
    events = [SWITCH, *(event for event in scenario.events if event in EVENTS_WITH_SWITCH)]
    return [f"{event}:{other}" for event in events for other in scenario.actors if other != actor]
