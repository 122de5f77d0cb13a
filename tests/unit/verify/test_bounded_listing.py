"""The listing of the input: each page is compared with the ledger and put on disk before the next one is requested."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lake.ledger import ArrivalRow
from lake.manifest import Identity, Lane, ObjectVersion, Partition
from lake.settings import ConvertSettings
from verify.find_files import FileIndex, find_files
from verify.report import MAX_DIFFERENCES
from verify.stack import Hours, Stack

NOON = datetime(2026, 3, 4, 12, 30, tzinfo=UTC)
HOURS = Hours("orders", "2026-03-04T12", "2026-03-04T13")
PAGE_FILES = 10


@pytest.fixture
def index(tmp_path: Path) -> Iterator[FileIndex]:
    with FileIndex(tmp_path) as index:
        yield index


def version(number: int, instant: datetime = NOON) -> ObjectVersion:
    return ObjectVersion.of("input", f"orders/{number:05}.json", "e", number, instant, f"v{number}")


def stack(pages: Any, rows: Any) -> Stack:
    """A stack whose bucket has these pages and whose ledger answers with ``rows(file)``."""
    s3: Any = SimpleNamespace(get_paginator=lambda _: SimpleNamespace(paginate=lambda **_: pages))
    ledger: Any = SimpleNamespace(arrivals=SimpleNamespace(get=rows))
    resources: Any = SimpleNamespace(input_bucket="input")
    return Stack(s3, ledger, resources, ConvertSettings(), ("orders/",), lambda key: "foreign" not in key, lambda: NOON)


def page(files: list[ObjectVersion], instant: datetime = NOON) -> dict[str, Any]:
    return {
        "Versions": [
            {
                "Key": file.key,
                "ETag": file.etag,
                "Size": file.size,
                "LastModified": instant,
                "VersionId": file.version_id,
            }
            for file in files
        ]
    }


def row_of(file: ObjectVersion, dataset: str = "orders", instant: datetime = NOON) -> ArrivalRow:
    manifest = f"m{file.size % 2}"
    return ArrivalRow(file, manifest, Partition.of(dataset, instant), Lane.BATCH, "test", NOON.isoformat())


def test_a_page_is_on_disk_before_the_next_one_is_requested(index: FileIndex) -> None:
    # Given a listing that looks at the index whenever a page is requested
    seen = []

    def pages() -> Iterator[dict[str, Any]]:
        for number in range(3):
            seen.append(len(index.files_of("m0") | index.files_of("m1")))
            yield page([version(PAGE_FILES * number + item) for item in range(PAGE_FILES)])

    # When
    unowned = find_files(stack(pages(), row_of), HOURS, index)

    # Then
    assert seen == [0, PAGE_FILES, 2 * PAGE_FILES]
    assert unowned == {}
    assert index.manifests("2026-03-04T12") == ["m0", "m1"]
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
    assert find_files(stack([*pages, foreign, {}], rows.__getitem__), HOURS, index) == {}
    assert index.manifests("2026-03-04T12") == []


def test_files_that_the_ledger_does_not_know_are_counted_and_the_first_ones_kept(index: FileIndex) -> None:
    files = [version(number) for number in range(2 * MAX_DIFFERENCES)]
    unknown = find_files(stack([page(files)], lambda _: None), HOURS, index)["2026-03-04T12"].unknown
    assert unknown.number == 2 * MAX_DIFFERENCES
    assert [file for file, _ in unknown.first] == files[:MAX_DIFFERENCES]


def test_the_first_publisher_of_a_file_is_remembered(index: FileIndex) -> None:
    one, other = Identity.of(version(1)), Identity.of(version(2))
    assert index.publisher(one, "a") == "a"
    assert index.publisher(one, "b") == "a"
    assert index.publisher(other, "b") == "b"


def test_files_that_others_have_are_forgotten(index: FileIndex) -> None:
    index.add("2026-03-04T12", "a", [version(1)])
    index.add("2026-03-04T12", "b", [version(1), version(1)])
    index.remove("a")
    assert index.manifests("2026-03-04T12") == ["b"]
    assert (index.files_of("a"), index.files_of("b")) == (set(), {version(1)})
