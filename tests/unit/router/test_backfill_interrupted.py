"""A backfill that dies between two writes loses nothing: the same backfill takes its files, or a sweep does."""

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest

from lake.ledger import State
from lake.manifest import Lane
from lake.manifest_document import read_manifest
from router.ownership import OWNER_GRACE
from router.requests.backfill import backfill
from router.sweep.handler import sweep
from tests.unit.lake.faults import Crash
from tests.unit.router.conftest import Deployment, new_deployment

FIND = {"action": "find", "request": {"dataset": "orders", "from": "2000-01-01", "to": "2100-01-01"}, "token": None}
KEYS = ("orders/a.json", "orders/b.json", "orders/c.json")
MIN_WRITES, MAX_WRITES = 14, 15
"""Its manifests are enqueued side by side: two that read the dataset's row at the same time both write it."""
A_YEAR = timedelta(days=365)
"""Far beyond the hours that the sweep lists."""


def old_files(deployment: Deployment) -> None:
    """Files without an event, last modified a year ago by the deployment's clock."""
    deployment.configure(batch={"manifest_files": 2})
    for key in KEYS:
        deployment.raw_s3.put_object(Bucket="input", Key=key, Body=b"{}\n")
    modified: datetime = deployment.raw_s3.head_object(Bucket="input", Key=KEYS[0])["LastModified"]
    deployment.now = modified + A_YEAR


def interrupted_backfill(deployment: Deployment, number: int) -> bool:
    """A backfill that dies before its n-th write; whether it had as many."""
    deployment.faults.crash_before = number
    try:
        backfill(FIND, deployment.services)
    except Crash:
        return True
    finally:
        deployment.faults.reset()
    return False


def queued_files(deployment: Deployment) -> Counter[str]:
    rows = deployment.ledger.manifests.open(Lane.BATCH, State.QUEUED)
    manifests = [read_manifest(deployment.raw_s3, "control", row, ("input",)) for row in rows]
    return Counter(file.key for manifest in manifests for file in manifest.files)


@pytest.mark.repeats_lines
@pytest.mark.parametrize("number", range(1, MAX_WRITES + 2))
def test_a_backfill_that_is_repeated_takes_what_an_interrupted_one_has_left(number: int) -> None:
    with new_deployment() as deployment:
        # Given a backfill that died before one of its writes
        old_files(deployment)
        interrupted_backfill(deployment, number)

        # When it is repeated at once, and waits as long as it is told to
        result: dict[str, Any] = backfill(FIND, deployment.services)
        for _ in range(5):
            if result["token"] is None:
                break
            deployment.wait(timedelta(seconds=result["waitSeconds"]))
            result = backfill({**FIND, "token": result["token"]}, deployment.services)

        # Then it ends when every file is in one manifest, and says so
        assert queued_files(deployment) == Counter(KEYS)
        assert (result["token"], result["found"], result["unsettled"]) == (None, len(KEYS), 0)
        assert result["known"] + result["recorded"] == len(KEYS)


@pytest.mark.repeats_lines
@pytest.mark.parametrize("number", range(2, MAX_WRITES + 2))
def test_a_sweep_takes_what_an_interrupted_backfill_has_left_whatever_its_age(number: int) -> None:
    with new_deployment() as deployment:
        # Given a backfill of old files that died after it had written something
        old_files(deployment)
        was_interrupted = interrupted_backfill(deployment, number)

        # When it is not repeated, and the sweep comes after its usual interval
        for _ in range(2):
            deployment.wait(OWNER_GRACE + timedelta(minutes=10))
            sweep(deployment.services)

        # Then every file is in one manifest, and nothing is left to resume
        assert queued_files(deployment) == Counter(KEYS)
        assert deployment.keys("control", "intents/") == []
        assert was_interrupted or number > MIN_WRITES
        assert not was_interrupted or number <= MAX_WRITES
