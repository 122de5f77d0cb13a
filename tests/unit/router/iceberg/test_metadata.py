"""Each column of the files is one column of the table; merged manifests are few and bounded."""

import io
import json
import random
from itertools import permutations
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import fastavro
import pytest
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table import StaticTable
from pyiceberg.table.metadata import TableMetadataV2

from lake.ledger.datasets import AFTER_LAST_FIELD_ID, field_id
from router.iceberg import commit
from router.iceberg.commit import Batch, commit_batch, live_entries, live_files, manifests_of
from router.iceberg.metadata import (
    NAME_MAPPING,
    DataFile,
    current_schema,
    decode_manifest_list,
    new_metadata,
    with_columns,
    without_expired,
)


@pytest.mark.parametrize("columns", list(permutations(["_pos", "_pos__", "_pos____"])))
@pytest.mark.parametrize("together", [True, False])
def test_a_reserved_name_takes_no_name_of_another_column(columns: tuple[str, ...], *, together: bool) -> None:
    metadata = new_metadata("s3://lake/_tables/orders", "u", 0, 0)
    for names in [columns] if together else [[name] for name in columns]:
        metadata = with_columns(metadata, names)
    fields = {field["id"]: field["name"] for field in current_schema(metadata)["fields"]}
    mapping = json.loads(metadata["properties"][NAME_MAPPING])
    # Each of them is mapped to its own field, and no two fields have the same name.
    found = {name: fields[item["field-id"]] for item in mapping for name in item["names"]}
    assert set(found) == {"date", "hour", *columns}
    assert len(set(found.values())) == len(found) == len(fields)
    assert "_pos" not in fields.values()


def test_a_column_of_the_files_is_not_one_that_another_writer_has_added_or_renamed() -> None:
    # Given: another writer has added X, from which a key differs only in its case, and renamed a to y
    metadata = with_columns(new_metadata("s3://lake/_tables/orders", "u", 0, 0), ["a"])
    added = metadata["last-column-id"] + 1
    assert added > AFTER_LAST_FIELD_ID
    fields = {2: "hour", field_id("a"): "y", added: "X"}
    schema = {
        "schema-id": 7,
        "fields": [{"id": number, "name": name, "type": "string"} for number, name in fields.items()],
    }
    mapping = [{"field-id": 2, "names": ["hour"]}, {"field-id": field_id("a"), "names": ["a", "y"]}]
    mapping.append({"field-id": added, "names": ["x"]})
    metadata |= {"schemas": [schema], "current-schema-id": 7, "last-column-id": added}
    metadata["properties"][NAME_MAPPING] = json.dumps(mapping)
    # When: files have keys with these names
    metadata = with_columns(metadata, ["a", "x", "y"])
    # Then
    found = {field["id"]: field["name"] for field in current_schema(metadata)["fields"]}
    assert found == {**fields, field_id("x"): "x__", field_id("y"): "y__"}
    names = {item["field-id"]: item["names"] for item in json.loads(metadata["properties"][NAME_MAPPING])}
    assert names == {2: ["hour"], field_id("a"): ["a"], added: [], field_id("x"): ["x"], field_id("y"): ["y"]}
    assert metadata["last-column-id"] == added
    assert with_columns(metadata, ["a", "x", "y"]) == metadata


def test_a_renamed_column_stays_when_another_one_gets_its_name() -> None:
    # Given: RENAME COLUMN a TO a_text, ADD COLUMN a DOUBLE, for which Iceberg's Java library moves the name
    metadata = with_columns(new_metadata("s3://lake/_tables/orders", "u", 0, 0), ["a"])
    added = metadata["last-column-id"] + 1
    kinds = {field_id("a"): ("a_text", "string"), added: ("a", "double")}
    fields = [{"id": number, "name": name, "type": kind} for number, (name, kind) in kinds.items()]
    mapping = [{"field-id": number, "names": [name]} for number, (name, _) in kinds.items()]
    metadata |= {"schemas": [{"schema-id": 7, "fields": fields}], "current-schema-id": 7, "last-column-id": added}
    metadata["properties"][NAME_MAPPING] = json.dumps(mapping)
    # When
    metadata = with_columns(metadata, ["a"])
    # Then both stay, and files without field ids have their values in the renamed one
    assert current_schema(metadata)["fields"] == fields
    assert shown_names(metadata) == {"a": "a_text"}
    assert with_columns(metadata, ["a"]) == metadata


