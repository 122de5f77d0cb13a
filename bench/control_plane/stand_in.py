"""Serves the table, buckets and Glue tables of a night over HTTP on loopback.

Every request waits for the assumed duration of a request to AWS.
"""

import bisect
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice, takewhile
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit
from xml.sax.saxutils import escape

from boto3.dynamodb.types import TypeSerializer

from bench.control_plane.night import COLUMNS, NOW, RESOURCES, Night
from bench.control_plane.table import Table
from lake.documents import encode, encode_body
from lake.layout import MANIFESTS, PARTS, commit_key, lake_key
from lake.ledger import CommitReference, Published, State
from lake.ledger.datasets import name_key
from lake.ledger.manifest_row import NO_OBJECTS, PublishedTotals, digest_objects
from lake.manifest import ObjectVersion, Partition
from lake.time import iso_utc

PAGE_KEYS = 1000
"""S3's limit on the number of keys in one page of a listing."""
OBJECT, ETAG = range(128 << 20), "d41d8cd98f00b204e9800998ecf8427e"
"""The size of each object in the lake, as its length, and its ETag."""
NONCE = "0a1b2c3d"
READ_SECONDS = 0.025
WRITE_SECONDS = 0.040
"""Time added to every request that changes something."""
WRITES = frozenset({"PutItem", "UpdateItem", "TransactWriteItems", "PutObject", "DeleteObject", "CreateTable"})


class Buckets:
    def __init__(self, night: Night, first_hour: list[ObjectVersion]) -> None:
        self._night = night
        self.objects: dict[tuple[str, str], bytes] = {}
        """Bodies by bucket and key, except those that the night computes."""
        self._versions = sorted(first_hour, key=lambda file: file.key)
        self._keys = [file.key for file in self._versions]
        self._published: list[str] = []
        """First key of each published manifest in the lake, sorted."""

    def get(self, bucket: str, key: str) -> bytes | None:
        body = self.objects.get((bucket, key))
        if body is not None or bucket != RESOURCES.control_bucket or not key.startswith((MANIFESTS, PARTS)):
            return body
        number = int(key.rsplit("/", 1)[-1][15:23], 16)
        if key.startswith(PARTS):
            return self._night.part(number)[1]
        return encode_body(self._night.manifest(number))

    def publish(self, partition: Partition, manifest: str) -> list[str]:
        """Make the manifest's objects and its commit document appear in listings."""
        keys = [lake_key(partition, manifest, 1, number) for number in range(self._night.objects)]
        bisect.insort(self._published, keys[0])
        self.objects[RESOURCES.control_bucket, commit_key(manifest, 1, 1, NONCE)] = b"{}"
        return keys

    def list_objects(self, bucket: str, query: Mapping[str, str]) -> str:
        prefix, after = query.get("prefix", ""), query.get("start-after", "")
        keys = self._lake_keys(max(prefix, after)) if bucket == RESOURCES.lake_bucket else self._own_keys(bucket)
        following = (key for key in keys if key > after and key >= prefix)
        found = list(islice(takewhile(lambda key: key.startswith(prefix), following), PAGE_KEYS + 1))
        page = found[: int(query.get("max-keys", PAGE_KEYS))]
        items = "".join(_object(key, len(self.objects.get((bucket, key), OBJECT))) for key in page)
        more = str(len(page) < len(found)).lower()
        counts = f"<KeyCount>{len(page)}</KeyCount><IsTruncated>{more}</IsTruncated>"
        return f"<ListBucketResult>{counts}{items}</ListBucketResult>"

    def _own_keys(self, bucket: str) -> list[str]:
        return sorted(key for owner, key in self.objects if owner == bucket)

    def _lake_keys(self, start: str) -> Iterator[str]:
        """Yield keys in the lake, from the manifest on that may have ``start``."""
        first = max(bisect.bisect_right(self._published, start) - 1, 0)
        for position in range(first, len(self._published)):
            manifest = self._published[position].removesuffix("00000.parquet")
            yield from (f"{manifest}{number:05d}.parquet" for number in range(self._night.objects))

    def list_versions(self, query: Mapping[str, str]) -> str:
        """Answer ListObjectVersions of the input bucket as XML; each key has one version."""
        prefix, marker = query.get("prefix", ""), query.get("key-marker", "")
        if query.get("delimiter"):
            folders = (f"{name}/" for name in self._night.dataset_names())
            items = "".join(f"<CommonPrefixes><Prefix>{folder}</Prefix></CommonPrefixes>" for folder in folders)
            return f"<ListVersionsResult><IsTruncated>false</IsTruncated>{items}</ListVersionsResult>"
        first = bisect.bisect_right(self._keys, max(marker, prefix))
        end = bisect.bisect_left(self._keys, prefix[:-1] + chr(ord(prefix[-1]) + 1)) if prefix else len(self._keys)
        page, more, markers = self._versions[first : min(first + PAGE_KEYS, end)], first + PAGE_KEYS < end, ""
        if more:
            markers = f"<NextKeyMarker>{escape(page[-1].key)}</NextKeyMarker>"
            markers += f"<NextVersionIdMarker>{page[-1].version_id}</NextVersionIdMarker>"
        items, truncated = "".join(map(_version, page)), str(more).lower()
        return f"<ListVersionsResult><IsTruncated>{truncated}</IsTruncated>{markers}{items}</ListVersionsResult>"


