"""Which alarm explains which other one, so that one cause is one message."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from aws_cdk import Duration

if TYPE_CHECKING:
    from collections.abc import Container

WAIT_PERIOD = Duration.minutes(2)
"""How long a consequence waits for its cause before its message is sent: the metrics of both come within a minute of
each other, and each alarm is evaluated once a minute. Much shorter than the shortest time for which an alarm stays
raised (``METRIC_PERIOD``), or what passes by itself would never be sent."""
REMAINING_PERIOD = Duration.minutes(10)
"""How long a consequence may stay raised after its cause has ended and its metric has forgotten it."""


SAME = "-*"
"""Stands for the instance of the consequence: the same function, shard or delivery stream."""
CAUSES = MappingProxyType(
    {
        # What a function fails at besides, its next invocation tells.
        "Errors": f"LedgerRefuses{SAME}",
        # Without the ledger no arrival gets an owner.
        "LateArrivals": "LedgerRefuses-route",
        # Without a job nothing of the shard is converted, and its backlog only grows.
        "StreamOldest": f"StreamSilent{SAME}",
        "StreamSpilling": f"StreamSilent{SAME}",
        # Who reads nothing falls behind.
        "RecordsBehind": f"RecordsUnread{SAME}",
    }
)
"""Consequence, by the heading of its entry in the runbook -> the alarm that explains it completely: whoever removes the
cause has nothing else to do. An alarm that can have another reason at the same time, or that asks for a step of its own
(a failed execution, dead letters), is not here. Reasons and what was left out: docs/adr/0014."""


def cause_of(name: str, alarms: Container[str]) -> str | None:
    """The alarm of ``alarms`` that explains the alarm ``name``; None: none does."""
    entry, hyphen, instance = name.partition("-")
    cause = CAUSES.get(entry)
    if cause is None:
        return None
    found = cause.replace(SAME, hyphen + instance)
    return found if found in alarms else None


def extension_period(period: Duration) -> Duration:
    """How long a consequence stays silent after its cause has ended; ``period`` is that of its metric.

    For one period the metric still holds what the cause has left.
    """
    return period.plus(REMAINING_PERIOD)
