"""An intent is read as it was written; what this version cannot read is refused, and stays. It precedes all rows."""

import json

import pytest

from lake.errors import InvalidDocumentError, NewerDocumentError
from lake.manifest import Identity, Lane
from router.ownership import ArrivalOutcome, RoutedArrival, take_ownership
from router.ownership.resolve import read_intent, write_intent
from tests.unit.lake.world import PARTITION, file_of
from tests.unit.router.conftest import Deployment

ARRIVALS = [
    RoutedArrival(file_of("orders/a.json"), PARTITION, Lane.BATCH, "waits for the overnight run"),
    RoutedArrival(file_of("orders/b.json"), PARTITION, Lane.STREAM, "matches urgent/*", urgent=True),
]


def changed(deployment: Deployment, key: str, **changes: object) -> None:
    """The document with other values."""
    bucket = deployment.resources.control_bucket
    body = json.loads(deployment.raw_s3.get_object(Bucket=bucket, Key=key)["Body"].read())
    deployment.raw_s3.put_object(Bucket=bucket, Key=key, Body=json.dumps({**body, **changes}).encode())


def test_an_intent_has_each_arrival_with_its_lane_reason_and_urgency(deployment: Deployment) -> None:
    key = write_intent(deployment.services, ARRIVALS, deployment.now)
    assert list(read_intent(deployment.services, key).arrivals) == ARRIVALS


def test_an_intent_of_another_format_is_refused(deployment: Deployment) -> None:
    key = write_intent(deployment.services, ARRIVALS, deployment.now)
    changed(deployment, key, format=2)
    with pytest.raises(NewerDocumentError, match="its format is 2, not 1"):
        read_intent(deployment.services, key)


@pytest.mark.parametrize("body", [b"", b'{"format": 1, "arri', b"[]", b"{}"])
def test_a_damaged_intent_is_named_as_such(deployment: Deployment, body: bytes) -> None:
    key = write_intent(deployment.services, ARRIVALS, deployment.now)
    deployment.raw_s3.put_object(Bucket="control", Key=key, Body=body)
    with pytest.raises(InvalidDocumentError, match=f"s3://control/{key} is damaged: restore the object"):
        read_intent(deployment.services, key)


def test_no_row_is_written_while_the_intent_has_no_answer(deployment: Deployment) -> None:
    deployment.faults.drop = 1
    ownership = take_ownership(deployment.services, ARRIVALS, {})
    assert ownership.outcomes == {Identity.of(arrival.file): ArrivalOutcome.UNSETTLED for arrival in ARRIVALS}
    assert deployment.faults.writes == ["put_object"]


def test_ignored_arrivals_need_no_intent(deployment: Deployment) -> None:
    take_ownership(deployment.services, [], {ARRIVALS[0].file: "no rule"})
    assert deployment.faults.writes == ["put_item", "update_item"]