def _object(key: str, size: int) -> str:
    return (
        f"<Contents><Key>{escape(key)}</Key><LastModified>2026-11-21T03:00:00.000Z</LastModified>"
        f"<ETag>&quot;{ETAG}&quot;</ETag><Size>{size}</Size><StorageClass>STANDARD</StorageClass></Contents>"
    )


def _version(file: ObjectVersion) -> str:
    modified = f"{datetime.fromisoformat(file.arrived_at):%Y-%m-%dT%H:%M:%S.000Z}"
    return (
        f"<Version><Key>{escape(file.key)}</Key><VersionId>{file.version_id}</VersionId><IsLatest>true</IsLatest>"
        f"<LastModified>{modified}</LastModified><ETag>&quot;{file.etag}&quot;</ETag><Size>{file.size}</Size></Version>"
    )


class StandIn(ThreadingHTTPServer):
    """Serves a night until its ``with`` block ends."""

    request_queue_size = 100

    def __init__(self, night: Night) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self._table, self._counts = Table(), Counter[str]()
        self._glue_tables: dict[str, Any] = {}
        self._lock = threading.Lock()
        load = TypeSerializer().serialize
        for row in night.rows():
            self._table.load(load(row)["M"])
        owned = [(manifest, file) for manifest in night.first_manifests() for file in manifest.files]
        for manifest, file in owned:
            row = {name: value for name, value in night.arrival_row(manifest, file).items() if value is not None}
            self._table.load(load(row)["M"])
        for dataset in night.dataset_names():
            self._load_dataset(dataset)
        self._buckets = Buckets(night, [file for _, file in owned])
        self.endpoint = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever).start()

    def server_close(self) -> None:
        self.shutdown()
        super().server_close()

    def _load_dataset(self, name: str) -> None:
        columns = {"SS": [f"a_column_of_the_dataset_{number:04}" for number in range(COLUMNS)]}
        key = {"pk": {"S": f"dataset#{name}"}}
        measured = {"input_bytes": {"N": "40000000000"}, "task_milliseconds": {"N": "1000000"}}
        self._table.load({**key, "sk": {"S": "columns"}, "columns": columns})
        self._table.load({**key, "sk": {"S": "measurement"}, **measured, "output_bytes": {"N": "16000000000"}})
        self._table.load({name: {"S": value} for name, value in name_key(name).item().items()})

    def answer(self, method: str, target: str, operation: str, body: bytes) -> tuple[int, bytes]:
        """Return status and body. ``operation``: of DynamoDB and Glue, empty for S3."""
        parts = urlsplit(target)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        bucket, _, key = unquote(parts.path.lstrip("/")).partition("/")
        name = operation or _s3_operation(method, key, query)
        time.sleep(WRITE_SECONDS if name in WRITES else READ_SECONDS)
        with self._lock:
            self._counts[name] += 1
            return self._json(name, json.loads(body)) if operation else self._s3(name, bucket, key, query, body)

    def _json(self, operation: str, request: dict[str, Any]) -> tuple[int, bytes]:
        if operation == "GetTable" and request["Name"] not in self._glue_tables:
            return 400, b'{"__type": "EntityNotFoundException"}'
        if operation == "GetTable":
            answer = {"Table": self._glue_tables[request["Name"]]}
        elif operation == "CreateTable":
            self._glue_tables[request["TableInput"]["Name"]] = {**request["TableInput"], "VersionId": "0"}
            answer = {}
        elif operation == "PutEvents":
            answer = {"FailedEntryCount": 0, "Entries": [{"EventId": "event"}]}
        else:
            answer = self._table.answer(operation, request)
        return 200, json.dumps(answer, separators=(",", ":")).encode()

    def _s3(self, operation: str, bucket: str, key: str, query: Mapping[str, str], body: bytes) -> tuple[int, bytes]:
        if operation == "PutObject":
            self._buckets.objects[bucket, key] = body
            return 200, b""
        if operation == "DeleteObject":
            self._buckets.objects.pop((bucket, key), None)
            return 204, b""
        if operation == "ListMultipartUploads":
            return 200, b"<ListMultipartUploadsResult><IsTruncated>false</IsTruncated></ListMultipartUploadsResult>"
        if operation == "ListObjectVersions":
            return 200, self._buckets.list_versions(query).encode()
        if operation == "ListObjectsV2":
            return 200, self._buckets.list_objects(bucket, query).encode()
        found = self._buckets.get(bucket, key)
        return (404, b"<Error><Code>NoSuchKey</Code></Error>") if found is None else (200, found)

    def publish(self, hour: str) -> None:
        """Set the manifests of an hour DONE; all manifests if ``hour`` is empty."""
        changes = {"state": State.DONE.value, "finished_at": iso_utc(NOW)}
        for row in self._table.open_manifests():
            manifest, partition = row["id"]["S"], Partition.parse(row["partition"]["S"])
            if partition.stamp.startswith(hour):
                keys = self._buckets.publish(partition, manifest)
                objects = digest_objects((key, len(OBJECT), ETAG) for key in keys)
                reference = CommitReference(commit_key(manifest, 1, 1, NONCE), "0" * 64)
                published = Published(1, reference, PublishedTotals(10**6, {}, 0, objects, NO_OBJECTS, 1000))
                self._table.close(row, TypeSerializer().serialize({**changes, "published": encode(published)})["M"])

    def statistics(self) -> tuple[Counter[str], int]:
        """Return the requests since the last call, and the maximum writes per second to one partition of the index."""
        counts, self._counts = self._counts, Counter()
        writes = max(self._table.index_writes.values(), default=0)
        self._table.index_writes.clear()
        return counts, writes


def _s3_operation(method: str, key: str, query: Mapping[str, str]) -> str:
    if key:
        return {"GET": "GetObject", "PUT": "PutObject", "DELETE": "DeleteObject"}[method]
    if "versions" in query:
        return "ListObjectVersions"
    return "ListMultipartUploads" if "uploads" in query else "ListObjectsV2"


class _Handler(BaseHTTPRequestHandler):
    server: StandIn
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        operation = self.headers.get("x-amz-target", "").rpartition(".")[2]
        status, answer = self.server.answer(self.command, self.path, operation, body)
        self.send_response(status)
        self.send_header("content-length", str(len(answer)))
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_PUT = do_DELETE = do_POST  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Log nothing: there are thousands of requests."""
