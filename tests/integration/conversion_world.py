"""A world for one test: buckets and a ledger on the emulator, with what puts files in and reads the lake."""

from __future__ import annotations

import io
import json
import secrets
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import boto3
import pyarrow.parquet as pq

from lake.layout import lake_prefix, pointer_key, result_key, run_key
from lake.ledger import Ledger, ManifestRow
from lake.manifest import Lane, Manifest, ObjectVersion, Partition, new_manifest_id
from lake.manifest_documents import write_manifest
from lake.settings import Settings
from lake.shards import FIRST_SHARD
from local.isolation import REGION
from tests.ledger_table import create_stage
from transform.clients import s3_client
from transform.convert import convert
from transform.task_model import ConversionContext, JobServices

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

    from local.cloud import LocalCloud
    from transform.outcome import ConversionOutcome

NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
Row = dict[str, str | None]


@dataclass
class Clock:
    """A clock that moves only by ``advance``."""

    now: datetime = NOON

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **amount: float) -> None:
        self.now += timedelta(**amount)


@dataclass
class ConversionWorld:
    """Services over resources of its own, a clock that does not move, and the log of its runs."""

    services: JobServices
    clock: Clock = field(default_factory=Clock)
    dead_runs: set[str] = field(default_factory=set)
    """Job runs that Glue would call terminal."""
    log_lines: list[str] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    """Seconds of each wait of a run; none of them takes any time."""

    @classmethod
    def create(cls, cloud: LocalCloud, *, versions: bool = True) -> ConversionWorld:
        s3, dynamodb = s3_client(REGION), boto3.resource("dynamodb").meta.client
        resources = create_stage(s3, dynamodb, f"t{secrets.token_hex(5)}", versions=versions)
        ledger = Ledger.over(dynamodb, resources.ledger_table)
        return cls(JobServices(s3, ledger, resources, Settings("test"), REGION))

    def configure(self, section: str, **changes: Any) -> None:
        """Change settings of one section: ``convert``, ``stream``, ``batch``, ..."""
        settings = self.services.settings
        settings = replace(settings, **{section: replace(getattr(settings, section), **changes)})
        self.services = replace(self.services, settings=settings)

    def deny(self, bucket: str, action: str, key: str = "*") -> None:
        """From now on no role may do this with objects of the bucket: its policy refuses, as on AWS."""
        resource = f"arn:aws:s3:::{bucket}/{key}"
        statement = {"Effect": "Deny", "Principal": "*", "Action": action, "Resource": resource}
        policy = {"Version": "2012-10-17", "Statement": [statement]}
        self.services.s3.put_bucket_policy(Bucket=bucket, Policy=json.dumps(policy))

    def allow(self, bucket: str) -> None:
        """Take every ``deny`` of this bucket back."""
        self.services.s3.delete_bucket_policy(Bucket=bucket)

    def put(self, key: str, body: bytes) -> ObjectVersion:
        answer = self.services.s3.put_object(Bucket=self.services.resources.input_bucket, Key=key, Body=body)
        version = answer.get("VersionId")
        return ObjectVersion(
            self.services.resources.input_bucket,
            key,
            answer["ETag"].strip('"'),
            len(body),
            "2026-03-04T11:59:00.000+00:00",
            None if version in (None, "null") else version,
        )

    def enqueue(
        self,
        files: Sequence[ObjectVersion],
        lane: Lane = Lane.BATCH,
        dataset: str = "orders",
        *,
        urgent: bool = False,
    ) -> str:
        partition = Partition.of(dataset, NOON)
        created = NOON.isoformat(timespec="milliseconds")
        manifest = Manifest(new_manifest_id(NOON), lane, partition, created, tuple(files), urgent)
        write_manifest(self.services.s3, self.services.resources.control_bucket, manifest)
        self.services.ledger.datasets.register(dataset)
        self.services.ledger.manifests.enqueue(manifest)
        return manifest.id

    def put_pointer(self, manifest: str, *, urgent: bool = False, shard: str = FIRST_SHARD) -> None:
        self.services.s3.put_object(
            Bucket=self.services.resources.control_bucket,
            Key=pointer_key(manifest, secrets.token_hex(4), urgent=urgent, shard=shard),
            Body=json.dumps({"manifest": manifest}).encode(),
        )

    def put_run_document(self, manifests: Sequence[str]) -> str:
        key = run_key("execution-1", "nonce", 0)
        body = {"execution": "execution-1", "number": 0, "manifests": list(manifests), "bytes": 0, "files": 0}
        bucket = self.services.resources.control_bucket
        self.services.s3.put_object(Bucket=bucket, Key=key, Body=json.dumps(body).encode())
        return f"s3://{bucket}/{key}"

    def convert(
        self,
        manifests: Sequence[str],
        spark: SparkSession,
        run: str = "run-1",
        clock: Callable[[], datetime] | None = None,
    ) -> list[ConversionOutcome]:
        return convert(manifests, self.context(spark, run, clock))

    def context(self, spark: SparkSession, run: str, clock: Callable[[], datetime] | None = None) -> ConversionContext:
        """What a run of this name works with; its log goes to ``log_lines``."""
        run_is_terminal, log = self.dead_runs.__contains__, self.log_lines.append
        now = clock or self.clock
        return ConversionContext(spark, self.services, run, now, run_is_terminal, log, self.waits.append)

    def row(self, manifest: str) -> ManifestRow:
        row = self.services.ledger.manifests.get(manifest)
        assert row is not None
        return row

    def result(self, manifest: str, generation: int = 1) -> dict[str, Any]:
        key = result_key(manifest, generation)
        body = self.services.s3.get_object(Bucket=self.services.resources.control_bucket, Key=key)["Body"].read()
        return dict(json.loads(body))

    def keys(self, bucket: str) -> list[str]:
        pages = self.services.s3.get_paginator("list_objects_v2").paginate(Bucket=bucket)
        return sorted(item["Key"] for page in pages for item in page.get("Contents", []))

    def lake(self) -> list[Row]:
        """Every row that a reader sees, NULLs left out, in the order of file names."""
        resources = self.services.resources
        rows: list[Row] = []
        for key in self.keys(resources.lake_bucket):
            body = self.services.s3.get_object(Bucket=resources.lake_bucket, Key=key)["Body"].read()
            table = pq.read_table(io.BytesIO(body))
            rows += [{name: value for name, value in row.items() if value is not None} for row in table.to_pylist()]
        return rows

    def quarantine(self) -> list[dict[str, Any]]:
        bucket = self.services.resources.quarantine_bucket
        bodies = [self.services.s3.get_object(Bucket=bucket, Key=key)["Body"].read() for key in self.keys(bucket)]
        return [json.loads(line) for body in bodies for line in body.splitlines()]

    def unfinished_uploads(self) -> list[str]:
        resources = self.services.resources
        found = []
        for bucket in (resources.lake_bucket, resources.quarantine_bucket):
            uploads = self.services.s3.list_multipart_uploads(Bucket=bucket).get("Uploads", [])
            found += [upload["Key"] for upload in uploads]
        return found

    def prefix(self, manifest: str, generation: int = 1, dataset: str = "orders") -> str:
        return lake_prefix(Partition.of(dataset, NOON), manifest, generation)