def test_a_column_that_another_writer_has_dropped_is_restored_once() -> None:
    # Given: the schema no longer has a, but the mapping still names it
    metadata = with_columns(new_metadata("s3://lake/_tables/orders", "u", 0, 0), ["a"])
    schema = current_schema(metadata)
    fields = [field for field in schema["fields"] if field["name"] != "a"]
    metadata |= {"schemas": [{**schema, "schema-id": 7, "fields": fields}], "current-schema-id": 7}
    # When
    metadata = with_columns(metadata, ["a"])
    # Then: readers refuse a mapping that has one id twice
    assert field_id("a") in {field["id"] for field in current_schema(metadata)["fields"]}
    mapping = json.loads(metadata["properties"][NAME_MAPPING])
    assert [item["names"] for item in mapping if item["field-id"] == field_id("a")] == [["a"]]


def test_a_column_with_the_field_id_of_a_dropped_one_has_its_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("router.iceberg.metadata.field_id", lambda name: 2000 if name in ("a", "c") else field_id(name))
    metadata = with_columns(new_metadata("s3://lake/_tables/orders", "u", 0, 0), ["a", "b"])
    # When the ledger has dropped a, which no file has, and the next key gets its field id
    metadata = with_columns(metadata, ["b", "c"])
    # Then readers see its values under its name, and the values of a, if it returns, under their own name
    assert shown_names(metadata) == {"date": "date", "hour": "hour", "b": "b", "c": "c"}
    metadata = with_columns(metadata, ["a", "b", "c"], unnumbered=["a"])
    assert shown_names(metadata) == {"date": "date", "hour": "hour", "b": "b", "c": "c", "a": "a"}
    assert with_columns(metadata, ["a", "b", "c"], unnumbered=["a"]) == metadata


def shown_names(metadata: dict[str, Any]) -> dict[str, str]:
    """The columns of the table by the names in the files."""
    fields = {field["id"]: field["name"] for field in current_schema(metadata)["fields"]}
    mapping = json.loads(metadata["properties"][NAME_MAPPING])
    return {name: fields[item["field-id"]] for item in mapping for name in item["names"]}


MERGE_AT, MAX_FILES = 5, 20


def in_memory() -> Any:
    """The files of a table."""
    bodies: dict[str, bytes] = {}
    return SimpleNamespace(bodies=bodies, read=bodies.__getitem__, write=bodies.__setitem__)


