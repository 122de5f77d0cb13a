"""The files of some hours: a listing in bounded memory, and the owner of each file in it.

Each page is compared with the ledger and put on disk before the next one is requested.
"""

import io
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from lake.documents import encode_body
from lake.faults import Fault, judge
from lake.layout import manifest_key
from lake.ledger import ArrivalRow, ManifestRow, State
from lake.manifest import Lane, Manifest, ObjectVersion, Partition
from verify.find_files import FileIndex, TimeOverError, current_rows, find_files, open_index
from verify.report import MAX_DIFFERENCES, HourOutcome, HourReport
from verify.stack import Hours, Stack

NOON = datetime(2026, 3, 4, 12, 30, tzinfo=UTC)
HOUR = "2026-03-04T12"
PARTITION = Partition.of("orders", NOON)
HOURS = Hours("orders", HOUR, "2026-03-04T13")
PAGE_FILES = 10
OLD_KEY = "orders/2026/01/01/a.json"


@pytest.fixture
def index(tmp_path: Path) -> Iterator[FileIndex]:
    with open_index(tmp_path) as index:
        yield index


def test_a_full_disk_is_a_fault_of_the_machine(tmp_path: Path) -> None:
    def fill() -> None:
        with open_index(tmp_path) as index:
            index._database.execute("PRAGMA max_page_count = 4")
            index.add(HOUR, "m1", map(version, range(1000)))

    # Given a database that may not grow / When, Then
    with pytest.raises(OSError, match="disk is full") as raised:
        fill()
    assert judge(raised.value) == Fault.ENVIRONMENT
    # And an invalid statement, and a text that is not a statement, are not faults of the machine
    for name, statement in (("a", "SELECT 1 FROM nowhere"), ("b", "SELECT CAST(x'ff' AS TEXT)")):
        (folder := tmp_path / name).mkdir()
        with pytest.raises(sqlite3.OperationalError), open_index(folder) as index:
            index._database.execute(statement).fetchall()


def version(number: int, instant: datetime = NOON) -> ObjectVersion:
    return ObjectVersion.of("input", f"orders/{number:05}.json", "e", number, instant, f"v{number}")


def stack(
    pages: list[dict[str, Any]], rows: Any, on_request: Callable[[dict[str, Any]], Any] = lambda _: None, **rules: Any
) -> Stack:
    """A stack whose bucket has these pages and whose ledger answers with ``rows(file)``."""
    rest = [*pages]

    def list_page(**request: Any) -> dict[str, Any]:
        on_request(request)
        return {**rest.pop(0), "IsTruncated": bool(rest), "NextKeyMarker": OLD_KEY, "NextVersionIdMarker": "v"}

    s3: Any = SimpleNamespace(list_object_versions=list_page)
    get_many = Mock(side_effect=lambda files: list(map(rows, files)))
    ledger: Any = SimpleNamespace(arrivals=SimpleNamespace(get_many=get_many))
    resources: Any = SimpleNamespace(input_bucket="input")
    return Stack(s3, ledger, resources, ("orders/",), lambda key: "foreign" not in key, lambda: NOON, **rules)


def page(files: list[ObjectVersion], instant: datetime = NOON) -> dict[str, Any]:
    return {
        "Versions": [
            {"Key": one.key, "ETag": one.etag, "Size": one.size, "LastModified": instant, "VersionId": one.version_id}
            for one in files
        ]
    }


def row_of(file: ObjectVersion, dataset: str = "orders", instant: datetime = NOON) -> ArrivalRow:
    manifest = f"m{file.size % 2}"
    return ArrivalRow(file, manifest, Partition.of(dataset, instant), Lane.BATCH, "test", NOON.isoformat())


def reports() -> dict[str, HourReport]:
    return {stamp: HourReport(hour=stamp) for stamp in HOURS.stamps()}


def test_a_page_is_on_disk_before_the_next_one_is_requested(index: FileIndex) -> None:
    # Given a listing that reads the index whenever a page is requested
    seen = []
    numbers = [range(first, first + PAGE_FILES) for first in range(0, 3 * PAGE_FILES, PAGE_FILES)]
    pages = [page([version(number) for number in group]) for group in numbers]

    # When
    looked_at = stack(pages, row_of, lambda _: seen.append(len(index.files_of("m0") | index.files_of("m1"))))
    unknown = find_files(looked_at, HOURS, index, reports())

    # Then
    assert seen == [0, PAGE_FILES, 2 * PAGE_FILES]
    assert unknown == {}
    # And the rows of a page are read at once
    read: Any = looked_at.ledger.arrivals.get_many
    assert read.call_count == 3
    assert index.manifests(HOUR) == ["m0", "m1"]
    assert index.manifests("2026-03-04T13") == []
    assert index.files_of("m1") == {version(number) for number in range(1, 3 * PAGE_FILES, 2)}


