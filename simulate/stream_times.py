"""Times of the simulated stream lane besides those of its files: the defaults are those of AWS."""

from __future__ import annotations

from dataclasses import dataclass

from router.estimate.offer import GLUE_START_SECONDS

ROUTE_SECONDS = 3.0
"""Assumed: from the end of a window until its manifests are QUEUED and their pointers are in the inbox."""
PORTION_SECONDS = 4.0
"""Assumed: claims, plan, commit and publish around the tasks of the manifests that are converted side by side."""


@dataclass(frozen=True, slots=True)
class StreamMachine:
    """What a streaming job runs on where it is not Glue, such as the local cloud: nothing is scaled."""

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
    urgent_portion: float = PORTION_SECONDS
    """... and of urgent ones, for which Spark lists and reads nothing."""
    start: float = GLUE_START_SECONDS
    """From the start of a run until it begins its first micro-batch."""
    machine: StreamMachine | None = None
    """None: Glue, with auto scaling."""


AWS_STREAM = StreamTimes()