@pytest.mark.parametrize("seed", range(3))
def test_merged_manifests_are_few_and_bounded(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(commit, "MERGE_AT", MERGE_AT)
    monkeypatch.setattr(commit, "MAX_MERGED_FILES", MAX_FILES)
    rng, metadata, files = random.Random(seed), new_metadata("s3://lake/_tables/orders", "u", 0, 0), in_memory()
    shown: dict[str, DataFile] = {}
    for number in range(1, 60):
        added = [
            DataFile(f"s3://lake/{number}-{item}", 1, 1, (20777, number % 24))
            for item in range(rng.choice((0, 1, 3, MAX_FILES + 10)))
        ]
        removed = rng.sample(sorted(shown), min(len(shown), rng.choice((0, 0, 0, 2))))
        before = set(files.bodies)
        batch = Batch(number, added, [shown.pop(path) for path in removed])
        metadata = commit_batch(metadata, files, batch, number, 0)
        shown |= {file.path: file for file in added}
        manifests = manifests_of(metadata, files)
        # Each file is there once.
        entries = [entry["data_file"]["file_path"] for item in manifests for entry in live_entries(item, files)]
        assert sorted(entries) == sorted(shown)
        # No half-full manifest counts as small: their number grows with the files; the number of small ones is limited.
        small = [item for item in manifests if live_files(item) < MAX_FILES // 2]
        assert len(small) <= MERGE_AT + 1 + len(removed)
        # A manifest merged in this commit is not larger than the limit.
        new = [item for item in manifests if item["manifest_path"] not in before]
        merged = [item for item in new if not item["deleted_files_count"] and live_files(item) != len(added)]
        assert all(live_files(item) <= MAX_FILES for item in merged)


def test_a_column_with_each_batch_leaves_few_schemas() -> None:
    metadata, files = new_metadata("s3://lake/_tables/orders", "u", 0, 0), in_memory()
    for number in range(1, 9):
        columns = [f"column_{item}" for item in range(number)]
        metadata = commit_batch(metadata, files, Batch(number, (), columns=columns), number, 0)
        if number == 3:
            schema = current_schema(metadata)
            fields = [*schema["fields"][:-1], {**schema["fields"][-1], "name": "renamed"}]
            changed = {**schema, "schema-id": schema["schema-id"] + 1, "fields": fields}
            metadata |= {"schemas": [*metadata["schemas"], changed], "current-schema-id": changed["schema-id"]}
    # Then snapshots from before the rename keep the earlier name, and all others have the current columns
    widths = {schema["schema-id"]: len(schema["fields"]) - 2 for schema in metadata["schemas"]}
    assert [widths[snapshot["schema-id"]] for snapshot in metadata["snapshots"]] == [3] * 3 + [8] * 5
    assert len(widths) == 2


def test_no_time_shows_the_rows_of_another_time() -> None:
    # Given three snapshots, the first of which has a tag
    metadata, files = new_metadata("s3://lake/_tables/orders", str(uuid4()), 0, 0), in_memory()
    for number in (1, 2, 3):
        metadata = commit_batch(metadata, files, Batch(number, ()), number * 1000, 0)
        tagged = {"snapshot-id": metadata["snapshots"][0]["snapshot-id"], "type": "tag"}
        metadata["refs"]["release"] = tagged
    # When the second one expires
    metadata = without_expired(metadata, 3000)
    first, last = (snapshot["snapshot-id"] for snapshot in metadata["snapshots"])
    table = StaticTable(
        ("lake", "orders"), TableMetadataV2.model_validate(metadata), "", PyArrowFileIO(), NoopCatalog("none")
    )
    # Then readers find the first one by its tag, and find nothing at the time of the second one
    tag = table.snapshot_by_name("release")
    assert tag is not None
    assert tag.snapshot_id == first
    assert [table.snapshot_as_of_timestamp(time) for time in (1500, 2500)] == [None, None]
    found = table.snapshot_as_of_timestamp(3500)
    assert found is not None
    assert found.snapshot_id == last


@pytest.mark.parametrize(("age", "is_kept"), [(2000, True), (1999, False)])
def test_a_tag_ends_at_the_age_that_its_writer_has_given(age: int, *, is_kept: bool) -> None:
    # Given a tag of the first snapshot: ALTER TABLE ... CREATE TAG release RETAIN ... DAYS
    metadata, files = new_metadata("s3://lake/_tables/orders", "u", 0, 0), in_memory()
    metadata = commit_batch(metadata, files, Batch(1, ()), 1000, 0)
    (first,) = metadata["snapshots"]
    metadata["refs"]["release"] = {"snapshot-id": first["snapshot-id"], "type": "tag", "max-ref-age-ms": age}
    metadata = commit_batch(metadata, files, Batch(2, ()), 2000, 0)
    assert "release" in metadata["refs"]
    # When
    metadata = commit_batch(metadata, files, Batch(3, ()), 3000, 2000)
    # Then
    assert ("release" in metadata["refs"], first in metadata["snapshots"]) == (is_kept, is_kept)


def test_a_manifest_list_of_an_old_writer_has_its_counts_under_other_names() -> None:
    files = in_memory()
    batch = Batch(1, [DataFile("s3://lake/a", 1, 2, (0, 0))])
    added = commit_batch(new_metadata("s3://lake/_tables/orders", "u", 0, 0), files, batch, 1, 0)
    (expected,) = manifests_of(added, files)
    reader = fastavro.reader(io.BytesIO(files.read(added["snapshots"][0]["manifest-list"])))
    schema, record = json.dumps(reader.writer_schema), dict(next(reader))  # type: ignore[arg-type]
    assert "aliases" not in schema
    old = {name.replace("_files_", "_data_files_"): value for name, value in record.items()}
    body = io.BytesIO()
    fastavro.writer(body, fastavro.parse_schema(json.loads(schema.replace("_files_", "_data_files_"))), [old])
    assert decode_manifest_list(body.getvalue()) == [expected]


def test_a_new_file_has_the_id_of_the_unsorted_order() -> None:
    files = in_memory()
    batch = Batch(1, [DataFile("s3://lake/a", 1, 2, (0, 0))])
    added = commit_batch(new_metadata("s3://lake/_tables/orders", "u", 0, 0), files, batch, 1, 0)
    # Then Trino can list it: queries of its $entries table fail for a file without an order
    (manifest,) = manifests_of(added, files)
    assert [entry["data_file"]["sort_order_id"] for entry in live_entries(manifest, files)] == [0]
