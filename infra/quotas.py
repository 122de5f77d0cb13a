"""The account's quotas that a stage needs. Needs no CDK."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from lake.settings import Settings

MAX_ROUTE_CONCURRENCY = 10
"""Invocations of ``route`` at the same time: the event source's limit."""
OTHER_FUNCTIONS = 10
"""Number of the stage's functions other than ``route``, each with at least one invocation at the same time."""


@dataclass(frozen=True, slots=True)
class NeededQuota:
    """One quota of the account and region, as Service Quotas names it."""

    service: str
    code: str
    name: str
    needed: int
    reason: str
    """Where the number comes from."""
    without: str
    """The effect of a lower quota."""


def needed_quotas(settings: Settings) -> Iterator[NeededQuota]:
    """Return what this stage alone needs, when everything that its settings allow runs at the same time."""
    batch_runs = settings.max_batch_runs
    yield NeededQuota(
        "lambda",
        "L-B99A9384",
        "Concurrent executions",
        MAX_ROUTE_CONCURRENCY + OTHER_FUNCTIONS + settings.has_tables,
        f"{MAX_ROUTE_CONCURRENCY} of route, one of each other function",
        "Lambda throttles: an event that is refused 20 times goes to the dead letters; the sweep finds its file",
    )
    yield NeededQuota(
        "glue",
        "L-5E4153CA",
        "Max concurrent job runs per account",
        batch_runs + len(settings.glue_shards),
        "batch.max_runs within quota.*, a verification (verify.share above 0), and the streaming jobs on Glue",
        "runs wait for a retry, and a streaming job starts later",
    )
    yield NeededQuota(
        "glue",
        "L-08F3B322",
        "Max task DPUs per account",
        math.ceil(settings.stream_dpus + batch_runs * settings.run_dpus),
        "these runs x batch.workers and stream.max_workers, each with its worker_type",
        "runs wait for a retry or get fewer workers, and a streaming job starts later",
    )
    vcpus = settings.stream_vcpus + (settings.emr.max_vcpus if settings.batch.uses_emr else 0)
    if vcpus:
        yield NeededQuota(
            "emr-serverless",
            "L-D05C8A75",
            "Max concurrent vCPUs per account",
            vcpus,
            "emr.max_vcpus of the batch lane, and the driver and the executors of each streaming job",
            "runs wait for their workers, or fail and are retried",
        )
