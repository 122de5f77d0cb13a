"""``python -m bench.control_plane.stand_in A10``: table, buckets and Glue tables of a night behind HTTP on loopback.

Every request waits as long as one to AWS is assumed to take. The first line of the output is the port.
"""

import asyncio
import bisect
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit
from xml.sax.saxutils import escape

from boto3.dynamodb.types import TypeSerializer

from bench.control_plane.night import COLUMNS, NIGHTS, NOW, RESOURCES, Night
from bench.control_plane.table import RefusedRequestError, Table
from lake.documents import encode, encode_body
from lake.layout import MANIFESTS, PARTS
from lake.ledger import CommitReference, Published, State
from lake.ledger.datasets import name_key
from lake.ledger.manifest_row import NO_OBJECTS, PublishedTotals
from lake.manifest import ObjectVersion
from lake.time import iso_utc

PAGE_KEYS = 1000
"""S3's limit on the keys of one page of a listing."""


class Buckets:
    def __init__(self, night: Night, first_hour: Iterable[ObjectVersion]) -> None:
        self._night = night
        self._objects: dict[tuple[str, str], bytes] = {}
        self._versions = sorted(first_hour, key=lambda file: file.key)
        self._keys = [file.key for file in self._versions]

    def put(self, bucket: str, key: str, body: bytes) -> None:
        self._objects[bucket, key] = body

    def delete(self, bucket: str, key: str) -> None:
        self._objects.pop((bucket, key), None)

    def get(self, bucket: str, key: str) -> bytes | None:
        body = self._objects.get((bucket, key))
        if body is not None or bucket != RESOURCES.control_bucket or not key.startswith((MANIFESTS, PARTS)):
            return body
        number = self._night.number_of(key.rsplit("/", 1)[-1].removesuffix(".json"))
        if key.startswith(PARTS):
            return self._night.part(number)[1]
        return encode_body(self._night.manifest(number))

    def list_objects(self, bucket: str, query: Mapping[str, str]) -> str:
        prefix, after = query.get("prefix", ""), query.get("start-after", "")
        keys = sorted(key for owner, key in self._objects if owner == bucket and key.startswith(prefix) and key > after)
        page = keys[: int(query.get("max-keys", PAGE_KEYS))]
        items = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{len(self._objects[bucket, key])}</Size></Contents>"
            for key in page
        )
        more = str(len(page) < len(keys)).lower()
        counts = f"<KeyCount>{len(page)}</KeyCount><IsTruncated>{more}</IsTruncated>"
        return f"<ListBucketResult>{counts}{items}</ListBucketResult>"

    def list_versions(self, query: Mapping[str, str]) -> str:
        """ListObjectVersions of the input bucket as XML; each key has one version."""
        prefix, marker = query.get("prefix", ""), query.get("key-marker", "")
        if query.get("delimiter"):
            folders = (f"{name}/" for name in self._night.dataset_names())
            items = "".join(f"<CommonPrefixes><Prefix>{folder}</Prefix></CommonPrefixes>" for folder in folders)
            return f"<ListVersionsResult><IsTruncated>false</IsTruncated>{items}</ListVersionsResult>"
        first = bisect.bisect_right(self._keys, max(marker, prefix))
        end = bisect.bisect_left(self._keys, prefix[:-1] + chr(ord(prefix[-1]) + 1)) if prefix else len(self._keys)
        page = self._versions[first : min(first + PAGE_KEYS, end)]
        items = "".join(map(_version, page))
        if first + PAGE_KEYS >= end:
            return f"<ListVersionsResult><IsTruncated>false</IsTruncated>{items}</ListVersionsResult>"
        last = page[-1]
        markers = (
            f"<NextKeyMarker>{escape(last.key)}</NextKeyMarker>"
            f"<NextVersionIdMarker>{last.version_id}</NextVersionIdMarker>"
        )
        return f"<ListVersionsResult><IsTruncated>true</IsTruncated>{markers}{items}</ListVersionsResult>"


def _version(file: ObjectVersion) -> str:
    modified = f"{datetime.fromisoformat(file.arrived_at):%Y-%m-%dT%H:%M:%S.000Z}"
    return (
        f"<Version><Key>{escape(file.key)}</Key><VersionId>{file.version_id}</VersionId><IsLatest>true</IsLatest>"
        f"<LastModified>{modified}</LastModified><ETag>&quot;{file.etag}&quot;</ETag><Size>{file.size}</Size></Version>"
    )


READ_SECONDS = 0.025
WRITE_SECONDS = 0.040
"""Added to every request that changes something."""
WRITES = frozenset({"PutItem", "UpdateItem", "TransactWriteItems", "PutObject", "DeleteObject", "CreateTable"})
STATISTICS = "/_statistics"
"""Path of the counts since the last time; the request itself is not counted."""
PUBLISH = "/_publish"
"""Path that makes the manifests of the last hour DONE."""


