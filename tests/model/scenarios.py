"""Scenarios of the model: the initial state, the actors, and the faults that can occur at each request."""

from dataclasses import dataclass

from lake.manifest import Lane
from tests.model.scheduler import (
    CRASH,
    LATE,
    LOSE_REQUEST,
    LOSE_RESPONSE,
    REFUSE,
    REPEAT,
    REPEAT_LATE,
    STALE_READ,
    SWITCH,
    is_read,
)

EVENTS_WITH_SWITCH = ("expire_lease", "report_stopped", "change_document")
"""Events that can also occur together with a switch to another actor."""


@dataclass(frozen=True)
class Scenario:
    """The initial state of a history, its actors, and the events that can occur."""

    name: str
    actors: tuple[str, ...]
    manifests: tuple[tuple[str, ...], ...] = ()
    """Files of each manifest that is QUEUED at the start."""
    collected: tuple[str, ...] = ()
    """Files that each are a part of one collection at the start."""
    late: tuple[str, ...] = ()
    """Files of a complete hour, whose events come while a sweep may notify its readers; no process stalls for long."""
    closed_early: bool = False
    """The collection of that hour was divided before the hour was over, as by a plan."""
    damaged: tuple[str, ...] = ()
    """Files whose part has a damaged document, which a person restores in the end."""
    arriving: tuple[str, ...] = ()
    """Files whose events the route actors receive, or the queue delivers."""
    lost: tuple[str, ...] = ()
    """Files whose events were lost: only a listing finds them."""
    orphaned: tuple[str, ...] = ()
    """Files whose owner died long ago, before it wrote its manifest; their events are redelivered."""
    old: tuple[str, ...] = ()
    """Files older than the listing of the sweep, without events: only a backfill finds them."""
    missing: tuple[str, ...] = ()
    """Files that are deleted when the actors start."""
    lane: Lane = Lane.BATCH
    reprocessed: bool = False
    """The manifests are published at the start, and ``force`` has been called on them."""
    forgotten: bool = False
    """The manifests are published at the start, and the rows of their arrivals have expired where rows do."""
    expired: tuple[str, ...] = ()
    """Files that are deleted once the hour is complete; ``missing`` files are back then, and all are reprocessed."""
    events: tuple[str, ...] = ("expire_lease", "report_stopped")
    poisonous: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    slow: bool = False
    urgent: tuple[str, ...] = ()
    """Files that the promote actors make urgent."""
    versions: bool = False
    """Whether the input bucket has versions."""


