"""Converted files of one hour, and how tests change what is published of them."""

from __future__ import annotations

import bz2
import gzip
import io
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from lake.ledger import ArrivalRow
from lake.manifest import Lane, Partition
from tests.integration.conversion_world import NOON
from tests.modified_at import ModifiedAt
from verify.hours import Effort, HoursCheck
from verify.stack import Hours, Stack

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from tests.integration.conversion_world import ConversionWorld
    from verify.report import HourReport

HOUR = "2026-03-04T12"
ROWS = b"".join(b'{"id":%d,"Name":"n\\u00e4me %d","x":{"y" : [1.10, null]},"z":null}\n' % (n, n) for n in range(50))
BODIES = {
    "orders/a.json": ROWS + b"broken\n\n[1]\n",
    "orders/b.json.gz": gzip.compress(b'\xef\xbb\xbf{"id":"1"}\r\n' * 3 + b'{"id":1,"id":2}\n' * 1200),
    "orders/c.json.bz2": bz2.compress(b'{"date":1,"_rescued":"r"}\n{"a":"\xff"}'),
    "orders/d.json.gz": gzip.compress(ROWS)[:-9],
    "orders/e.json": b"",
}


class VerifiedHour:
    """Converted files of one hour, and how a test changes what is published of them."""

    def __init__(self, world: ConversionWorld, spark: SparkSession) -> None:
        self.world = world
        files = [world.put(key, body) for key, body in BODIES.items()]
        self.files = {file.key: file for file in files}
        self.manifest = world.enqueue(files)
        for file in files:
            self.record(file, self.manifest)
        (outcome,) = world.convert([self.manifest], spark)
        assert outcome.state == "DONE", outcome.reason

    def record(self, file: Any, manifest: str | None) -> None:
        row = ArrivalRow(file, manifest, Partition.of("orders", NOON), Lane.BATCH, "test", NOON.isoformat())
        self.world.services.ledger.arrivals.put(row)

    def verify(self, share: float = 1.0) -> HourReport:
        return verify_noon(self.world, share)

    def change(self, bucket: str, change: Callable[[bytes], bytes]) -> str:
        """Change the first object of a bucket; returns its key."""
        key = self.world.keys(bucket)[0]
        body = self.world.services.s3.get_object(Bucket=bucket, Key=key)["Body"].read()
        self.world.services.s3.put_object(Bucket=bucket, Key=key, Body=change(body))
        return key

    @property
    def lake_bucket(self) -> str:
        return self.world.services.resources.lake_bucket

    @property
    def quarantine_bucket(self) -> str:
        return self.world.services.resources.quarantine_bucket


def verify_noon(world: ConversionWorld, share: float = 1.0) -> HourReport:
    """The report of the hour of all files that a test puts."""
    services = world.services
    convert = services.settings.convert
    s3: Any = ModifiedAt(services.s3, NOON)
    stack = Stack(s3, services.ledger, services.resources, convert, ("orders/",), lambda _: True, world.clock)
    (report,) = HoursCheck(stack, Hours("orders", HOUR, HOUR), Effort(share), lambda _: None).run()
    return report


def change_row(body: bytes) -> bytes:
    """One value of one row."""
    table = pq.read_table(io.BytesIO(body))
    index = table.schema.get_field_index("__name")
    names = table.column(index).to_pylist()
    names[names.index("näme 31")] = "n\u00e4me 3l"
    target = io.BytesIO()
    pq.write_table(table.set_column(index, table.schema.field(index), pa.array(names, pa.string())), target)
    return target.getvalue()


def rewrite(change: Callable[[pa.Table], pa.Table]) -> Callable[[bytes], bytes]:
    def rewritten(body: bytes) -> bytes:
        target = io.BytesIO()
        pq.write_table(change(pq.read_table(io.BytesIO(body))), target)
        return target.getvalue()

    return rewritten
