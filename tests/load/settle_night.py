"""settle of a night of full size: its seconds, requests and memory, with the latency of AWS added to every request.

The answers of S3 and DynamoDB are made by a stand-in at the border of botocore, in the bytes that the services send:
what the client costs is measured, and no table of the night has to be filled.
"""

import io
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any
from urllib.parse import parse_qs, urlsplit
from zlib import crc32

from boto3.dynamodb.types import TypeSerializer
from botocore.awsrequest import AWSResponse

from lake.faults import REQUEST_IDS
from lake.layout import COMMITS, commit_key, lake_key, plan_summary_key
from lake.ledger import CommitReference, Ledger, ManifestRow, Published, PublishedTotals, State
from lake.ledger.manifest_row import NO_OBJECTS, digest_objects, manifest_row_key, row_attributes
from lake.ledger.table import MAX_BATCH_KEYS
from lake.manifest import Lane, Partition
from lake.resource_names import ResourceNames
from lake.settings import Settings
from router.services import CLIENT_CONFIG, Services, new_session
from router.settle.handler import settle
from sizing.peak_memory import peak_bytes, reset_peak_bytes

READ_SECONDS, WRITE_SECONDS = 0.025, 0.040
"""Latency that is added to each request."""
WRITES = frozenset({"PutObject", "UpdateItem"})
RESOURCES = ResourceNames("input", "lake", "quarantine", "control", "ledger", "stream-job", "batch-job", "catalog")
EXECUTION = "overnight"
PAGE = 1000
"""Keys of one answer of ListObjectsV2."""
ETAG = "d41d8cd98f00b204e9800998ecf8427e"
OBJECT_BYTES = 128 << 20
TIME = "2026-11-21T03:00:00.000+00:00"
NAMESPACE = "xmlns='http://s3.amazonaws.com/doc/2006-03-01/'"
CONTENTS = (
    "<Contents><Key>{}</Key><LastModified>2026-11-21T03:00:00.000Z</LastModified>"
    f"<ETag>&quot;{ETAG}&quot;</ETag><ChecksumAlgorithm>CRC32</ChecksumAlgorithm>"
    f"<ChecksumType>FULL_OBJECT</ChecksumType><Size>{OBJECT_BYTES}</Size><StorageClass>STANDARD</StorageClass>"
    "</Contents>"
)


@dataclass(frozen=True, slots=True)
class Night:
    """DONE manifests over the hours of a day, each with as many objects in the lake and none in the quarantine."""

    manifests: int
    objects: int
    """Objects of each manifest."""
    datasets: int = 1

    def place(self, number: int) -> tuple[Partition, str]:
        """Partition and id of a manifest; ids sort by number within a partition."""
        slots = self.datasets * 24
        dataset, hour = divmod(number % slots, 24)
        return Partition(f"dataset{dataset}", "2026-11-20", hour), f"20261120T{number:025d}"


@dataclass(frozen=True, slots=True)
class SettleMeasurement:
    """What one call of settle has cost."""

    verdict: str
    done: int
    seconds: float
    cpu_seconds: float
    """Processor time of this process and of the stand-in."""
    peak_mib: float
    """Peak resident memory of this process during the call."""
    requests: dict[str, int] = field(default_factory=dict)
    """By operation; empty if nothing counted them."""


LARGE_NIGHTS = (Night(22_000, 100), Night(85_000, 1, datasets=10))
"""338,000 files of 4.5 GB in manifests of 64 GiB, which give about 100 objects each; 1,200,000 files of 3.5 MB in
manifests of one object each, as the queue delivers them when nothing is merged."""


def measure_night(night: Night) -> SettleMeasurement:
    """Settle a night of the stand-in."""
    requests: Counter[str] = Counter()
    return replace(measure_settle(night_services(night, requests), EXECUTION), requests=dict(requests))


def measure_settle(services: Services, execution: str) -> SettleMeasurement:
    """Settle an execution once, with the clients of ``services``."""
    reset_peak_bytes()
    started, cpu = time.monotonic(), time.process_time()
    answer = settle({"execution": execution}, services)
    seconds, cpu_seconds = time.monotonic() - started, time.process_time() - cpu
    return SettleMeasurement(answer["verdict"], answer["done"], seconds, cpu_seconds, peak_bytes() / (1 << 20))


def night_services(night: Night, requests: Counter[str]) -> Services:
    """The services of a deployment that has this night behind it; counts the requests by operation."""
    stand_in = _StandIn(night, requests)
    session: Any = new_session()
    place = {"region_name": "eu-central-1", "config": CLIENT_CONFIG}
    keys = {"aws_access_key_id": "stand-in", "aws_secret_access_key": "stand-in"}
    s3, glue = (session.client(name, **place, **keys) for name in ("s3", "glue"))
    dynamodb = session.resource("dynamodb", **place, **keys).meta.client
    for client in (s3, glue, dynamodb):
        client.meta.events.register("before-send", stand_in.answer)
    ledger = Ledger.over(dynamodb, RESOURCES.ledger_table)
    now = datetime(2026, 11, 21, 6, tzinfo=UTC)
    return Services(Settings("load"), RESOURCES, ledger, s3, glue, lambda: now)


