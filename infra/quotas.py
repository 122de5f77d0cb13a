"""What a stage needs of the account's quotas. Needs no CDK."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from lake.settings import Settings

MAX_ROUTE_CONCURRENCY = 10
"""Invocations of ``route`` at the same time: the event source's limit."""
OTHER_FUNCTIONS = 10
"""The stage's functions apart from ``route``, each with at least one invocation at the same time."""


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
    """What happens with less."""


def needed_quotas(settings: Settings) -> tuple[NeededQuota, ...]:
    """What this stage alone needs, when everything that its settings allow runs at the same time."""
    batch_runs = settings.max_batch_runs
    streams, workers = _streams(settings)
    later = ", and the streaming job starts later" if settings.stream_glue_runs else ""
    dpus = settings.stream_dpus + batch_runs * settings.run_dpus
    return (
        NeededQuota(
            "lambda",
            "L-B99A9384",
            "Concurrent executions",
            MAX_ROUTE_CONCURRENCY + OTHER_FUNCTIONS + settings.has_tables,
            f"{MAX_ROUTE_CONCURRENCY} of route, one of each other function",
            "Lambda throttles: an event that is refused 20 times goes to the dead letters; the sweep finds its file",
        ),
        NeededQuota(
            "glue",
            "L-5E4153CA",
            "Max concurrent job runs per account",
            batch_runs + settings.stream_glue_runs,
            f"batch.max_runs within quota.*, a verification (verify.share above 0){streams}",
            f"runs wait for a retry{later}",
        ),
        NeededQuota(
            "glue",
            "L-08F3B322",
            "Max task DPUs per account",
            math.ceil(dpus),
            f"these runs x batch.workers{workers}, each with its worker_type",
            f"runs wait for a retry or get fewer workers{later}",
        ),
        *_emr(settings),
    )


def _streams(settings: Settings) -> tuple[str, str]:
    """What the streaming jobs add to the runs, and to their workers; for people."""
    if not settings.stream_glue_runs:
        return "", ""
    jobs = "the streaming job" if settings.stream.jobs == 1 else f"the {settings.stream.jobs} streaming jobs"
    return f", and {jobs}", " and stream.max_workers"


def _emr(settings: Settings) -> Iterator[NeededQuota]:
    parts = []
    if settings.batch.uses_emr:
        parts.append("emr.max_vcpus, where batch.engines has emr-serverless")
    if settings.stream_vcpus:
        parts.append("the driver and the executors of stream.max_workers for each streaming job")
    if parts:
        yield NeededQuota(
            "emr-serverless",
            "L-D05C8A75",
            "Max concurrent vCPUs per account",
            settings.stream_vcpus + (settings.emr.max_vcpus if settings.batch.uses_emr else 0),
            ", and ".join(parts),
            "runs wait for their workers, or fail and are tried again",
        )
