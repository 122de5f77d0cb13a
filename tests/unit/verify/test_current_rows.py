"""From the manifests that arrivals name to those that have the files now."""

import io
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lake.documents import encode_body
from lake.layout import manifest_key
from lake.ledger import ManifestRow, State
from lake.manifest import Lane, Manifest, ObjectVersion, Partition
from verify.find_files import FileIndex, current_rows
from verify.report import HourOutcome, HourReport
from verify.stack import Stack

HOUR = "2026-03-04T12"
NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
PARTITION = Partition.of("orders", NOON)
FILES = [ObjectVersion.of("input", f"orders/{number}.json", "e", 1, NOON, f"v{number}") for number in range(3)]


@pytest.fixture
def index(tmp_path: Path) -> Iterator[FileIndex]:
    with closing(FileIndex(tmp_path)) as index:
        yield index


def row(manifest: str, *successors: str, files: int = 1) -> ManifestRow:
    state = State.SUPERSEDED if successors else State.DONE
    return ManifestRow(manifest, state, Lane.BATCH, PARTITION, NOON.isoformat(), files, files, superseded_by=successors)


def stack(rows: list[ManifestRow], documents: dict[str, list[ObjectVersion]], bucket: str = "input") -> Stack:
    """A stack with these rows, manifest documents, and input bucket."""
    bodies = {
        manifest_key(name): encode_body(Manifest(name, Lane.BATCH, PARTITION, NOON.isoformat(), tuple(files)))
        for name, files in documents.items()
    }
    s3: Any = SimpleNamespace(get_object=lambda *, Bucket, Key: {"Body": io.BytesIO(bodies[Key])})  # noqa: N803
    digests = {name: sha256(bodies[manifest_key(name)]).hexdigest() for name in documents}
    known = {item.id: replace(item, manifest_sha256=digests.get(item.id, "")) for item in rows}
    ledger: Any = SimpleNamespace(manifests=SimpleNamespace(get=known.get))
    resources: Any = SimpleNamespace(control_bucket="control", file_buckets=(bucket, "control"))
    return Stack(s3, ledger, resources, (), lambda _: True, lambda: NOON)


@pytest.mark.parametrize("bucket", ["input", "that-of-today"])
def test_files_of_merged_and_then_split_manifests_are_found_with_their_last_owners(
    index: FileIndex, bucket: str
) -> None:
    # Given a and b, which were merged to c, which was split into d and e
    index.add(HOUR, "a", FILES[:2])
    index.add(HOUR, "b", FILES[2:])
    rows = [row("a", "c"), row("b", "c"), row("c", "d", "e", files=3), row("d"), row("e", files=2)]
    documents = {"c": FILES, "d": FILES[:1], "e": FILES[1:]}
    report = HourReport(hour=HOUR)

    # When
    current = current_rows(stack(rows, documents, bucket), index, report)

    # Then
    assert set(current) == {"d", "e"}
    assert {name: index.files_of(name) for name in "abcde"} == {
        "a": set(), "b": set(), "c": set(), "d": set(FILES[:1]), "e": set(FILES[1:])
    }  # fmt: skip
    assert report == HourReport(hour=HOUR)


def test_a_file_that_no_successor_has_is_a_difference(index: FileIndex) -> None:
    index.add(HOUR, "a", FILES)
    report = HourReport(hour=HOUR)
    current_rows(stack([row("a", "b"), row("b", files=2)], {"b": FILES[:2]}), index, report)
    assert report.outcome == HourOutcome.DIFFERS
    assert "orders/2.json is in none of the manifests that superseded a" in str(report.differences[0])


def test_a_collection_that_is_not_divided_is_named_once(index: FileIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given two parts of it
    monkeypatch.setattr("verify.find_files.files_by_successor", lambda *_: {})
    parts = [replace(row(name), state=State.COLLECTED, collection=f"{HOUR}/00001") for name in "ab"]
    for part, file in zip(parts, FILES[:2], strict=True):
        index.add(HOUR, part.id, [file])
    report = HourReport(hour=HOUR)
    current_rows(stack(parts, {}), index, report)
    assert report.unproven == [f"files wait in the collection {HOUR}/00001: it is not divided yet"]
