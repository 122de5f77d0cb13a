"""Emulated S3 and DynamoDB with one deployment in them, and a clock that only tests move."""

import io
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from threading import RLock
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import boto3
import moto.s3.urls
from botocore import xform_name
from botocore.config import Config
from moto import mock_aws
from moto.core.exceptions import ServiceException
from moto.core.models import DEFAULT_ACCOUNT_ID, botocore_stubber
from moto.dynamodb.responses import DynamoHandler
from moto.s3.models import S3Backend, s3_backends
from werkzeug.exceptions import HTTPException

from lake.commit import (
    ALGORITHM,
    WHOLE_OBJECT,
    CommitDocument,
    PendingObject,
    SourceCount,
    checksum_of,
    put_bound_document,
    write_result,
)
from lake.layout import commit_key
from lake.ledger import ArrivalRow, CollectionId, CommitReference, Ledger, ManifestRow, PublishedTotals
from lake.ledger.manifest_row import NO_OBJECTS, PublishedObjects
from lake.manifest import Lane, Manifest, ObjectVersion, Partition, new_manifest_id
from lake.manifest_documents import new_part, write_manifest
from lake.publish import roll_forward
from lake.resource_names import ResourceNames
from lake.time import iso_utc
from tests.ledger_table import create_ledger_table
from tests.unit.lake.faults import Faults

REGION = "eu-central-1"
MORNING = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)
"""A Friday, 10:30 in Berlin."""
RESOURCES = ResourceNames("input", "lake", "quarantine", "control", "ledger", "stream-job", "batch-job", "catalog")
SECRET = "notasecret"
BUCKETS = ("input", "lake", "quarantine", "control")
PARTITION = Partition("orders", "2026-11-20", 9)
LEASE = timedelta(minutes=10)
NEWEST: "list[World]" = []
"""The newest world: moto's objects have its clock, so no test depends on the date of the machine."""
ENDPOINTS: dict[str, str] = {}
"""Servers over HTTP instead of moto, by "dynamodb" and "s3": `tests/conformance` sets them."""


@dataclass
class World:
    """One deployment."""

    s3: Any
    raw_s3: Any
    ledger: Ledger
    faults: Faults
    dynamodb: Any
    now: datetime = MORNING
    resources: ResourceNames = field(default=RESOURCES)

    def __post_init__(self) -> None:
        NEWEST[:] = [self]

    def clock(self) -> datetime:
        return self.now

    def wait(self, span: timedelta) -> None:
        self.now += span

    def keys(self, bucket: str, prefix: str = "") -> list[str]:
        return [item["Key"] for item in self.raw_s3.list_objects_v2(Bucket=bucket, Prefix=prefix).get("Contents", [])]

    def manifest(self, *names: str, lane: Lane = Lane.BATCH, partition: Partition = PARTITION) -> Manifest:
        """A manifest without a row or a document."""
        files = tuple(file_of(f"{partition.dataset}/{name}") for name in names)
        return Manifest(new_manifest_id(self.now), lane, partition, self.now.isoformat(), files)

    def queued(self, *names: str, lane: Lane = Lane.BATCH, partition: Partition = PARTITION) -> ManifestRow:
        """A QUEUED manifest, with document and row."""
        return self.enqueued(self.manifest(*names, lane=lane, partition=partition))

    def enqueued(self, manifest: Manifest) -> ManifestRow:
        """The given manifest, QUEUED with its document and row."""
        self.ledger.manifests.enqueue(write_manifest(self.raw_s3, RESOURCES.control_bucket, manifest))
        return self.row(manifest.id)

    def arrived(self, manifest: Manifest) -> ManifestRow:
        """The given manifest, QUEUED, whose files have their arrival rows."""
        for file in manifest.files:
            owner = (manifest.id, manifest.partition, manifest.lane)
            self.ledger.arrivals.put(ArrivalRow(file, *owner, "by default", iso_utc(self.now)))
        return self.enqueued(manifest)

    def superseded(self, row: ManifestRow, *successors: Manifest, reason: str = "because") -> None:
        """Supersede a manifest by these, and write their documents."""
        rows = [write_manifest(self.raw_s3, RESOURCES.control_bucket, manifest) for manifest in successors]
        assert self.ledger.manifests.supersede(row, rows, reason, self.now)

    def claimed(self, row: ManifestRow, owner: str = "jr_1") -> ManifestRow:
        claim = self.ledger.manifests.claim(row, owner, self.now, LEASE)
        assert claim is not None
        return claim

    def committed(self, claim: ManifestRow, **lists: Any) -> ManifestRow:
        """PUBLISHING with a commit document of these lists; no object that it names is completed."""
        row, control = claim, RESOURCES.control_bucket
        lists = {**dict.fromkeys(("objects", "quarantine", "sources", "new_columns"), ()), **lists}
        document = CommitDocument(
            row.id, row.generation, row.attempt, row.partition, "jr_1", "", **lists, task_milliseconds=1
        )
        key = commit_key(row.id, row.generation, row.attempt, "n")
        self.ledger.manifests.commit(claim, put_bound_document(self.raw_s3, control, key, document), self.now)
        return self.row(row.id)

    def published(self, row: ManifestRow, *, has_table: bool = False, **lists: Any) -> ManifestRow:
        """The QUEUED manifest, made DONE with a commit document of these lists."""
        row = self.committed(self.claimed(row), **lists)
        control, buckets = RESOURCES.control_bucket, RESOURCES.output_buckets
        roll_forward(self.s3, self.ledger, control, row, self.clock, buckets, has_table=has_table)
        return self.row(row.id)

    def row(self, manifest: str) -> ManifestRow:
        row = self.ledger.manifests.get(manifest)
        assert row is not None
        return row


