"""The ledger lists the manifests of an hour before they exist, and an hour is touched before one is queued again."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from lake.ledger import State
from router.requests.reprocess import reprocess
from router.route.handler import route
from tests.unit.lake.faults import Crash
from tests.unit.lake.world import PARTITION
from tests.unit.router.events import batch, message, s3_record
from tests.unit.router.hour_world import listed
from tests.unit.router.settling import done

if TYPE_CHECKING:
    from tests.unit.router.conftest import Deployment


def test_an_hour_with_a_new_manifest_is_unsettled(deployment: Deployment) -> None:
    route(batch(message("m1", s3_record("orders/a.json"), s3_record("orders/b.json"))), deployment.services)
    row = deployment.ledger.partitions.get(PARTITION)
    assert row.touched == 1
    assert [found.partition for found in deployment.ledger.partitions.unsettled()] == [PARTITION]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_an_hour_is_touched_before_a_manifest_of_it_is_queued_again(deployment: Deployment, number: int) -> None:
    # Given
    row = listed(deployment, "a.json")
    done(deployment, row, 10)
    deployment.faults.reset()
    touched = deployment.ledger.partitions.get(PARTITION).touched
    # When
    deployment.faults.crash_before = number
    with suppress(Crash):
        reprocess({"manifests": [row.id], "only": "all", "request": "again"}, deployment.services)
    deployment.faults.reset()
    # Then
    is_queued = deployment.row(row.id).state == State.QUEUED
    assert (is_queued, deployment.ledger.partitions.get(PARTITION).touched - touched) == [
        (False, 0),
        (False, 1),
        (True, 1),
    ][number - 1]


def test_a_dry_run_of_a_reprocess_touches_nothing(deployment: Deployment) -> None:
    row = listed(deployment, "a.json")
    done(deployment, row, 10)
    before = deployment.ledger.partitions.get(PARTITION)
    reprocess({"manifests": [row.id], "only": "all", "request": "again", "dryRun": True}, deployment.services)
    assert deployment.ledger.partitions.get(PARTITION) == before
