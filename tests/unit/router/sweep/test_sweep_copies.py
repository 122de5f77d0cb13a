"""What people copy within lake and quarantine is theirs: the sweep deletes objects of manifests by their whole keys."""

from datetime import timedelta

import pytest

from lake.layout import lake_key
from router.sweep.handler import sweep
from tests.unit.router.conftest import Deployment
from tests.unit.router.sweep.sweeping import changes, published, upload

COPIES = (
    "analysis/{key}",
    "orders/date=2026-11-20/hour=10/{name}",
    "orders/date=2026-11-20/{name}",
    "{stem}-copy.parquet",
    "{stem}.parquet.bak",
    "{stem}.csv",
    "{stem}/{name}",
    "{name}",
)


def copy_of(key: str, copy: str) -> str:
    return copy.format(key=key, name=key.rsplit("/", 1)[-1], stem=key.removesuffix(".parquet"))


@pytest.mark.parametrize("copy", COPIES)
def test_a_copy_of_a_replaced_object_is_kept(deployment: Deployment, copy: str) -> None:
    # Given a person's copy of an object of generation 1, which generation 2 has replaced
    row = published(deployment, deployment.queued("a"))
    own = lake_key(row.partition, row.id, 1, 0)
    key = copy_of(own, copy)
    deployment.raw_s3.put_object(Bucket="lake", Key=key, Body=b"copy")
    deployment.ledger.manifests.force(row, deployment.now)
    published(deployment, deployment.row(row.id))
    deployment.wait(timedelta(hours=5))
    # When the sweep deletes that generation
    assert changes(sweep(deployment.services)) == {"deleted": 3}
    # Then the copy is still there
    assert key in deployment.keys("lake")
    assert own not in deployment.keys("lake")


def test_an_upload_of_a_copy_is_left_alone(deployment: Deployment) -> None:
    # Given a person's upload with the name of an object of a manifest that is DONE, elsewhere in the lake
    row = published(deployment, deployment.queued("a"))
    upload(deployment, "lake", f"analysis/{lake_key(row.partition, row.id, 1, 0)}")
    # When, Then
    assert changes(sweep(deployment.services)) == {}
