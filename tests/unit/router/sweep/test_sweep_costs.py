"""The sweep tells what the job runs of the day have cost; the alarm on the budget reads it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from lake.ledger import CostRow
from lake.manifest import Lane
from lake.time import iso_utc
from router.sweep.handler import sweep
from router.telemetry import Metric, metrics

if TYPE_CHECKING:
    from datetime import datetime

    from tests.unit.router.conftest import Deployment


def cost(deployment: Deployment, job_run: str, dollars: float, ended_at: datetime) -> None:
    ended = iso_utc(ended_at)
    deployment.ledger.costs.record(
        CostRow(job_run, Lane.BATCH, "glue", ended, ended, 60, 1, 0, 0, round(dollars * 1_000_000), ())
    )


def day_dollars(deployment: Deployment) -> float:
    metrics.clear_metrics()
    sweep(deployment.services)
    (value,) = metrics.metric_set[Metric.DAY_DOLLARS]["Value"]
    return float(value)


def test_the_metric_is_what_the_job_runs_of_this_day_have_cost(deployment: Deployment) -> None:
    assert day_dollars(deployment) == 0
    # Given job runs that ended today, in both lanes, and one that ended yesterday
    cost(deployment, "jr_1", 1.5, deployment.now)
    cost(deployment, "jr_2", 0.25, deployment.now)
    cost(deployment, "jr_0", 100, deployment.now - timedelta(days=1))
    # Then
    assert day_dollars(deployment) == 1.75
    # When the day is over, Then the next one begins with nothing
    deployment.wait(timedelta(days=1))
    assert day_dollars(deployment) == 0