_WORKERS = ("worker1", "worker2", "sweep1")
SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("workers", _WORKERS, (("a", "b"),)),
        Scenario("vanish", _WORKERS, (("a", "b"),), events=("expire_lease", "lose_upload", "advance_hours")),
        Scenario("tampered", _WORKERS, (("a", "b"),), events=("expire_lease", "change_document")),
        Scenario(
            "reprocess",
            ("worker1", "sweep1", "worker2", "sweep2"),
            (("a", "b"),),
            reprocessed=True,
            events=("expire_lease", "force", "advance_hours", "report_stopped"),
        ),
        Scenario(
            "requests",
            ("worker1", "reprocess1", "worker2", "reprocess2", "sweep1"),
            (("a",), ("b",)),
            events=("expire_lease", "lose_upload", "advance_hours"),
        ),
        Scenario(
            "ownership",
            ("route1", "route2", "sweep1", "worker1"),
            arriving=("a", "b"),
            events=("expire_lease", "advance_hours"),
        ),
        Scenario(
            "collections",
            ("route1", "plan1", "route2", "sweep1", "worker1"),
            collected=("c",),
            arriving=("a", "b"),
            events=("advance_hours",),
        ),
        Scenario("dividers", ("plan1", "worker1", "plan2", "sweep1"), collected=("a", "b"), events=("advance_hours",)),
        Scenario("late part", ("look1", "route1"), late=("b",), events=()),
        Scenario("late part of a divided hour", ("look1", "route1"), late=("b",), closed_early=True, events=()),
        Scenario("damaged part", ("plan1", "sweep1", "worker1"), collected=("a", "b"), damaged=("a",)),
        Scenario("orphans", ("route1", "route2", "sweep1", "worker1"), orphaned=("a", "b"), events=("advance_hours",)),
        Scenario(
            "arrivals",
            ("queue1", "sweep1", "queue2", "worker1"),
            arriving=("a", "notes.txt", "urgent"),
            lost=("b", "c"),
            events=("expire_lease", "advance_hours"),
        ),
        Scenario(
            "backfill",
            ("backfill1", "queue1", "backfill2", "worker1"),
            arriving=("a",),
            lost=("b", "notes.txt"),
            versions=True,
            events=("advance_hours", "overwrite_input", "delete_input"),
        ),
        # Only the intent that the crashed backfill left names these files.
        Scenario("intents", ("backfill1", "sweep1", "worker1"), old=("a", "b"), events=("advance_hours",)),
        Scenario(
            "new rule",
            ("queue1", "sweep1", "backfill1", "worker1"),
            arriving=("a", "notes.txt"),
            events=("add_rule", "advance_hours"),
        ),
        Scenario(
            "put again",
            ("worker1", "queue1", "worker2", "sweep1"),
            (("a", "b"),),
            missing=("b",),
            events=("put_again", "force", "expire_lease"),
        ),
        *(
            Scenario(
                name,
                ("queue1", "force1", "worker1", "sweep1", "worker2"),
                (("a", "b"),),
                missing=("b",),
                forgotten=True,
                events=("expire_lease",),
                versions=versions,
            )
            for name, versions in (("forgotten", False), ("forgotten versions", True))
        ),
        Scenario(
            "stream",
            ("route1", "stream1", "stream2", "sweep1"),
            arriving=("a", "b"),
            lane=Lane.STREAM,
            events=("expire_lease", "report_stopped", "advance_hours"),
        ),
        Scenario("plan", ("plan1", "worker1", "plan2", "sweep1"), (("a",), ("b",), ("c",))),
        Scenario("overnight", ("overnight1", "overnight2", "sweep1"), (("a",), ("b", "c"))),
        Scenario(
            "promote",
            ("promote1", "worker1", "promote_all1", "plan1", "stream1", "sweep1"),
            (("a", "b"), ("c",)),
            collected=("d",),
            events=("expire_lease", "report_stopped", "advance_hours"),
            urgent=("a", "c"),
        ),
        Scenario("poison", _WORKERS, (("a", "b"),), poisonous=("orders/b.ndjson",)),
        Scenario("unreadable", _WORKERS, (("a", "b"),), unreadable=("orders/b.ndjson",)),
        Scenario(
            "inputs", _WORKERS, (("a", "b"),), events=("expire_lease", "overwrite_input", "delete_input", "force")
        ),
        Scenario(
            "expired",
            ("worker1", "sweep1", "worker2", "sweep2"),
            (("a", "b", "c"),),
            missing=("b",),
            expired=("c",),
            events=("expire_lease", "advance_hours", "report_stopped", "lose_upload"),
        ),
        # None of it can be converted again.
        Scenario(
            "all expired",
            ("worker1", "sweep1", "worker2"),
            (("a", "b"),),
            expired=("a", "b"),
            events=("expire_lease", "advance_hours"),
        ),
        Scenario("slow", ("worker1", "sweep1", "worker2"), (("a", "b"),), slow=True, events=("report_stopped",)),
    )
}


def single_faults(scenario: Scenario, operation: str) -> list[str]:
    """Faults of a call and events of the environment, one of which can occur at a request."""
    faults = [CRASH, LOSE_REQUEST, REFUSE]
    faults += [] if is_read(operation) else [LOSE_RESPONSE, REPEAT, LATE, REPEAT_LATE]
    faults += [STALE_READ] if operation == "query" else []
    return [*faults, *scenario.events]


def switches(scenario: Scenario, actor: str) -> list[str]:
    """Switches to another actor at a request, with and without an event."""
    events = [SWITCH, *(event for event in scenario.events if event in EVENTS_WITH_SWITCH)]
    return [f"{event}:{other}" for event in events for other in scenario.actors if other != actor]