def file_of(key: str, size: int = 100, version: str | None = "v1") -> ObjectVersion:
    return ObjectVersion("input", key, f"etag-of-{key[-100:]}", size, MORNING.isoformat(), version)


def upload(s3: Any, bucket: str, key: str, body: bytes, rows: int = 1) -> PendingObject:
    """A multipart upload of one part."""
    checksum = checksum_of(io.BytesIO(body))
    created = s3.create_multipart_upload(Bucket=bucket, Key=key, ChecksumAlgorithm=ALGORITHM, ChecksumType=WHOLE_OBJECT)
    upload_id = created["UploadId"]
    part = s3.upload_part(Bucket=bucket, Key=key, UploadId=upload_id, PartNumber=1, Body=body, ChecksumCRC32=checksum)
    return PendingObject(bucket, key, upload_id, part["ETag"].strip('"'), checksum, len(body), rows)


@contextmanager
def new_world() -> Iterator[World]:
    # Tests with the emulator may have run before, in the same process.
    with patch.dict(os.environ), _quick_moto(), mock_aws():
        os.environ.pop("AWS_ENDPOINT_URL", None)
        s3, dynamodb = clients()
        with _buckets(s3), _table(dynamodb):
            faults = Faults()
            ledger = Ledger.over(faults.wrap(dynamodb), RESOURCES.ledger_table)
            yield World(faults.wrap(s3), s3, ledger, faults, dynamodb)


@contextmanager
def _buckets(s3: Any) -> Iterator[None]:
    if "s3" not in ENDPOINTS:
        for bucket in BUCKETS:
            s3_backends[DEFAULT_ACCOUNT_ID]["aws"].create_bucket(bucket, REGION)
        yield
        return
    for bucket in BUCKETS:
        s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION})
    try:
        yield
    finally:
        for bucket in BUCKETS:
            for upload in s3.list_multipart_uploads(Bucket=bucket).get("Uploads", []):
                s3.abort_multipart_upload(Bucket=bucket, Key=upload["Key"], UploadId=upload["UploadId"])
            s3.delete_bucket(Bucket=bucket)


@contextmanager
def _table(dynamodb: Any) -> Iterator[None]:
    create_ledger_table(dynamodb, RESOURCES.ledger_table)
    try:
        yield
    finally:
        if "dynamodb" in ENDPOINTS:
            # One of the tests has no table.
            with suppress(dynamodb.exceptions.ResourceNotFoundException):
                dynamodb.delete_table(TableName=RESOURCES.ledger_table)


@contextmanager
def _quick_moto() -> Iterator[None]:
    """Skips moto's thousand patterns for the library's requests, and the reload of its S3 for every request."""
    urls = patch.object(S3Backend, "_url_module", moto.s3.urls)
    with patch("moto.core.models.RESPONSES_METHODS", []), urls, patch("moto.s3.models.utcnow", _time_of_objects):
        yield


def _time_of_objects() -> datetime:
    now = NEWEST[-1].now if NEWEST else MORNING
    return now.astimezone(UTC).replace(tzinfo=None)


@cache
def clients() -> tuple[Any, Any]:
    """Created once, because it takes longer than most tests. The state of the servers is new in every world."""
    session = boto3.Session(aws_access_key_id=SECRET, aws_secret_access_key=SECRET, region_name=REGION)
    # boto3 composes its own user agent twice for every request.
    config = Config(user_agent="tests")
    dynamodb = session.resource("dynamodb", config=config, endpoint_url=ENDPOINTS.get("dynamodb")).meta.client
    s3 = session.client("s3", config=config, endpoint_url=ENDPOINTS.get("s3"))
    if "dynamodb" not in ENDPOINTS:
        send_directly(dynamodb)
        _one_at_a_time(dynamodb)
    if "s3" not in ENDPOINTS:
        _one_at_a_time(s3)
    return s3, dynamodb