@dataclass
class _StandIn:
    """Answers the requests of settle as S3 and DynamoDB do, after their latency."""

    night: Night
    requests: Counter[str]
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, request: Any, event_name: str, **_: Any) -> AWSResponse:
        operation = event_name.rpartition(".")[2]
        with self.lock:
            self.requests[operation] += 1
        time.sleep(WRITE_SECONDS if operation in WRITES else READ_SECONDS)
        body = {
            "BatchGetItem": self._rows,
            "GetObject": self._plan,
            "ListObjectsV2": self._page,
            "Query": lambda _: b'{"Items": []}',
        }.get(operation, lambda _: b"")(request)
        # DynamoDB's clients compare this checksum.
        headers: Any = {"x-amz-crc32": str(crc32(body)), REQUEST_IDS[0]: "stand-in"}
        return AWSResponse(request.url, 200, headers, _Raw(body))

    def _plan(self, request: Any) -> bytes:
        assert urlsplit(request.url).path.endswith(plan_summary_key(EXECUTION))
        ids = [self.night.place(number)[1] for number in range(self.night.manifests)]
        forecast = {"minutes": 60, "dollars": 1.0, "end": TIME, "deadline": TIME}
        plan = {"engine": "glue", "runs": 4, "manifests": len(ids), "files": 15 * len(ids), "bytes": len(ids) << 36}
        return json.dumps({**plan, "plannedAt": TIME, "forecast": forecast, "manifestIds": ids}).encode()

    def _rows(self, request: Any) -> bytes:
        keys = json.loads(request.body)["RequestItems"]["ledger"]["Keys"]
        assert len(keys) <= MAX_BATCH_KEYS
        rows = [self._row(int(key["pk"]["S"].rpartition("T")[2])) for key in keys]
        return json.dumps({"Responses": {"ledger": rows}, "UnprocessedKeys": {}}).encode()

    def _row(self, number: int) -> dict[str, Any]:
        partition, name = self.night.place(number)
        commit, run = commit_key(name, 1, 1, "0a1b2c3d"), "jr_" + "0" * 64
        objects = digest_objects((key, OBJECT_BYTES, ETAG) for key in self._keys(number))
        reference = CommitReference(commit, "0" * 64)
        row = ManifestRow(
            name,
            State.DONE,
            Lane.BATCH,
            partition,
            TIME,
            64 << 30,
            15,
            manifest_sha256="0" * 64,
            attempt=1,
            owner=run,
            document=reference,
            published=Published(1, reference, PublishedTotals(10**6, {}, 0, objects, NO_OBJECTS, 1000)),
            changed_at=TIME,
            finished_at=TIME,
        )
        return TypeSerializer().serialize({**manifest_row_key(name).item(), **row_attributes(row)})["M"]  # type: ignore[return-value]

    def _keys(self, number: int) -> list[str]:
        partition, name = self.night.place(number)
        return [lake_key(partition, name, 1, item) for item in range(self.night.objects)]

    def _page(self, request: Any) -> bytes:
        query = {key: values[0] for key, values in parse_qs(urlsplit(request.url).query).items()}
        after, keys = query["start-after"], self._keys_after(query["prefix"], query["start-after"])
        found = list(islice((key for key in keys if key > after), PAGE + 1))
        contents = "".join(CONTENTS.format(key) for key in found[:PAGE])
        truncated = str(len(found) > PAGE).lower()
        answer = f"<IsTruncated>{truncated}</IsTruncated>{contents}"
        return f"<ListBucketResult {NAMESPACE}>{answer}</ListBucketResult>".encode()

    def _keys_after(self, folder: str, after: str) -> Iterator[str]:
        """Keys of a folder from the manifest of ``after`` on."""
        first = int(after.removeprefix(folder).partition("T")[2].partition("-")[0])
        if folder.startswith(COMMITS):
            for number in range(first, self.night.manifests):
                yield commit_key(self.night.place(number)[1], 1, 1, "0a1b2c3d")
            return
        dataset, hour = int(folder.partition("/")[0].removeprefix("dataset")), int(after.partition("hour=")[2][:2])
        for slot in range(24 * dataset + hour, 24 * dataset + 24):
            for number in range(first, self.night.manifests, self.night.datasets * 24):
                yield from self._keys(number)
            first = slot + 1


class _Raw:
    """The body of an answer, as urllib3 gives it."""

    def __init__(self, body: bytes) -> None:
        self._file = io.BytesIO(body)

    def stream(self, **_: Any) -> Iterator[bytes]:
        yield self._file.read()

    def read(self, size: int | None = None) -> bytes:
        return self._file.read(size)
