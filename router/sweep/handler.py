"""Lambda function ``sweep``: all repairs in turn, each for a bounded time."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from lake.errors import HybridRouterError
from router.services import Services, container_services
from router.sweep.leases import release_leases
from router.sweep.missed import adopt_missed
from router.sweep.objects import delete_objects
from router.sweep.pointers import renew_pointers
from router.sweep.progress import SweepProgress, read_progress, write_progress
from router.sweep.publishing import finish_publishing
from router.sweep.stalled import report_stalled
from router.sweep.uploads import abort_uploads
from router.telemetry import count, logger, metrics

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from aws_lambda_powertools.utilities.typing import LambdaContext

TIME_PER_REPAIR = timedelta(minutes=2)
"""No repair starts another request after it; the next sweep continues."""


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, int]:  # noqa: ARG001
    """``{}`` -> ``{"rolledForward": n, "vanished": n, "released": n, "repointed": n, "adopted": n, "aborted": n,
    "deleted": n, "foreign": n, "stalled": n}``."""
    return sweep(container_services())


def sweep(services: Services) -> dict[str, int]:
    """Try every repair; returns counts of what was repaired, by kind.

    Raises
    ------
    HybridRouterError, BotoCoreError, ClientError
        The first error of a repair, after all the others were tried; the log has their counts.
    """
    done: dict[str, int] = {}
    errors: list[Exception] = []

    def attempt(repair: Callable[[datetime], dict[str, int]]) -> None:
        try:
            counts = repair(services.clock() + TIME_PER_REPAIR)
        except (HybridRouterError, BotoCoreError, ClientError) as error:
            logger.exception("a repair failed: the next sweep tries it again")
            errors.append(error)
            return
        for name, number in counts.items():
            done[name] = done.get(name, 0) + number

    attempt(lambda stop_at: finish_publishing(services, stop_at))
    attempt(lambda stop_at: release_leases(services, stop_at))
    attempt(lambda stop_at: renew_pointers(services, stop_at))
    attempt(lambda stop_at: abort_uploads(services, stop_at))
    attempt(lambda stop_at: report_stalled(services, stop_at))
    attempt(lambda stop_at: _listings(services, stop_at))
    for name, number in done.items():
        count(f"Sweep{name[0].upper()}{name[1:]}", number)
    logger.info("swept", errors=len(errors), counts=done)
    if errors:
        raise errors[0]
    return done


def _listings(services: Services, stop_at: datetime) -> dict[str, int]:
    """The repairs that list whole buckets; their positions are kept between sweeps."""
    progress, resources = read_progress(services), services.resources
    lake_after, lake = delete_objects(services, resources.lake_bucket, progress.lake_after, stop_at)
    quarantine_after, quarantine = delete_objects(
        services, resources.quarantine_bucket, progress.quarantine_after, services.clock() + TIME_PER_REPAIR
    )
    input_search, adopted = adopt_missed(services, progress.search, services.clock() + TIME_PER_REPAIR)
    write_progress(services, SweepProgress(input_search, lake_after, quarantine_after))
    return {**{name: lake[name] + quarantine[name] for name in lake}, **adopted}
