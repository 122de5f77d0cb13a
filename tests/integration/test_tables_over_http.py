"""The committer over HTTP: two of it at once and readers while they work."""

import io
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Any

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.glue import GlueCatalog

from lake.ledger import Ledger, ManifestRow
from lake.settings import parse_settings
from local.cloud import LocalCloud
from local.isolation import BUCKET_PLACE, REGION
from router.services import Services
from tests.integration.conversion_world import remove_bucket
from tests.ledger_table import create_ledger_table
from tests.unit.lake.faults import Faults
from tests.unit.lake.world import BUCKETS, RESOURCES
from tests.unit.router.conftest import SETTINGS, Deployment
from tests.unit.router.tables.tabling import TABLES, commit, forced, listed, publish, shown
from transform.clients import s3_client

ROWS = 50
"""Rows of a manifest."""


@pytest.fixture(scope="module")
def deployment(cloud: LocalCloud) -> Iterator[Deployment]:
    """A control plane on the local cloud, without a catalog table or a row."""
    s3 = s3_client(REGION)
    for bucket in BUCKETS:
        s3.create_bucket(Bucket=bucket, CreateBucketConfiguration=BUCKET_PLACE)
    dynamodb, glue = boto3.resource("dynamodb").meta.client, boto3.client("glue")
    create_ledger_table(dynamodb, RESOURCES.ledger_table)
    glue.create_database(DatabaseInput={"Name": RESOURCES.tables_database})
    ledger = Ledger.over(dynamodb, RESOURCES.ledger_table)
    deployment = Deployment(s3, s3, ledger, Faults(), dynamodb, glue=glue)
    deployment.services = Services(
        settings=parse_settings({**SETTINGS, "datasets": TABLES}),
        resources=RESOURCES,
        ledger=ledger,
        s3=s3,
        glue=glue,
        clock=deployment.clock,
    )
    deployment.ledger.datasets.register("orders")
    yield deployment
    for bucket in BUCKETS:
        remove_bucket(bucket)


def generation_file(row: ManifestRow) -> Callable[[str], bytes]:
    """The bytes of a generation, whose rows name it."""

    def body(_key: str) -> bytes:
        rows = pa.table({"a": [f"{row.id}-g{row.generation}"] * ROWS})
        sink = io.BytesIO()
        pq.write_table(rows, sink)
        return sink.getvalue()

    return body


def published(deployment: Deployment, row: ManifestRow) -> ManifestRow:
    return publish(deployment, row, body=generation_file(row), rows=ROWS)


@dataclass
class Reader:
    """Reads the table again and again, as an analyst does."""

    cloud: LocalCloud
    wanted: set[str]
    """Manifests that each read has to find."""
    stopped: Event = field(default_factory=Event)
    reads: int = 0
    wrong: list[str] = field(default_factory=list)

    def run(self) -> None:
        options: dict[str, Any] = {"s3.endpoint": self.cloud.endpoint, "s3.region": REGION}
        catalog = GlueCatalog("local", **options)
        while not self.stopped.is_set() or not self.reads:
            table = catalog.load_table((RESOURCES.tables_database, "orders"))
            found = Counter(map(str, table.scan(selected_fields=("a",)).to_arrow()["a"].to_pylist()))
            manifests = [name.rsplit("-g", 1)[0] for name in found]
            is_right = set(found.values()) == {ROWS} and len(set(manifests)) == len(manifests)
            if not is_right or not self.wanted <= set(manifests):
                self.wrong.append(str(found))
            self.reads += 1


def test_readers_see_one_generation_of_each_file_while_two_committers_replace_them(
    deployment: Deployment, cloud: LocalCloud
) -> None:
    # Given a table with four manifests
    rows = [published(deployment, listed(deployment, name)) for name in "abcd"]
    commit(deployment)
    before = len(shown(deployment))
    readers = [Reader(cloud, {row.id for row in rows}) for _ in range(2)]
    threads = [Thread(target=reader.run) for reader in readers]
    for thread in threads:
        thread.start()
    # When all of them are replaced and others come, and two committers bring that in
    try:
        for number in range(4):
            for row in rows:
                published(deployment, forced(deployment, row))
            published(deployment, listed(deployment, f"new-{number}"))
            committers = [Thread(target=commit, args=(deployment,)) for _ in range(2)]
            for committer in committers:
                committer.start()
            for committer in committers:
                committer.join()
    finally:
        for reader, thread in zip(readers, threads, strict=True):
            reader.stopped.set()
            thread.join()
    # Then no reader has seen a row twice, or none of a file
    assert [reader.wrong for reader in readers] == [[], []]
    assert all(reader.reads for reader in readers)
    while commit(deployment) is not None:
        pass
    assert len(shown(deployment)) == before + 4
    assert {f"{row.id}-g5" for row in rows} < set(shown(deployment))
