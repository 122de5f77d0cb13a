"""Lambda function ``tables``: brings published generations into the Iceberg tables."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from router.entry import with_product_errors, with_refusals
from router.services import Services, container_services
from router.tables.committer import commit_round
from router.tables.repair import rebuild_table, restore_table
from router.telemetry import Metric, count, logger, metrics

if TYPE_CHECKING:
    from collections.abc import Callable

    from aws_lambda_powertools.utilities.typing import LambdaContext

TIME_PER_CALL = timedelta(seconds=240)
"""No batch is begun after it. Shorter than the timeout of the function, 5 minutes."""
INVOCATION_SECONDS = 60
"""The shortest interval of a schedule."""


@with_product_errors
@with_refusals
@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001
    """``{}`` -> ``{"batches": n}``: all tables are brought up to date, several times a minute.

    ``{"restore": dataset}`` -> ``{"batch": n}``; ``{"rebuild": dataset}`` -> ``{"hours": n}``.
    """
    services = container_services()
    if "restore" in event:
        return restore_table(services, event["restore"])
    if "rebuild" in event:
        return rebuild_table(services, event["rebuild"])
    return commit_tables(services, time.sleep)


def commit_tables(services: Services, wait: Callable[[float], object]) -> dict[str, Any]:
    """Bring what is published into all tables, every ``tables.commit_seconds`` within a minute.

    ``wait`` pauses for a number of seconds. A table that cannot be brought up to date holds back no other.

    Raises
    ------
    Exception
        The first error of a table, after all the others were tried; the log names each table.
    """
    started, seconds = services.clock(), services.settings.tables.commit_seconds
    batches, looks = 0, max(1, INVOCATION_SECONDS // seconds)
    errors: list[Exception] = []
    for number in range(looks):
        if number:
            wait(seconds)
        done, errors = _commit_all(services, started + TIME_PER_CALL)
        batches += done
    count(Metric.TABLES_BEHIND_MINUTES, _minutes_behind(services))
    logger.info("tables", batches=batches, errors=len(errors))
    if errors:
        raise errors[0]
    return {"batches": batches}


def _commit_all(services: Services, stop_at: datetime) -> tuple[int, list[Exception]]:
    """Number of batches, and the error of each table that has met one."""
    batches = 0
    errors: list[Exception] = []
    for dataset in services.ledger.tables.waiting():
        try:
            while services.clock() < stop_at and commit_round(services, dataset) is not None:
                batches += 1
        except Exception as error:
            logger.exception("table not brought up to date: the next round tries it again", table=dataset)
            errors.append(error)
    return batches, errors


def _minutes_behind(services: Services) -> float:
    """Age of the oldest published generation that is not in its table."""
    ages = [0.0]
    for dataset in services.ledger.tables.waiting():
        oldest = next(services.ledger.tables.outbox(dataset), None)
        if oldest is not None:
            age = services.clock() - datetime.fromisoformat(oldest.listed_at)
            ages.append(age / timedelta(minutes=1))
    return max(ages)
