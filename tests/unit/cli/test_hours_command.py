"""`hybrid-router hours`: open, failed and complete hours, with the counts from the rows of their manifests."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from cli.deployed_stack import DeployedStack
from cli.inspect.hours import hours_command
from lake.errors import InvalidInputError
from router.sweep.handler import sweep
from tests.load.request_counts import counted_requests
from tests.unit.cli.conftest import Answered, Printed
from tests.unit.cli.stack_world import FakeLambda, stack_with
from tests.unit.lake.world import PARTITION
from tests.unit.router.conftest import Deployment
from tests.unit.router.planning import collected
from tests.unit.router.settling import done
from tests.unit.router.sweep.sweeping import listed, with_events

Hours = Callable[..., list[Any]]


@pytest.fixture
def stack(deployment: Deployment) -> DeployedStack:
    return replace(stack_with(FakeLambda({})), s3=deployment.raw_s3, ledger=deployment.ledger)


@pytest.fixture
def hours(stack: DeployedStack, answered: Answered) -> Hours:
    """The hours of orders in this range, as the command shows them with this exit code."""
    command = partial(answered, hours_command, stack, "orders", schema="hours")
    return lambda first, last, code: command(first, last, code=code)["hours"]


def test_counts_of_complete_open_and_failed_hours(deployment: Deployment, hours: Hours) -> None:
    # Given a published hour, a failed one, a waiting one, and the same hour of another dataset
    partitions = [replace(PARTITION, hour=hour) for hour in (7, 8, 9)]
    published, failed, _ = (listed(deployment, f"{number}.json", partition=at) for number, at in enumerate(partitions))
    listed(deployment, "clicks.json", partition=replace(PARTITION, dataset="clicks", hour=7))
    done(deployment, published, 10, 2)
    deployment.ledger.manifests.fail(failed, "it is broken", deployment.now)
    # When
    found = hours("2026-11-20T06", "2026-11-20T09", code=1)
    # Then
    assert [(hour["hour"][-2:], hour["state"], hour["files"]) for hour in found] == [
        ("06", "complete", 0),
        ("07", "complete", 1),
        ("08", "open", 1),
        ("09", "open", 1),
    ]
    assert found[1] == {
        "hour": "2026-11-20T07",
        "state": "complete",
        "files": 1,
        "bytes": 100,
        "rows": 10,
        "quarantinedLines": 2,
        "unreadableFiles": 0,
        "manifests": {"done": 1, "failed": 0, "open": 0, "notInTable": 0},
        "publishedAt": "2026-11-20T09:30:00.000+00:00",
        "revision": 0,
        "marker": None,
        "snapshot": None,
    }
    assert found[2]["manifests"]["failed"] == 1
    hours("2026-11-20T06", "2026-11-20T07", code=0)


def test_an_hour_whose_files_wait_in_a_collection_is_open(deployment: Deployment, hours: Hours) -> None:
    # Given an hour that has ended, and that no sweep has divided yet
    collected(deployment, "a.json")
    # When
    (hour,) = hours("2026-11-20T09", "2026-11-20T09", code=1)
    # Then
    assert (hour["state"], hour["manifests"]["open"]) == ("open", 1)
    # And hours without any file take no additional requests
    with counted_requests() as requests:
        hours("2026-11-19T00", "2026-11-19T23", code=0)
    assert requests["Query"] == 2


def test_more_hours_than_a_command_shows_are_refused(stack: DeployedStack) -> None:
    with pytest.raises(InvalidInputError):
        hours_command(stack, "orders", "2020-01-01", "2026-01-01")


def test_an_announced_hour_is_read_from_its_row_alone(
    deployment: Deployment, stack: DeployedStack, hours: Hours, printed: Printed
) -> None:
    # Given an hour that a sweep has announced, and a late file in another hour
    with_events(deployment)
    done(deployment, listed(deployment, "a.json"), 10)
    done(deployment, listed(deployment, "b.json", partition=replace(PARTITION, hour=8)), 5)
    deployment.wait(timedelta(hours=1))
    sweep(deployment.services)
    late = listed(deployment, "late.json", partition=replace(PARTITION, hour=8))
    deployment.ledger.manifests.fail(late, "it is broken", deployment.now)
    sweep(deployment.services)
    # When
    with counted_requests() as requests:
        (hour,) = hours("2026-11-20T09", "2026-11-20T09", code=0)
    # Then
    assert (hour["state"], hour["rows"], hour["revision"]) == ("complete", 10, 1)
    assert hour["marker"] == "s3://lake/orders/date=2026-11-20/hour=09/_complete.json"
    # One query reads the rows of all hours, another one the undivided collections
    assert (requests["Query"], requests["BatchGetItem"], requests["ListObjectsV2"]) == (2, 0, 0)
    # When, Then: the other one counts the manifests that it waits for
    (hour,) = hours("2026-11-20T08", "2026-11-20T08", code=1)
    assert (hour["state"], hour["manifests"]["failed"], hour["marker"]) == ("reopened", 1, None)
    text = printed(hours_command, stack, "orders", "2026-11-20T08", "2026-11-20T08")
    assert "2026-11-20T08\treopened\t2\t200 B\t5" in text
    assert "2026-11-20T08 waits for 1 FAILED manifest: 'hybrid-router failures --dataset orders" in text
