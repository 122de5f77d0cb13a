"""The promises, checked against lake, quarantine and raw ledger items. Shares no code with the product."""

import hashlib
import io
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow.parquet as pq

from lake.layout import TABLES, is_complete_marker
from tests.chaos.inputs import WITH_TABLE, Input
from tests.oracle.lake_proof import differences

TERMINAL = frozenset({"DONE", "FAILED", "SUPERSEDED", "COLLECTED", "ABANDONED"})


@dataclass
class Checker:
    """Checks one deployment. ``s3`` and ``dynamodb`` are plain clients; ``dynamodb`` returns Python values."""

    s3: Any
    dynamodb: Any
    names: Any
    """Has the names of the buckets and of the ledger's table."""
    found: list[str] = field(default_factory=list)
    _collections: dict[str, Any] = field(default_factory=dict)
    unpublished: int = 0
    """Number of inputs whose manifest is FAILED and has published nothing, at the last check."""

    def violations(
        self,
        inputs: Sequence[Input],
        may_fail: Callable[[dict[str, Any]], bool] = lambda _: False,
        shown: set[str] | None = None,
    ) -> list[str]:
        """Return every broken promise after the repairs; empty if all are kept.

        ``may_fail``: whether the history has a cause for FAILED in this row (the raw item of the ledger). ``shown``:
        URIs that the Iceberg table of ``WITH_TABLE`` shows; None skips the comparison.
        """
        self.found = []
        manifests, arrivals, collections = self._read_ledger()
        self._collections = collections
        self._check_terminal(manifests)
        for name, item in manifests.items():
            if item["state"] == "FAILED" and not may_fail(item):
                self.found.append(f"manifest {name} is FAILED without a cause: {item.get('reason')}")
        owners = self._check_owners(inputs, manifests, arrivals)
        published = self._check_commit_documents(manifests)
        self._check_objects(published)
        if shown is not None:
            self._check_table(published, shown)
        self._check_no_open_uploads()
        self._check_contents(inputs, owners, published)
        return self.found

    def _read_ledger(self) -> tuple[dict[str, Any], dict[tuple[str, str], dict[str, Any]], dict[str, Any]]:
        """Manifests and parts by id, arrivals by key and version, collections by hour and name."""
        items: list[dict[str, Any]] = []
        request: dict[str, Any] = {"TableName": self.names.ledger_table, "ConsistentRead": True}
        while True:
            page = self.dynamodb.scan(**request)
            items += page["Items"]
            if "LastEvaluatedKey" not in page:
                break
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]
        manifests = {item["pk"].partition("#")[2]: item for item in items if item["pk"].startswith("manifest#")}
        arrivals = {(item["file"][1], item["sk"]): item for item in items if item["pk"].startswith("arrival#")}
        collections = {
            f"{item['pk'].partition('#')[2]}/{item['sk']}": item
            for item in items
            if item["pk"].startswith("collection#")
        }
        return manifests, arrivals, collections

    def _check_terminal(self, manifests: dict[str, dict[str, Any]]) -> None:
        for name, item in self._collections.items():
            if not item.get("done"):
                self.found.append(f"collection {name} is not divided")
        for name, item in manifests.items():
            if "collection" in item:
                continue
            if item["state"] not in TERMINAL:
                self.found.append(f"manifest {name} is {item['state']}, not terminal: {item.get('reason')}")
            elif item.get("open", "").rpartition("#")[2] != _listed_as(item):
                self.found.append(f"manifest {name} is {item['state']} and in the index as {item.get('open')}")

    def _check_owners(
        self,
        inputs: Sequence[Input],
        manifests: dict[str, dict[str, Any]],
        arrivals: dict[tuple[str, str], dict[str, Any]],
    ) -> dict[tuple[str, str], str]:
        """(key, version) of each input -> the one manifest that holds it and ends its chain of successors."""
        holders: dict[tuple[str, str], list[str]] = {}
        for name, item in manifests.items():
            if item["state"] in ("DONE", "FAILED"):
                for file in self._files_of(name):
                    holders.setdefault(file, []).append(name)
        owners = {}
        for entry in inputs:
            file = (entry.key, entry.version)
            if file not in arrivals:
                self.found.append(f"{file} has no arrival row")
                continue
            names = holders.get(file, [])
            ends = set(self._last_successors(str(arrivals[file].get("manifest")), manifests))
            if len(names) != 1 or not ends.issuperset(names):
                self.found.append(f"{file} is in the manifests {names}, its arrival leads to {sorted(ends)}")
            else:
                owners[file] = names[0]
        known = {(entry.key, entry.version) for entry in inputs}
        self.found += [f"manifests hold {file}, which never arrived" for file in holders if file not in known]
        return owners

    def _last_successors(self, name: str, manifests: dict[str, dict[str, Any]]) -> Iterator[str]:
        item = manifests.get(name)
        if item is not None and "collection" in item:
            division = self._collections[item["collection"]].get("division")
            if division is not None:
                for manifest in json.loads(self._get(self.names.control_bucket, division["key"]))["manifests"]:
                    yield from self._last_successors(manifest["id"], manifests)
        elif item is not None and item["state"] == "SUPERSEDED":
            for successor in item["superseded_by"]:
                yield from self._last_successors(successor, manifests)
        else:
            yield name

    def _files_of(self, name: str) -> list[tuple[str, str]]:
        body = json.loads(self._get(self.names.control_bucket, f"manifests/{name[:8]}/{name}.json"))
        files = [(key, version or f"etag:{etag}") for _, key, etag, _, _, version in body["files"]]
        if len(set(files)) != len(files):
            self.found.append(f"manifest {name} lists a file twice")
        return files

    def _check_commit_documents(self, manifests: dict[str, dict[str, Any]]) -> dict[tuple[str, str], tuple[str, str]]:
        """(bucket, key) of every published object -> (manifest, checksum)."""
        objects = {}
        for name, item in manifests.items():
            if item["state"] == "DONE" and "published" not in item:
                self.found.append(f"manifest {name} is DONE without a published generation")
            if "published" not in item:
                continue
            body = self._get(self.names.control_bucket, item["published"]["document"]["key"])
            if hashlib.sha256(body).hexdigest() != item["published"]["document"]["sha256"]:
                self.found.append(f"the commit document of {name} is not the one that its row names")
            document = json.loads(body)
            for entry in (*document["objects"], *document["quarantine"]):
                objects[entry["bucket"], entry["key"]] = (name, entry["checksum"])
        return objects

    def _check_objects(self, published: dict[tuple[str, str], tuple[str, str]]) -> None:
        locations = [
            (bucket, item["Key"])
            for bucket in (self.names.lake_bucket, self.names.quarantine_bucket)
            for item in self._list(bucket)
        ]
        checksums = {(bucket, key): self._checksum(bucket, key) for bucket, key in locations}
        for location in sorted(checksums.keys() - published.keys()):
            self.found.append(f"{location} is left over: no published document names it")
        for location, (name, checksum) in sorted(published.items()):
            found = checksums.get(location)
            if found != checksum:
                self.found.append(f"{location} of manifest {name} has {found}, its document says {checksum}")

    def _check_table(self, published: dict[tuple[str, str], tuple[str, str]], shown: set[str]) -> None:
        """The table shows each published object of its dataset, and nothing else."""
        lake = f"s3://{self.names.lake_bucket}/{WITH_TABLE}/"
        expected = {uri for uri in (f"s3://{bucket}/{key}" for bucket, key in published) if uri.startswith(lake)}
        for uri in sorted(expected ^ shown):
            problem = "is published, and the table does not show it" if uri in expected else "is only in the table"
            self.found.append(f"{uri} {problem}")

    def _checksum(self, bucket: str, key: str) -> str | None:
        return self.s3.head_object(Bucket=bucket, Key=key, ChecksumMode="ENABLED").get("ChecksumCRC32")

    def _check_no_open_uploads(self) -> None:
        for bucket in (self.names.lake_bucket, self.names.quarantine_bucket):
            for upload in self.s3.list_multipart_uploads(Bucket=bucket).get("Uploads", []):
                self.found.append(f"an open upload of {bucket}/{upload['Key']} is left over")

    def _check_contents(
        self,
        inputs: Sequence[Input],
        owners: dict[tuple[str, str], str],
        published: dict[tuple[str, str], tuple[str, str]],
    ) -> None:
        publishers = {name for name, _ in published.values()}
        self.unpublished = sum(owners.get((entry.key, entry.version)) not in publishers for entry in inputs)
        rows: Counter[str] = Counter()
        lines: Counter[str] = Counter()
        files: Counter[str] = Counter()
        for entry in inputs:
            # A manifest that FAILED as a whole keeps its files by reference in its document.
            if owners.get((entry.key, entry.version)) not in publishers:
                continue
            rows.update(entry.body.rows)
            lines.update(entry.body.rejects)
            if not entry.body.readable:
                files[f"{entry.key} {entry.version}"] += 1
        self.found += differences("the lake", rows, Counter(self._lake_rows()))
        records = list(self._quarantine_records())
        found = Counter(r["line"] for r in records if r["kind"] == "line")
        self.found += differences("the quarantine", lines, found)
        by_reference = (r for r in records if r["kind"] == "file")
        prefix = f"s3://{self.names.input_bucket}/"
        found = Counter(f"{r['source'].removeprefix(prefix)} {r['version']}" for r in by_reference)
        self.found += differences("the quarantine by reference", files, found)

    def _lake_rows(self) -> Iterator[str]:
        for item in self._list(self.names.lake_bucket):
            for row in pq.read_table(io.BytesIO(self._get(self.names.lake_bucket, item["Key"]))).to_pylist():
                yield json.dumps({name: value for name, value in row.items() if value is not None}, sort_keys=True)

    def _quarantine_records(self) -> Iterator[dict[str, Any]]:
        for item in self._list(self.names.quarantine_bucket):
            yield from map(json.loads, self._get(self.names.quarantine_bucket, item["Key"]).splitlines())

    def _list(self, bucket: str) -> Iterable[dict[str, Any]]:
        """The objects of lake or quarantine, without the metadata of Iceberg tables and the markers of hours."""
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=bucket)
        items = (item for page in pages for item in page.get("Contents", []))
        return [item for item in items if not item["Key"].startswith(TABLES) and not is_complete_marker(item["Key"])]

    def _get(self, bucket: str, key: str) -> bytes:
        body: bytes = self.s3.get_object(Bucket=bucket, Key=key)["Body"].read()
        return body


def _listed_as(item: dict[str, Any]) -> str:
    """The index has open manifests, and ended ones only if they failed or have unreadable files."""
    if item["state"] == "DONE":
        return "UNREADABLE" if item.get("published", {}).get("totals", {}).get("failed_files") else ""
    return "FAILED" if item["state"] == "FAILED" else ""
