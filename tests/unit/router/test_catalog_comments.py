"""catalog: what a table says about itself, and that it is said to tables of earlier versions as well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st
from ndjson_arrow import column_name, original_key

from lake.ledger.costs import MeasuredDataset
from lake.ledger.datasets import DatasetRow
from lake.settings import ConvertSettings
from router.catalog.handler import catalog, key_of_column, new_table

if TYPE_CHECKING:
    from tests.unit.router.conftest import Deployment


def table_of(deployment: Deployment, *columns: str) -> dict[str, Any]:
    deployment.ledger.datasets.register("orders")
    deployment.ledger.datasets.reserve_columns("orders", columns, 1000)
    catalog(deployment.services)
    return deployment.glue.tables["orders"]


def comments(table: dict[str, Any]) -> dict[str, str | None]:
    columns = [*table["StorageDescriptor"]["Columns"], *table["PartitionKeys"]]
    return {column["Name"]: column.get("Comment") for column in columns}


def test_a_table_tells_its_promise_and_the_keys_of_its_columns(deployment: Deployment) -> None:
    table = table_of(deployment, "city", "created__at", "a__020_b")
    assert "exactly once" in table["Description"]
    assert table["Parameters"]["hybrid_router.quarantine"] == "s3://quarantine/orders/"
    assert "rows + quarantined lines + blank lines" in table["Parameters"]["hybrid_router.promise"]
    told = comments(table)
    assert (told["city"], told["created__at"], told["a__020_b"]) == (None, "key createdAt", "key a b")
    assert all(told[name] for name in ("_rescued", "date", "hour"))


def test_a_table_that_lacks_comments_gets_them_once_and_keeps_the_words_of_others(deployment: Deployment) -> None:
    # Given: a table without comments, to which an operator has given some
    table = table_of(deployment, "created__at", "other__key")
    del table["Description"]
    promise = {"hybrid_router.promise": table["Parameters"]["hybrid_router.promise"]}
    table["Parameters"] = {**promise, "owner": "finance", "projection.date.range": "2024-01-01,NOW"}
    table["PartitionKeys"] = [{"Name": "date", "Type": "date"}, {"Name": "hour", "Type": "int"}]
    table["StorageDescriptor"]["Columns"] = [
        {"Name": "created__at", "Type": "string", "Comment": "when it was ordered"},
        {"Name": "other__key", "Type": "string"},
        {"Name": "_rescued", "Type": "string"},
    ]
    # When
    assert catalog(deployment.services)["extended"] == ["orders"]
    # Then
    table = deployment.glue.tables["orders"]
    assert "exactly once" in table["Description"]
    assert table["Parameters"]["owner"] == "finance"
    assert table["Parameters"]["projection.date.range"] == "2024-01-01,NOW"
    assert table["Parameters"]["hybrid_router.quarantine"] == "s3://quarantine/orders/"
    told = comments(table)
    assert (told["created__at"], told["other__key"]) == ("when it was ordered", "key otherKey")
    assert told["_rescued"]
    # And nothing is written again
    assert catalog(deployment.services)["extended"] == []


@given(key=st.text(st.characters(exclude_categories=["Cs"]), max_size=250))
def test_the_key_of_a_column_is_that_of_the_reader(key: str) -> None:
    name = column_name(key)
    assert key_of_column(name) == original_key(name)


def test_a_comment_is_one_visible_line_of_the_length_that_glue_takes() -> None:
    # Given: keys that command a terminal, and a key whose comment would be too long
    names = tuple(column_name(key) for key in ("a\n\x1b[2J", "Ä" * 30 + "\t" * 10))
    row = DatasetRow("orders", names, MeasuredDataset())
    # When
    told = comments(new_table(row, ConvertSettings(), "lake", "quarantine"))
    # Then
    assert told[names[0]] == "key a\\n\\x1b[2J"
    assert all(text is None or (len(text) <= 255 and text.isprintable()) for text in told.values())
