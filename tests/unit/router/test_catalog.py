"""catalog: tables are created once, never lose a column, and foreign tables are left unchanged."""

from datetime import timedelta
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from ndjson_arrow import column_name, original_key

from lake.errors import TransientError
from lake.ledger.costs import MeasuredDataset
from lake.ledger.datasets import DATASET_NAMES, DatasetRow
from router.catalog.handler import catalog, key_of_column, new_table
from tests.unit.router.conftest import Deployment


@pytest.fixture(autouse=True)
def _orders(deployment: Deployment) -> None:
    """Keep only one dataset."""
    deployment.dynamodb.delete_item(TableName="ledger", Key={"pk": DATASET_NAMES, "sk": "clicks"})


def names(deployment: Deployment) -> list[str]:
    columns = deployment.glue.tables["orders"]["StorageDescriptor"]["Columns"]
    assert {column["Type"] for column in columns} == {"string"}
    return [column["Name"] for column in columns]


def changed(deployment: Deployment) -> dict[str, int]:
    """What a round did with the only table."""
    answer = catalog(deployment.services)
    assert answer.pop("tables") == 1
    return {kind: number for kind, number in answer.items() if number}


def table_of(deployment: Deployment, *columns: str) -> dict[str, Any]:
    deployment.ledger.datasets.reserve_columns("orders", columns, 1000)
    catalog(deployment.services)
    return deployment.glue.tables["orders"]


def test_a_table_projects_its_partitions(deployment: Deployment) -> None:
    deployment.ledger.datasets.reserve_columns("orders", ["id", "amount"], 1000)
    assert changed(deployment) == {"created": 1}
    table = deployment.glue.tables["orders"]
    assert names(deployment) == ["amount", "id", "_rescued"]
    assert [(key["Name"], key["Type"]) for key in table["PartitionKeys"]] == [("date", "date"), ("hour", "int")]
    template = table["Parameters"]["storage.location.template"]
    assert template == "s3://lake/orders/date=${date}/hour=${hour}/"
    assert table["Parameters"]["projection.hour.digits"] == "2"


def test_a_new_table_has_the_provenance_columns_of_older_files(deployment: Deployment) -> None:
    # Given files from the time when convert.provenance was on, and a table that a person has deleted
    deployment.ledger.datasets.note_provenance("orders")
    deployment.ledger.datasets.reserve_columns("orders", ["a"], 1000)
    for _ in range(2):
        # When
        assert changed(deployment) == {"created": 1}
        # Then
        assert names(deployment) == ["a", "_rescued", "_source", "_offset", "_arrived_at"]
        del deployment.glue.tables["orders"]


def test_new_columns_are_appended_and_nothing_of_another_writer_is_removed(deployment: Deployment) -> None:
    # Given: another writer that adds a column and a parameter between the read and the write
    table_of(deployment, "a")
    deployment.ledger.datasets.reserve_columns("orders", ["b"], 1000)

    def meanwhile() -> None:
        deployment.glue.before_update = lambda: None
        table = deployment.glue.tables["orders"]
        added = {"Name": "added", "Type": "string", "Comment": "ours"}
        table["Parameters"]["owner"] = "finance"
        columns = [*table["StorageDescriptor"]["Columns"], added]
        descriptor = {**table["StorageDescriptor"], "Columns": columns}
        deployment.glue.tables["orders"] = {**table, "StorageDescriptor": descriptor, "VersionId": "1"}

    deployment.glue.before_update = meanwhile
    # When, Then
    assert changed(deployment) == {"extended": 1}
    assert names(deployment) == ["a", "_rescued", "added", "b"]
    table = deployment.glue.tables["orders"]
    assert (comments(table)["added"], table["Parameters"]["owner"]) == ("ours", "finance")
    assert changed(deployment) == {}


def test_an_existing_table_that_glue_does_not_show_is_reported(deployment: Deployment) -> None:
    # Given a table that Glue reports as existing on creation, and as missing on a read
    table_of(deployment, "a")
    hidden = deployment.glue._error("EntityNotFoundException", "GetTable")
    deployment.patch.setattr(deployment.glue, "get_table", Mock(side_effect=hidden))
    # When, Then each round fails, which raises its alarm
    with pytest.raises(TransientError, match="the table orders is changed by another process, or hidden"):
        catalog(deployment.services)