class StandIn:
    def __init__(self, night: Night) -> None:
        self._table, self._counts = Table(), Counter[str]()
        self._glue_tables: dict[str, Any] = {}
        self._last_hour = night.last_hour.partition("T")[2]
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

    def _load_dataset(self, name: str) -> None:
        columns = {"SS": [f"a_column_of_the_dataset_{number:04}" for number in range(COLUMNS)]}
        key = {"pk": {"S": f"dataset#{name}"}}
        measured = {"input_bytes": {"N": "40000000000"}, "task_milliseconds": {"N": "1000000"}}
        self._table.load({**key, "sk": {"S": "columns"}, "columns": columns})
        self._table.load({**key, "sk": {"S": "measurement"}, **measured, "output_bytes": {"N": "16000000000"}})
        self._table.load({name: {"S": value} for name, value in name_key(name).item().items()})

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._answer(reader, writer)
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            method, target, _ = line.decode().split(" ", 2)
            headers = {}
            while field := (await reader.readline()).decode().strip():
                name, _, value = field.partition(":")
                headers[name.lower()] = value.strip()
            if headers.get("expect"):
                writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            if target == STATISTICS:
                status, answer = 200, self._statistics()
            elif target == PUBLISH:
                status, answer = 200, self._publish()
            elif "x-amz-target" in headers:
                operation = headers["x-amz-target"].rpartition(".")[2]
                await self._wait(operation)
                status, answer = self._json(operation, json.loads(body))
            else:
                status, answer = await self._s3(method, target, body)
            start = f"HTTP/1.1 {status} -\r\ncontent-length: {len(answer)}\r\ncontent-type: application/json\r\n\r\n"
            writer.write(start.encode() + answer)
            await writer.drain()

    async def _wait(self, operation: str) -> None:
        self._counts[operation] += 1
        await asyncio.sleep(WRITE_SECONDS if operation in WRITES else READ_SECONDS)

    def _json(self, operation: str, request: dict[str, Any]) -> tuple[int, bytes]:
        try:
            if operation == "PutEvents":
                answer = {"FailedEntryCount": 0, "Entries": [{"EventId": "event"}]}
            elif operation in ("GetTable", "CreateTable"):
                answer = self._glue(operation, request)
            else:
                answer = self._table.answer(operation, request)
        except RefusedRequestError as error:
            return 400, json.dumps({"__type": error.code, **error.fields}).encode()
        return 200, json.dumps(answer, separators=(",", ":")).encode()

    def _glue(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        if operation == "CreateTable":
            self._glue_tables[request["TableInput"]["Name"]] = {**request["TableInput"], "VersionId": "0"}
            return {}
        if request["Name"] not in self._glue_tables:
            raise RefusedRequestError("EntityNotFoundException")
        return {"Table": self._glue_tables[request["Name"]]}

    async def _s3(self, method: str, target: str, body: bytes) -> tuple[int, bytes]:
        parts = urlsplit(target)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        bucket, _, key = unquote(parts.path.lstrip("/")).partition("/")
        operation = _s3_operation(method, key, query)
        await self._wait(operation)
        if operation == "PutObject":
            self._buckets.put(bucket, key, body)
            return 200, b""
        if operation == "DeleteObject":
            self._buckets.delete(bucket, key)
            return 204, b""
        if operation == "ListMultipartUploads":
            return 200, b"<ListMultipartUploadsResult><IsTruncated>false</IsTruncated></ListMultipartUploadsResult>"
        if operation == "ListObjectVersions":
            return 200, self._buckets.list_versions(query).encode()
        if operation == "ListObjectsV2":
            return 200, self._buckets.list_objects(bucket, query).encode()
        found = self._buckets.get(bucket, key)
        return (404, b"<Error><Code>NoSuchKey</Code></Error>") if found is None else (200, found)

    def _publish(self) -> bytes:
        totals = PublishedTotals(1, {}, 0, NO_OBJECTS, NO_OBJECTS, 0)
        published = {
            "state": State.DONE.value,
            "finished_at": iso_utc(NOW),
            "published": encode(Published(1, CommitReference("key", "sha256"), totals)),
        }
        self._table.finish(f"T{self._last_hour}", TypeSerializer().serialize(published)["M"])
        return b""

    def _statistics(self) -> bytes:
        counts, self._counts = self._counts, Counter()
        writes = max(self._table.index_writes.values(), default=0)
        self._table.index_writes.clear()
        return json.dumps({"requests": counts, "index_writes_per_second": writes}).encode()


def _s3_operation(method: str, key: str, query: Mapping[str, str]) -> str:
    if key:
        return {"GET": "GetObject", "PUT": "PutObject", "DELETE": "DeleteObject"}[method]
    if "versions" in query:
        return "ListObjectVersions"
    return "ListMultipartUploads" if "uploads" in query else "ListObjectsV2"


async def serve(night: Night, say_port: Callable[[int], object]) -> None:
    """Serve the night until the task is cancelled; ``say_port`` gets the port as soon as it answers."""
    server = await asyncio.start_server(StandIn(night).serve, "127.0.0.1", 0)
    say_port(server.sockets[0].getsockname()[1])
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(NIGHTS[sys.argv[1]], lambda port: print(port, flush=True)))
