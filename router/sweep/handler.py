"""Lambda function ``sweep``: all repairs in turn, each for a bounded time."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

import boto3

from lake.bills import MICRO
from router.entry import with_product_errors
from router.selection import parse_flag
from router.services import CLIENT_CONFIG, Services, container_services
from router.sweep.failed_items import error_of_sweep
from router.sweep.hours import announce_hours
from router.sweep.intents import resume_intents
from router.sweep.late_bills import record_late_bills
from router.sweep.leases import release_leases
from router.sweep.missed import adopt_missed
from router.sweep.objects import delete_objects
from router.sweep.pointers import renew_pointers
from router.sweep.publishing import finish_publishing
from router.sweep.repair import MAX_ITEMS, Repair
from router.sweep.self_test import REQUEST as SELF_TEST_REQUEST
from router.sweep.self_test import container_channel, is_self_test_lost, send_self_test
from router.sweep.stalled import report_stalled
from router.sweep.stream_health import measure_stream
from router.sweep.uploads import abort_uploads
from router.telemetry import Metric, count, logger, metrics

if TYPE_CHECKING:
    from collections.abc import Callable

    from aws_lambda_powertools.utilities.typing import LambdaContext

    from router.services import EventBridgeClient
    from router.sweep.failed_items import FailedItem
    from router.sweep.self_test import SelfTestChannel

TIME_PER_REPAIR = timedelta(seconds=60)
"""A repair begins no further item after it; the next sweep continues."""
TIME_PER_SWEEP = timedelta(minutes=10)
"""No item of any repair is begun after it: what is under way then has the rest of the function's timeout (15 minutes).

The sum of ``TIME_PER_REPAIR`` of all repairs, so that none of them starves.
"""
COUNTS = (
    "rolledForward",
    "vanished",
    "released",
    "repointed",
    "resumed",
    "adopted",
    "aborted",
    "deleted",
    "foreign",
    "stalled",
    "completed",
    "reopened",
    "aboveShare",
)


@with_product_errors
@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001
    """``{"dryRun"?}`` -> a count for each of ``COUNTS``; a dry run adds ``"items"``, the first to be repaired.

    ``{"selfTest": true}`` sends the self-test of the alarms and repairs nothing -> ``{"message"}``.
    """
    services, channel = replace(container_services(), events=_event_bridge()), container_channel()
    if parse_flag(event or {}, SELF_TEST_REQUEST):
        return dict(send_self_test(services, channel))
    return sweep(services, channel, dry_run=parse_flag(event or {}, "dryRun"))


@cache
def _event_bridge() -> EventBridgeClient:
    """Its client, which no other function needs."""
    client: EventBridgeClient = boto3.client("events", config=CLIENT_CONFIG)
    return client


def sweep(services: Services, channel: SelfTestChannel | None = None, *, dry_run: bool = False) -> dict[str, Any]:
    """Try every repair; returns counts of what was repaired, by kind.

    ``channel`` is where the last self-test has to be found; None: the stage sends none.

    A dry run counts what the next sweep would repair, and names the first items. It changes nothing, records no metric
    and keeps no position.

    Raises
    ------
    Exception
        What items or repairs have failed at (``error_of_sweep``), after all the others were tried; the log has the
        counts.
    """
    done = dict.fromkeys(COUNTS, 0)
    failed: list[list[FailedItem]] = []
    items: list[str] = []
    end = services.clock() + TIME_PER_SWEEP

    def attempt(name: str, work: Callable[[Repair], object]) -> None:
        repair = Repair(services, min(services.clock() + TIME_PER_REPAIR, end), dry_run=dry_run)
        with repair.isolated(name):
            work(repair)
        failed.append(repair.failed)
        items.extend(repair.items)
        for kind, number in repair.counts.items():
            done[kind] += number

    lake, quarantine = services.resources.output_buckets
    attempt("publishing", finish_publishing)
    attempt("leases", release_leases)
    attempt("pointers", renew_pointers)
    attempt("intents", resume_intents)
    attempt("missed", adopt_missed)
    attempt("uploads", abort_uploads)
    attempt("stalled", report_stalled)
    attempt("hours", announce_hours)
    attempt("lake", lambda repair: delete_objects(repair, lake, "lake"))
    if not dry_run:
        attempt("stream", lambda _: _count_stream_health(services))
        attempt("bills", record_late_bills)
        attempt("costs", lambda _: count(Metric.DAY_DOLLARS, _day_dollars(services)))
    if channel is not None and not dry_run:
        attempt("self-test", lambda repair: count(Metric.SELF_TEST_LOST, is_self_test_lost(repair, channel)))
    attempt("quarantine", lambda repair: delete_objects(repair, quarantine, "quarantine"))
    if not dry_run:
        count(Metric.SWEEP_VANISHED, done["vanished"])
        count(Metric.SWEEP_STALLED, done["stalled"])
        count(Metric.HOURS_ABOVE_QUARANTINED_SHARE, done["aboveShare"])
    logger.info("swept", errors=sum(map(len, failed)), counts=done, dry_run=dry_run)
    if any(failed):
        raise error_of_sweep(failed)
    return {**done, "items": items[:MAX_ITEMS]} if dry_run else done


def _count_stream_health(services: Services) -> None:
    for shard, health in measure_stream(services).items():
        count(Metric.STREAM_OLDEST_MINUTES, health.oldest_minutes, shard)
        count(Metric.STREAM_SILENT, health.silent, shard)


def _day_dollars(services: Services) -> float:
    """What the job runs that have ended today (UTC) have cost: both lanes write it as each of theirs ends."""
    return services.ledger.costs.day_sum(services.clock().date()) / MICRO
