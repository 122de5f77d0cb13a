"""A world for one test: buckets and a ledger on the emulator, with functions that put files and read the lake."""

import io
import json
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from lake.aws_types import S3Client
from lake.commit import GenerationResult, read_result
from lake.layout import pointer_key, run_key
from lake.ledger import Ledger, ManifestRow
from lake.manifest import Lane, Manifest, ObjectVersion, Partition, new_manifest_id
from lake.manifest_documents import write_manifest
from lake.resource_names import ResourceNames
from lake.settings import Settings
from lake.shards import FIRST_SHARD
from local.cloud import LocalCloud
from local.isolation import REGION
from tests.ledger_table import create_stage
from transform.clients import s3_client
from transform.convert import convert
from transform.outcome import ConversionOutcome
from transform.task_model import ConversionContext

NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
Row = dict[str, str | None]


@dataclass
class ConversionWorld:
    """Services over its own resources, a clock that only tests move, and the log of its runs."""

    s3: S3Client
    ledger: Ledger
    resources: ResourceNames
    settings: Settings = field(default_factory=lambda: Settings("test"))
    now: datetime = NOON
    log_lines: list[str] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    """Seconds of each wait of a run; no wait takes any time."""

    @classmethod
    def create(cls, cloud: LocalCloud, *, versions: bool = True) -> "ConversionWorld":
        s3, dynamodb = s3_client(REGION), boto3.resource("dynamodb").meta.client
        resources = create_stage(s3, dynamodb, f"t{secrets.token_hex(5)}", versions=versions)
        return cls(s3, Ledger.over(dynamodb, resources.ledger_table), resources)

    def clock(self) -> datetime:
        return self.now

    def configure(self, section: str, **changes: Any) -> None:
        """Change settings of one section: ``convert``, ``stream``, ``batch``, ..."""
        changed = replace(getattr(self.settings, section), **changes)
        self.settings = replace(self.settings, **{section: changed})

    @property
    def alarms(self) -> list[str]:
        return [line for line in self.log_lines if line.startswith("ALARM")]

    def bucket(self, kind: str) -> str:
        """The bucket ``input``, ``lake``, ``quarantine`` or ``control``."""
        return str(getattr(self.resources, f"{kind}_bucket"))

    def deny(self, kind: str, action: str, key: str = "*") -> None:
        """Deny every role this action on objects of the bucket, by its policy, as on AWS."""
        resource, bucket = f"arn:aws:s3:::{self.bucket(kind)}/{key}", self.bucket(kind)
        statement = {"Effect": "Deny", "Principal": "*", "Action": action, "Resource": resource}
        policy = {"Version": "2012-10-17", "Statement": [statement]}
        self.s3.put_bucket_policy(Bucket=bucket, Policy=json.dumps(policy))

    def allow(self, kind: str) -> None:
        """Remove every ``deny`` of this bucket."""
        self.s3.delete_bucket_policy(Bucket=self.bucket(kind))

    def put(self, key: str, body: bytes) -> ObjectVersion:
        answer = self.s3.put_object(Bucket=self.resources.input_bucket, Key=key, Body=body)
        arrived, version = NOON - timedelta(minutes=1), answer.get("VersionId")
        return ObjectVersion.of(self.resources.input_bucket, key, answer["ETag"], len(body), arrived, version)

    def enqueue(
        self, files: Sequence[ObjectVersion], lane: Lane = Lane.BATCH, dataset: str = "orders", *, urgent: bool = False
    ) -> str:
        partition = Partition.of(dataset, NOON)
        created = NOON.isoformat(timespec="milliseconds")
        manifest = Manifest(new_manifest_id(NOON), lane, partition, created, tuple(files), urgent)
        row = write_manifest(self.s3, self.resources.control_bucket, manifest)
        self.ledger.datasets.admit({dataset: ""}, 0)
        self.ledger.manifests.enqueue(row)
        return manifest.id

    def put_pointer(self, manifest: str, *, shard: str = FIRST_SHARD) -> None:
        key = pointer_key(manifest, secrets.token_hex(4), urgent=False, shard=shard)
        body = json.dumps({"manifest": manifest}).encode()
        self.s3.put_object(Bucket=self.resources.control_bucket, Key=key, Body=body)

    def put_run_document(self, manifests: Sequence[str]) -> str:
        key = run_key("execution-1", "nonce", 0)
        body = {"execution": "execution-1", "number": 0, "manifests": list(manifests), "bytes": 0, "files": 0}
        bucket = self.resources.control_bucket
        self.s3.put_object(Bucket=bucket, Key=key, Body=json.dumps(body).encode())
        return f"s3://{bucket}/{key}"

    def convert(self, manifests: Sequence[str], spark: SparkSession, run: str = "run-1") -> list[ConversionOutcome]:
        return convert(manifests, self.context(spark, run))

    def context(self, spark: SparkSession, run: str, clock: Callable[[], datetime] | None = None) -> ConversionContext:
        """The context of a run of this name; its log goes to ``log_lines``."""
        log, wait = self.log_lines.append, self.waits.append
        clients = (self.s3, self.ledger, self.resources, self.settings, REGION)
        return ConversionContext(spark, *clients, run, clock or self.clock, lambda _: False, log, wait)

    def row(self, manifest: str) -> ManifestRow:
        row = self.ledger.manifests.get(manifest)
        assert row is not None
        return row

    def result(self, manifest: str) -> GenerationResult:
        return read_result(self.s3, self.resources.control_bucket, manifest, 1)

    def keys(self, kind: str) -> list[str]:
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=self.bucket(kind))
        return sorted(item["Key"] for page in pages for item in page.get("Contents", []))

    def bodies(self, kind: str) -> list[bytes]:
        get, bucket = self.s3.get_object, self.bucket(kind)
        return [get(Bucket=bucket, Key=key)["Body"].read() for key in self.keys(kind)]

    def lake(self) -> list[Row]:
        """Every row that a reader sees, without NULLs, in the order of file names."""
        tables = (pq.read_table(io.BytesIO(body)).to_pylist() for body in self.bodies("lake"))
        return [{name: text for name, text in row.items() if text is not None} for table in tables for row in table]

    def quarantine(self) -> list[dict[str, Any]]:
        return [json.loads(line) for body in self.bodies("quarantine") for line in body.splitlines()]

    def unfinished_uploads(self) -> list[str]:
        list_uploads = self.s3.list_multipart_uploads
        pages = [list_uploads(Bucket=self.bucket(kind)) for kind in ("lake", "quarantine")]
        return [upload["Key"] for page in pages for upload in page.get("Uploads", [])]
