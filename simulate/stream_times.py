"""Times of the simulated stream lane besides those of its files: the defaults are those of AWS.

Measured means: ``python -m tests.predict stream --network`` on 2 busy cores, where the local cloud takes 25 ms more for
each read and 40 ms more for each write.
"""

from __future__ import annotations

from dataclasses import dataclass

ROUTE_SECONDS = 2.0
"""From the end of a window until its manifests are QUEUED and their pointers are in the inbox. Measured: 0.9; the rest,
until S3 has delivered the last event and the function is invoked, is assumed."""

PORTION_SECONDS = 4.0
"""From a trigger until a manifest is published, besides its tasks: Spark lists and reads the pointers; claims, plan,
commit, publish. Measured: 4 to 8, and 2 to 3 without the added time."""

URGENT_PORTION_SECONDS = 1.5
"""The same from a look for urgent pointers. Measured: up to 1.3."""

TASK_SECONDS = 0.25
"""Of a task besides its bytes: its requests, and its start in Spark. Measured: 0.2 to 0.3, and 0.1 without the added
time."""


@dataclass(frozen=True, slots=True)
class StreamMachine:
    """What a streaming job runs on outside AWS, such as the local cloud: nothing is scaled."""

    cores: int
    """Cores that convert."""
    workers: int
    """Workers that are billed."""


@dataclass(frozen=True, slots=True)
class StreamTimes:
    """Times of the stream lane, in seconds."""

    route: float = ROUTE_SECONDS
    portion: float = PORTION_SECONDS
    """Of the manifests that a micro-batch converts side by side ..."""
    urgent_portion: float = URGENT_PORTION_SECONDS
    """... and of urgent ones, for which Spark lists and reads nothing."""
    task: float = TASK_SECONDS
    """Of a task besides its bytes."""
    start: float | None = None
    """From the start of a run until it begins its first micro-batch; None: that of the engine."""
    machine: StreamMachine | None = None
    """None: the engine of the settings, with auto scaling."""


AWS_STREAM = StreamTimes()
