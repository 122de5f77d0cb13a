"""settle of a large night: requests follow the objects, 1,000 to a request; memory does not hold the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from lake import successors
from lake.ledger.manifest_row import digest_objects
from router.executions.run_status import current_row_pages
from router.settle.published import list_digests
from tests.model.fake_s3 import FakeS3
from tests.unit.lake.world import MORNING

if TYPE_CHECKING:
    import pytest

    from tests.unit.router.conftest import Deployment

FOLDER = "orders/date=2026-11-20/hour=09/"


def test_the_rows_of_a_plan_are_read_as_they_are_used(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given: a plan of three pages
    monkeypatch.setattr(successors, "MAX_BATCH_KEYS", 1)
    page = successors.PARALLEL_READS
    ids = [deployment.queued(f"{number}.json").id for number in range(3 * page)]
    manifests = deployment.ledger.manifests
    read, asked = manifests.get_many, []

    def reading(_: object, batch: list[str]) -> Any:
        asked.extend(batch)
        return read(batch)

    monkeypatch.setattr(type(manifests), "get_many", reading)
    # When
    pages = current_row_pages(deployment.services, ids)
    # Then: no more of it is in memory than the page that is used
    for number in (1, 2, 3):
        assert [row.id for row in next(pages)] == ids[page * (number - 1) : page * number]
        assert asked == ids[: page * number]
    assert next(pages, None) is None


@given(
    listed=st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 30)), unique=True),
    expected=st.sets(st.sampled_from("abcdx")),
    page=st.integers(1, 4),
)
def test_a_digest_is_that_of_the_objects_under_its_prefix_whatever_lies_between(
    listed: list[tuple[str, int]], expected: set[str], page: int
) -> None:
    # Given: objects of manifests and of others in one folder, listed in small pages
    s3 = FakeS3(MORNING)
    s3.PAGE_SIZE = page
    s3.create_bucket(Bucket="lake")
    keys = [f"{FOLDER}{manifest}-g1-{number:05d}.parquet" for manifest, number in listed]
    for key in keys:
        s3.put_object(Bucket="lake", Key=key, Body=key.encode())
    prefixes = sorted(f"{FOLDER}{manifest}-g1-" for manifest in expected)
    # When
    found = list_digests(s3, "lake", FOLDER, prefixes)  # type: ignore[arg-type]
    # Then
    objects = s3.buckets["lake"]
    assert found == [
        digest_objects((key, len(objects[key].body), objects[key].etag) for key in keys if key.startswith(prefix))
        for prefix in prefixes
    ]


def test_the_listing_leaps_over_what_no_manifest_of_the_night_has_written() -> None:
    # Given: a folder of three pages, of which the manifest's objects are on the last one
    s3 = FakeS3(MORNING)
    s3.PAGE_SIZE = 10
    s3.create_bucket(Bucket="lake")
    for number in range(30):
        s3.put_object(Bucket="lake", Key=f"{FOLDER}a-g1-{number:05d}.parquet", Body=b"")
    s3.put_object(Bucket="lake", Key=f"{FOLDER}b-g1-00000.parquet", Body=b"")
    pages, list_page = [], s3.list_objects_v2

    def counted(**request: Any) -> Any:
        pages.append(request)
        return list_page(**request)

    s3.list_objects_v2 = counted  # type: ignore[method-assign]
    # When, Then
    (found,) = list_digests(s3, "lake", FOLDER, [f"{FOLDER}b-g1-"])  # type: ignore[arg-type]
    assert (found.count, len(pages)) == (1, 1)