@pytest.mark.parametrize(
    "change",
    [
        {"TableType": "VIRTUAL_VIEW", "Parameters": {"presto_view": "true"}},
        {"Parameters": {}},
        {
            "StorageDescriptor": {
                "Location": "s3://elsewhere/orders/",
                "Columns": [{"Name": "order__id", "Type": "bigint"}],
            }
        },
    ],
)
def test_a_table_or_view_of_others_is_reported_and_left_alone(deployment: Deployment, change: dict[str, Any]) -> None:
    # Given: an analyst's table with the name of a dataset
    theirs = {**table_of(deployment, "a"), **change}
    deployment.glue.tables["orders"] = theirs
    deployment.ledger.datasets.reserve_columns("orders", ["b"], 1000)
    # When
    assert changed(deployment) == {"foreign": 1}
    # Then
    assert deployment.glue.tables["orders"] == theirs


def comments(table: dict[str, Any]) -> dict[str, str | None]:
    columns = [*table["StorageDescriptor"]["Columns"], *table["PartitionKeys"]]
    return {column["Name"]: column.get("Comment") for column in columns}


def test_a_table_describes_its_promise_and_the_keys_of_its_columns(deployment: Deployment) -> None:
    table = table_of(deployment, "city", "created__at", "a__020_b")
    assert "exactly once" in table["Description"]
    assert table["Parameters"]["hybrid_router.quarantine"] == "s3://quarantine/orders/"
    assert "rows + quarantined lines + blank lines" in table["Parameters"]["hybrid_router.promise"]
    by_column = comments(table)
    assert (by_column["city"], by_column["created__at"], by_column["a__020_b"]) == (None, "key createdAt", "key a b")
    assert all(by_column[name] for name in ("_rescued", "date", "hour"))


@given(key=st.text(st.characters(exclude_categories=["Cs"]), max_size=250))
@example("date")
@example("_source")
@example("_tmp_metadata_row_index")
def test_the_key_of_a_column_matches_the_reader(key: str) -> None:
    name = column_name(key)
    assert key_of_column(name) == original_key(name)


def test_a_comment_is_one_visible_line_of_the_length_that_glue_takes() -> None:
    # Given: keys with terminal control characters, and the key with the longest comment
    names = tuple(column_name(key) for key in ("a\n\x1b[2J", "\U000e0100" * 22))
    row = DatasetRow("orders", names, MeasuredDataset())
    # When
    by_column = comments(new_table(row, "lake", "quarantine"))
    # Then
    assert by_column[names[0]] == "key a\\n\\x1b[2J"
    assert by_column[names[1]] == "key " + "\\U000e0100" * 22
    assert all(text is None or (len(text) <= 255 and text.isprintable()) for text in by_column.values())


def test_an_invocation_ends_in_time_and_each_table_gets_its_turn(deployment: Deployment) -> None:
    # Given four datasets, and a Glue that takes three minutes for each
    get_table = deployment.glue.get_table
    for name in "abc":
        deployment.ledger.datasets.admit({name: ""}, 0)

    def get_slowly(**request: str) -> Any:
        deployment.wait(timedelta(minutes=3))
        return get_table(**request)

    deployment.patch.setattr(deployment.glue, "get_table", get_slowly)
    # When, Then no table is begun after four minutes, and later invocations do not always begin with the same tables
    assert [catalog(deployment.services)["tables"] for _ in range(40)] == [2] * 40
    assert set(deployment.glue.tables) == {"a", "b", "c", "orders"}


def test_one_bad_table_does_not_stop_the_others_and_is_reported(deployment: Deployment) -> None:
    # Given two datasets, and a Glue that refuses the first table
    deployment.ledger.datasets.admit({"a": ""}, 0)
    refusal, get_table = deployment.glue._error("AccessDeniedException", "GetTable"), deployment.glue.get_table
    answers = {"a": Mock(side_effect=[refusal, deployment.glue._error("EntityNotFoundException", "GetTable")])}
    deployment.patch.setattr(deployment.glue, "get_table", lambda **call: answers.get(call["Name"], get_table)(**call))
    # When, Then the function raises the error, which raises its alarm, after the other table was created
    with pytest.raises(Exception, match="AccessDenied"):
        catalog(deployment.services)
    assert list(deployment.glue.tables) == ["orders"]
    # When the table is repaired, then the next round creates it
    assert catalog(deployment.services)["created"] == 1
