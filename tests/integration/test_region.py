"""A process of a job is told its region by the job, not by its environment, as on Glue."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from local.isolation import REGION
from tests.integration.conversion_world import ConversionWorld
from transform.clients import dynamodb_client, object_store, s3_client, session
from transform.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_s3 import S3Client

    from local.cloud import LocalCloud

BODY = b'{"a":1}\n'


@pytest.fixture
def world(cloud: LocalCloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[ConversionWorld]:
    """Buckets and a ledger outside us-east-1; then the environment names no region any more."""
    world = ConversionWorld.create(cloud)
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name)
    session.cache_clear()
    yield world
    session.cache_clear()


class FailingClient:
    """In place of boto3's client, which takes over for a reader that fails."""

    def get_object(self, **_: object) -> None:
        raise ConnectionError("the reader has failed")


def open_failing_client() -> S3Client:
    client: S3Client = FailingClient()  # type: ignore[assignment]
    return client


def test_a_process_without_a_region_in_its_environment_reads_and_writes(world: ConversionWorld) -> None:
    file = world.put("orders/a.ndjson", BODY)
    # When a worker reads a file, then its fast reader does, and a driver reads the ledger and writes.
    source = Source(partial(object_store, REGION), open_failing_client)
    assert bytes(source.fetch(file, 0, file.size)) == BODY
    resources = world.services.resources
    s3_client(REGION).put_object(Bucket=resources.lake_bucket, Key="a", Body=b"")
    table = dynamodb_client(REGION).describe_table(TableName=resources.ledger_table)["Table"]
    assert table["TableArn"].split(":")[3] == REGION


def test_the_reader_of_another_region_is_refused(world: ConversionWorld) -> None:
    """The local cloud answers as S3 does, so a forgotten region shows."""
    file = world.put("orders/a.ndjson", BODY)
    with pytest.raises(ConnectionError, match="the reader has failed"):
        Source(partial(object_store, "us-east-1"), open_failing_client).fetch(file, 0, file.size)
