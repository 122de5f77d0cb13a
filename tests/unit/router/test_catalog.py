"""catalog: tables are created once, never lose a column, and only ours are changed."""

from typing import Any

import pytest

from router.catalog.handler import catalog
from tests.unit.router.conftest import Deployment


@pytest.fixture(autouse=True)
def _orders(deployment: Deployment) -> None:
    """The dataset's first manifest has registered it."""
    deployment.ledger.datasets.register("orders")


def names(deployment: Deployment) -> list[str]:
    columns = deployment.glue.tables["orders"]["StorageDescriptor"]["Columns"]
    assert {column["Type"] for column in columns} == {"string"}
    return [column["Name"] for column in columns]


def test_a_table_projects_its_partitions(deployment: Deployment) -> None:
    deployment.ledger.datasets.reserve_columns("orders", ["id", "amount"], 1000)
    assert catalog(deployment.services) == {"tables": 1, "created": ["orders"], "extended": [], "foreign": []}
    table = deployment.glue.tables["orders"]
    assert names(deployment) == ["amount", "id", "_rescued"]
    assert [(key["Name"], key["Type"]) for key in table["PartitionKeys"]] == [("date", "date"), ("hour", "int")]
    template = table["Parameters"]["storage.location.template"]
    assert template == "s3://lake/orders/date=${date}/hour=${hour}/"
    assert table["Parameters"]["projection.hour.digits"] == "2"


def test_new_columns_are_appended_and_nothing_is_removed(deployment: Deployment) -> None:
    # Given: a table to which an operator has added a column
    deployment.ledger.datasets.reserve_columns("orders", ["b"], 1000)
    catalog(deployment.services)
    deployment.glue.tables["orders"]["StorageDescriptor"]["Columns"].append({"Name": "added", "Type": "string"})
    deployment.ledger.datasets.reserve_columns("orders", ["a"], 1000)
    # When
    assert catalog(deployment.services)["extended"] == ["orders"]
    # Then
    assert names(deployment) == ["b", "_rescued", "added", "a"]
    assert catalog(deployment.services) == {"tables": 1, "created": [], "extended": [], "foreign": []}
    assert deployment.glue.tables["orders"]["VersionId"] == "1"


def test_provenance_columns_by_setting(deployment: Deployment) -> None:
    deployment.configure(convert={"provenance": True})
    deployment.ledger.datasets.reserve_columns("orders", ["a"], 1000)
    catalog(deployment.services)
    assert names(deployment) == ["a", "_rescued", "_source", "_offset", "_arrived_at"]


def test_two_writers_keep_each_others_columns(deployment: Deployment) -> None:
    # Given: another writer adds a column between the read and the write
    deployment.ledger.datasets.reserve_columns("orders", ["a"], 1000)
    catalog(deployment.services)
    deployment.ledger.datasets.reserve_columns("orders", ["b"], 1000)

    def meanwhile() -> None:
        deployment.glue.before_update = lambda: None
        table = deployment.glue.tables["orders"]
        columns = [*table["StorageDescriptor"]["Columns"], {"Name": "added", "Type": "string"}]
        descriptor = {**table["StorageDescriptor"], "Columns": columns}
        deployment.glue.tables["orders"] = {**table, "StorageDescriptor": descriptor, "VersionId": "1"}

    deployment.glue.before_update = meanwhile
    # When, Then
    catalog(deployment.services)
    assert names(deployment) == ["a", "_rescued", "added", "b"]


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
    # Given: a table of an analyst under the name of a dataset
    deployment.ledger.datasets.reserve_columns("orders", ["a"], 1000)
    catalog(deployment.services)
    theirs = {**deployment.glue.tables["orders"], **change}
    deployment.glue.tables["orders"] = theirs
    deployment.ledger.datasets.reserve_columns("orders", ["b"], 1000)
    # When
    assert catalog(deployment.services) == {"tables": 1, "created": [], "extended": [], "foreign": ["orders"]}
    # Then
    assert deployment.glue.tables["orders"] == theirs