def test_files_of_other_hours_datasets_and_keys_are_left_out(index: FileIndex) -> None:
    rows = {
        version(1): row_of(version(1), "returns"),
        version(2): row_of(version(2), instant=NOON + timedelta(hours=2)),
        version(4): None,
    }
    old, late = NOON - timedelta(days=2), NOON + timedelta(days=2)
    pages = [page([version(1), version(2)]), page([version(3)], old), page([version(3)], late)]
    foreign = page([version(4)])
    foreign["Versions"][0]["Key"] = "orders/foreign.txt"
    listed = stack([*pages, foreign, {}], rows.__getitem__)
    belongs = Mock(side_effect=listed.belongs)
    assert find_files(replace(listed, belongs=belongs), HOURS, index, reports()) == {}
    assert index.manifests(HOUR) == []
    # And the rules are applied to no key of another time
    assert belongs.call_count == 3


@pytest.mark.parametrize(
    ("old_days", "second"),
    [
        (True, {"KeyMarker": OLD_KEY, "VersionIdMarker": "v"}),
        (False, {"KeyMarker": "orders/2026/03/02"}),
    ],
)
def test_folders_of_old_days_are_passed_over_on_request(
    index: FileIndex, old_days: bool, second: dict[str, str]
) -> None:
    requests = list[dict[str, Any]]()
    find_files(stack([{}, {}], row_of, requests.append), HOURS, index, reports(), old_days=old_days)
    first = {"Bucket": "input", "Prefix": "orders/"}
    assert requests == [first, first | second]


def test_a_prefix_that_takes_no_folder_is_listed_without_its_folders(index: FileIndex) -> None:
    requests = list[dict[str, Any]]()
    find_files(stack([{}, {}], row_of, requests.append, flat_prefixes={"orders/"}), HOURS, index, reports())
    assert [request["Delimiter"] for request in requests] == ["/", "/"]


def test_a_listing_ends_with_the_time_of_the_verification(index: FileIndex) -> None:
    # Given a clock that advances by a minute at each read
    times = (NOON + timedelta(minutes=minute) for minute in range(9))
    requests = list[dict[str, Any]]()
    slow = replace(stack([{}] * 9, row_of, requests.append), clock=lambda: next(times))
    # When
    with pytest.raises(TimeOverError):
        find_files(slow, HOURS, index, reports(), NOON + timedelta(minutes=3))
    # Then
    assert len(requests) == 3


def test_the_first_of_the_files_that_the_ledger_does_not_know_are_kept(index: FileIndex) -> None:
    files = [version(number) for number in range(2 * MAX_DIFFERENCES)]
    unknown = find_files(stack([page(files)], lambda _: None), HOURS, index, reports())
    assert unknown[HOUR] == files[:MAX_DIFFERENCES]


FILES = [version(number) for number in range(3)]


def row(manifest: str, *successors: str, files: int = 1) -> ManifestRow:
    state = State.SUPERSEDED if successors else State.DONE
    return ManifestRow(manifest, state, Lane.BATCH, PARTITION, NOON.isoformat(), files, files, superseded_by=successors)


def stack_of(rows: list[ManifestRow], documents: dict[str, list[ObjectVersion]], bucket: str = "input") -> Stack:
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
    current = current_rows(stack_of(rows, documents, bucket), index, report)

    # Then
    assert set(current) == {"d", "e"}
    assert {name: index.files_of(name) for name in "abcde"} == {
        "a": set(), "b": set(), "c": set(), "d": set(FILES[:1]), "e": set(FILES[1:])
    }  # fmt: skip
    assert report == HourReport(hour=HOUR)


def test_a_file_that_no_successor_has_is_a_difference(index: FileIndex) -> None:
    index.add(HOUR, "a", FILES)
    report = HourReport(hour=HOUR)
    current_rows(stack_of([row("a", "b"), row("b", files=2)], {"b": FILES[:2]}), index, report)
    assert report.outcome == HourOutcome.DIFFERS
    assert "orders/00002.json is in none of the manifests that superseded a" in str(report.differences[0])


def test_a_collection_that_is_not_divided_is_named_once(index: FileIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given two parts of it
    monkeypatch.setattr("verify.find_files.files_by_successor", lambda *_: {})
    parts = [replace(row(name), state=State.COLLECTED, collection=f"{HOUR}/00001") for name in "ab"]
    for part, file in zip(parts, FILES[:2], strict=True):
        index.add(HOUR, part.id, [file])
    report = HourReport(hour=HOUR)
    current_rows(stack_of(parts, {}), index, report)
    assert report.unproven == [f"files wait in the collection {HOUR}/00001: it is not divided yet"]
