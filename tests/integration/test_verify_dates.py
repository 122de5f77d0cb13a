"""The scheduled verification: an hour that differs raises an alarm, a proven one does not."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from batch_job.main import run
from lake.errors import InvalidInputError
from lake.layout import VERIFICATIONS, verification_key
from tests.integration.conversion_world import NOON
from tests.integration.verified_hour import VerifiedHour, change_row
from tests.modified_at import ModifiedAt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.integration.conversion_world import ConversionWorld
    from transform.task_model import ConversionContext

DATE = "2026-03-04"


@pytest.fixture
def lake(world: ConversionWorld, spark: SparkSession) -> VerifiedHour:
    """Files of noon, converted; the run begins as soon as their date is due."""
    world.configure("verify", share=1.0)
    lake = VerifiedHour(world, spark)
    world.log_lines.clear()
    world.clock.advance(hours=12 + 36)
    return lake


def context_of(lake: VerifiedHour, spark: SparkSession) -> ConversionContext:
    s3: Any = ModifiedAt(lake.world.services.s3, NOON)
    context = lake.world.context(spark, "run-verify")
    return replace(context, services=replace(lake.world.services, s3=s3))


def document_of(lake: VerifiedHour, key: str) -> dict[str, Any]:
    services = lake.world.services
    body = services.s3.get_object(Bucket=services.resources.control_bucket, Key=key)["Body"].read()
    return dict(json.loads(body))


def alarms(lake: VerifiedHour) -> list[str]:
    return [line for line in lake.world.log_lines if line.startswith("ALARM ")]


def test_a_proven_hour_is_logged_without_an_alarm_and_each_date_is_compared_once(
    lake: VerifiedHour, spark: SparkSession
) -> None:
    assert run(context_of(lake, spark), {"verify": "due"}) == 0
    assert alarms(lake) == []
    assert "verify orders 2026-03-04T12  proven: 5 files, 52 rows, 1,205 rejected lines" in "".join(
        lake.world.log_lines
    )
    (hour,) = document_of(lake, verification_key(DATE, early=False))["datasets"]["orders"]
    assert (hour["hour"], hour["outcome"], hour["compared"]) == (f"{DATE}T12", "proven", 1)
    # Then the next run finds nothing that is due
    lake.world.log_lines.clear()
    assert run(context_of(lake, spark), {"verify": "due"}) == 0
    assert lake.world.log_lines == ["verify: 0 dates compared: none is due"]


def test_a_planted_difference_raises_an_alarm_and_fails_the_run(lake: VerifiedHour, spark: SparkSession) -> None:
    lake.change(lake.lake_bucket, change_row)
    assert run(context_of(lake, spark), {"verify": "due"}) == 1
    (alarm,) = alarms(lake)
    assert "orders 2026-03-04T12  differs" in alarm
    assert "its rows differ: 52 in the input files, 52 in the lake" in alarm
    assert "hybrid-router verify --dataset orders --from 2026-03-04T12 --to 2026-03-04T12" in alarm
    (hour,) = document_of(lake, verification_key(DATE, early=False))["datasets"]["orders"]
    assert hour["outcome"] == "differs"


def test_a_date_that_is_not_due_is_compared_for_a_person_and_again_when_it_is(
    lake: VerifiedHour, spark: SparkSession
) -> None:
    # Given a date that ended less than 36 hours ago
    lake.world.clock.advance(minutes=-1)
    assert run(context_of(lake, spark), {"verify": DATE}) == 0
    # When it is due
    lake.world.clock.advance(minutes=1)
    assert run(context_of(lake, spark), {"verify": "due"}) == 0
    # Then it has two documents
    keys = [key for key in lake.world.keys(lake.world.services.resources.control_bucket) if key.startswith("verify/")]
    assert {verification_key(DATE, early=True), verification_key(DATE, early=False)} <= set(keys)
    assert all(key.startswith(VERIFICATIONS) for key in keys)


def test_what_was_not_compared_in_time_raises_an_alarm(lake: VerifiedHour, spark: SparkSession) -> None:
    # Given a run whose time is over as soon as it looks at the clock again
    context = context_of(lake, spark)
    late = replace(context, clock=lambda: lake.world.clock.advance(minutes=479) or lake.world.clock())  # type: ignore[func-returns-value]
    assert run(late, {"verify": DATE}) == 1
    (alarm,) = alarms(lake)
    assert "1 manifest was not compared, because the run's time was over" in alarm


@pytest.mark.parametrize("which", ["yesterday", "", "2026-02-30", "2026-3-4"])
def test_a_wrong_date_is_refused_with_what_to_set(lake: VerifiedHour, spark: SparkSession, which: str) -> None:
    with pytest.raises(InvalidInputError, match="set it to due, or to a date"):
        run(context_of(lake, spark), {"verify": which})