def _one_at_a_time(client: Any) -> None:
    """Serialize the requests of several threads: moto's tables and buckets are not thread-safe."""
    lock = RLock()

    def in_turn(operation: str, parameters: dict[str, Any]) -> Any:
        with lock:
            return type(client)._make_api_call(client, operation, parameters)

    client._make_api_call = in_turn


METADATA = {"HTTPStatusCode": 200, "HTTPHeaders": {}, "RetryAttempts": 0}


def send_directly(client: Any) -> None:
    """Let this client's requests reach moto's handlers as a call.

    boto3 still checks and serializes the parameters. A request that moto rejects is sent again the regular way and
    rejected again, so its error is the one that boto3 builds from a response.
    """

    def answer(model: Any, params: dict[str, Any], **_: Any) -> tuple[Any, dict[str, Any]] | None:
        if not botocore_stubber.enabled:
            return None
        handler = DynamoHandler()
        handler.body = handler.params = json.loads(params["body"])
        handler.current_account, handler.region = DEFAULT_ACCOUNT_ID, client.meta.region_name
        try:
            result = getattr(handler, xform_name(model.name))().result
        except (ServiceException, HTTPException):
            return None
        body = {name: result[name] for name in model.output_shape.members if result.get(name) is not None}
        return SimpleNamespace(status_code=200), {**body, "ResponseMetadata": dict(METADATA)}

    client.meta.events.register("before-call.dynamodb", answer)


DOCUMENT = CommitReference("commits/c.json", "0" * 64)
TOTALS = PublishedTotals(10, {"not JSON": 2}, 1, PublishedObjects(1, 100, "0" * 64), NO_OBJECTS, 1000)
STATES = (
    *("QUEUED", "RUNNING", "EXPIRED", "PUBLISHING", "DONE", "FAILED", "FAILED PUBLISH"),
    *("SUPERSEDED", "COLLECTED", "ABANDONED"),
)


def row_in_state(world: World, state: str) -> ManifestRow:
    """The row of a manifest, brought to ``state`` by legal transitions."""
    manifests = world.ledger.manifests
    if state == "ABANDONED":
        return manifests.abandon("crashed", world.now)
    if state == "COLLECTED":
        part, _ = new_part("part", PARTITION.stamp, world.now.isoformat(), {"orders": [file_of("a.json")]})
        assert world.ledger.collections.add(CollectionId.numbered(PARTITION.stamp, 1), part)
        return world.row("part")
    row = world.queued("a.json", "b.json")
    if state == "SUPERSEDED":
        world.superseded(row, world.manifest("a.json", "b.json"))
    if state in ("RUNNING", "EXPIRED", "PUBLISHING", "DONE", "FAILED", "FAILED PUBLISH"):
        claim = world.claimed(row)
        if state == "EXPIRED":
            world.wait(LEASE)
        if state == "FAILED":
            manifests.fail(claim, "because", world.now)
        if state in ("PUBLISHING", "DONE", "FAILED PUBLISH"):
            manifests.commit(claim, DOCUMENT, world.now)
        if state == "DONE":
            manifests.finish(world.row(row.id), TOTALS, world.now)
        if state == "FAILED PUBLISH":
            manifests.fail(world.row(row.id), "because", world.now)
    return world.row(row.id)


def done(world: World, row: ManifestRow, totals: PublishedTotals = TOTALS) -> ManifestRow:
    """The QUEUED manifest, published with a missing document."""
    world.ledger.manifests.commit(world.claimed(row), DOCUMENT, world.now)
    assert world.ledger.manifests.finish(world.row(row.id), totals, world.now)
    return world.row(row.id)


def put_result(
    world: World,
    row: ManifestRow | Manifest,
    sources: Iterable[SourceCount],
    objects: Iterable[PendingObject] = (),
    quarantine: Iterable[PendingObject] = (),
    generation: int = 1,
) -> None:
    """The result document of a published generation; only its lists, its generation and its time matter."""
    lists = (tuple(objects), tuple(quarantine), tuple(sources), ())
    document = CommitDocument(row.id, generation, 1, row.partition, "jr_1", world.now.isoformat(), *lists, 0)
    etags = {(item.bucket, item.key): "e" for item in (*document.objects, *document.quarantine)}
    write_result(world.raw_s3, "control", document, etags, world.now)
