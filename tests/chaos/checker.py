"""Invariants, read from lake, quarantine and raw ledger items. Shares no code with the product."""

from __future__ import annotations

import hashlib
import io
import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tests.chaos.inputs import Input

TERMINAL = {"DONE", "FAILED", "SUPERSEDED", "ABANDONED"}


@dataclass(frozen=True, slots=True)
class Names:
    """Where the checker looks."""

    input: str
    lake: str
    quarantine: str
    control: str
    table: str


@dataclass
class Checker:
    """``s3`` and ``dynamodb`` are plain clients; ``dynamodb`` gives Python values."""

    s3: Any
    dynamodb: Any
    names: Names
    found: list[str] = field(default_factory=list)

    def violations(self, inputs: Sequence[Input]) -> list[str]:
        """What is wrong after the repairs; empty: every promise is kept."""
        self.found = []
        manifests, arrivals = self._ledger()
        self._terminal(manifests)
        owners = self._owners(inputs, manifests, arrivals)
        published = self._published(manifests)
        self._objects(published)
        self._nothing_unfinished()
        self._contents(inputs, owners, published)
        return self.found

    def _ledger(self) -> tuple[dict[str, dict[str, Any]], dict[tuple[str, str], dict[str, Any]]]:
        items: list[dict[str, Any]] = []
        request: dict[str, Any] = {"TableName": self.names.table, "ConsistentRead": True}
        while True:
            page = self.dynamodb.scan(**request)
            items += page["Items"]
            if "LastEvaluatedKey" not in page:
                break
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]
        manifests = {item["pk"].partition("#")[2]: item for item in items if item["pk"].startswith("manifest#")}
        arrivals = {(item["key"], item["sk"]): item for item in items if item["pk"].startswith("arrival#")}
        return manifests, arrivals

    def _terminal(self, manifests: dict[str, dict[str, Any]]) -> None:
        for name, item in manifests.items():
            if item["state"] not in TERMINAL:
                self.found.append(f"manifest {name} is {item['state']}, not terminal: {item.get('reason')}")
            elif "open" in item:
                self.found.append(f"manifest {name} is {item['state']} and still in the index of open ones")

    def _owners(
        self,
        inputs: Sequence[Input],
        manifests: dict[str, dict[str, Any]],
        arrivals: dict[tuple[str, str], dict[str, Any]],
    ) -> dict[tuple[str, str], str]:
        """The one manifest that ends the chain of each input, and holds it."""
        holders: dict[tuple[str, str], list[str]] = {}
        for name, item in manifests.items():
            if item["state"] in ("DONE", "FAILED"):
                for file in self._document(name):
                    holders.setdefault(file, []).append(name)
        owners = {}
        for entry in inputs:
            file = (entry.key, entry.version)
            if file not in arrivals:
                self.found.append(f"{file} has no arrival row")
                continue
            names = holders.get(file, [])
            ends = set(self._ends(str(arrivals[file].get("manifest")), manifests))
            if len(names) != 1 or not ends.issuperset(names):
                self.found.append(f"{file} is in the manifests {names}, its arrival leads to {sorted(ends)}")
            else:
                owners[file] = names[0]
        known = {(entry.key, entry.version) for entry in inputs}
        self.found += [f"manifests hold {file}, which never arrived" for file in holders if file not in known]
        return owners

    def _ends(self, name: str, manifests: dict[str, dict[str, Any]]) -> Iterator[str]:
        item = manifests.get(name)
        if item is not None and item["state"] == "SUPERSEDED":
            for successor in item["superseded_by"]:
                yield from self._ends(successor, manifests)
        else:
            yield name

    def _document(self, name: str) -> list[tuple[str, str]]:
        body = json.loads(self._get(self.names.control, f"manifests/{name[:8]}/{name}.json"))
        files = [(key, version or f"etag:{etag}") for _, key, version, etag, _, _ in body["files"]]
        if len(set(files)) != len(files):
            self.found.append(f"manifest {name} lists a file twice")
        return files

    def _published(self, manifests: dict[str, dict[str, Any]]) -> dict[tuple[str, str], tuple[str, str]]:
        """(bucket, key) of every object that a reader may count on -> (manifest, ETag)."""
        objects = {}
        for name, item in manifests.items():
            if item["state"] == "DONE" and "published_key" not in item:
                self.found.append(f"manifest {name} is DONE without a published generation")
            if "published_key" not in item:
                continue
            body = self._get(self.names.control, item["published_key"])
            if hashlib.sha256(body).hexdigest() != item["published_sha256"]:
                self.found.append(f"the commit document of {name} is not the one that its row names")
            document = json.loads(body)
            for entry in (*document["objects"], *document["quarantine"]):
                objects[entry["bucket"], entry["key"]] = (name, entry["etag"])
        return objects

    def _objects(self, published: dict[tuple[str, str], tuple[str, str]]) -> None:
        standing = {
            (bucket, item["Key"]): item["ETag"].strip('"')
            for bucket in (self.names.lake, self.names.quarantine)
            for item in self._list(bucket)
        }
        for place in sorted(standing.keys() - published.keys()):
            self.found.append(f"{place} is left over: no published document names it")
        for place, (name, etag) in sorted(published.items()):
            if standing.get(place) != etag:
                self.found.append(f"{place} of manifest {name} is {standing.get(place)}, its document says {etag}")

    def _nothing_unfinished(self) -> None:
        for bucket in (self.names.lake, self.names.quarantine):
            for upload in self.s3.list_multipart_uploads(Bucket=bucket).get("Uploads", []):
                self.found.append(f"an unfinished upload of {bucket}/{upload['Key']} is left over")

    def _contents(
        self,
        inputs: Sequence[Input],
        owners: dict[tuple[str, str], str],
        published: dict[tuple[str, str], tuple[str, str]],
    ) -> None:
        read_by = {name for name, _ in published.values()}
        rows: Counter[str] = Counter()
        lines: Counter[str] = Counter()
        files: Counter[str] = Counter()
        for entry in inputs:
            # A manifest that FAILED as a whole keeps its files by reference in its document.
            if owners.get((entry.key, entry.version)) not in read_by:
                continue
            rows.update(entry.rows)
            lines.update(entry.rejects)
            if not entry.readable:
                files[f"{entry.key} {entry.version}"] += 1
        self._compare("the lake", rows, Counter(self._lake_rows()))
        records = list(self._records())
        self._compare("the quarantine", lines, Counter(r["line"] for r in records if r["kind"] == "line"))
        by_reference = (r for r in records if r["kind"] == "file")
        prefix = f"s3://{self.names.input}/"
        found = Counter(f"{r['source'].removeprefix(prefix)} {r['version']}" for r in by_reference)
        self._compare("the quarantine by reference", files, found)

    def _compare(self, where: str, expected: Counter[str], found: Counter[str]) -> None:
        lost, more = expected - found, found - expected
        if lost:
            self.found.append(f"{where} lacks {sum(lost.values())}, such as {next(iter(lost))}")
        if more:
            self.found.append(f"{where} has {sum(more.values())} too many, such as {next(iter(more))}")

    def _lake_rows(self) -> Iterator[str]:
        for item in self._list(self.names.lake):
            for row in pq.read_table(io.BytesIO(self._get(self.names.lake, item["Key"]))).to_pylist():
                yield json.dumps({name: value for name, value in row.items() if value is not None}, sort_keys=True)

    def _records(self) -> Iterator[dict[str, Any]]:
        for item in self._list(self.names.quarantine):
            yield from map(json.loads, self._get(self.names.quarantine, item["Key"]).splitlines())

    def _list(self, bucket: str) -> Iterable[dict[str, Any]]:
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=bucket)
        return [item for page in pages for item in page.get("Contents", [])]

    def _get(self, bucket: str, key: str) -> bytes:
        body: bytes = self.s3.get_object(Bucket=bucket, Key=key)["Body"].read()
        return body
