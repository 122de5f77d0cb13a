"""The Glue table of a dataset. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from router.catalog.comments import (
    OWN_PARAMETERS,
    PARTITION_COLUMNS,
    column_comment,
    own_parameters,
    table_description,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lake.ledger import DatasetRow
    from lake.settings import ConvertSettings

RESCUED = "_rescued"
"""Column with the keys beyond ``convert.column_limit``."""
PROVENANCE = ("_source", "_offset", "_arrived_at")
"""Columns added by ``convert.provenance``."""
PARQUET_FORMAT = {
    "InputFormat": "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
    "OutputFormat": "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
    "SerdeInfo": {"SerializationLibrary": "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"},
}
FIRST_DATE = "2020-01-01"
"""First date of the partition projection."""
TABLE_INPUT_FIELDS = (
    "Name",
    "Description",
    "Owner",
    "Retention",
    "StorageDescriptor",
    "PartitionKeys",
    "ViewOriginalText",
    "ViewExpandedText",
    "TableType",
    "Parameters",
)
"""Fields of GetTable's answer that UpdateTable accepts (AWS Glue API, ``TableInput``)."""
CHANGED_FIELDS = ("StorageDescriptor", "PartitionKeys", "Description", "Parameters")
"""Fields in which a table can lack something."""


def column_names(dataset: DatasetRow, convert: ConvertSettings) -> list[str]:
    """Columns of the dataset's files: those that the ledger knows, then the product's own."""
    added = (RESCUED, *PROVENANCE) if convert.provenance else (RESCUED,)
    return [*(name for name in dataset.columns if name not in added), *added]


def new_table(
    dataset: DatasetRow, convert: ConvertSettings, lake_bucket: str, quarantine_bucket: str
) -> dict[str, Any]:
    """A ``TableInput`` with partition projection: Athena needs neither a crawler nor ``MSCK REPAIR``."""
    location = f"s3://{lake_bucket}/{dataset.name}/"
    return {
        "Name": dataset.name,
        "Description": table_description(dataset.name),
        "TableType": "EXTERNAL_TABLE",
        "PartitionKeys": [
            {"Name": name, "Type": kind, "Comment": PARTITION_COLUMNS[name]}
            for name, kind in (("date", "date"), ("hour", "int"))
        ],
        "Parameters": {
            "EXTERNAL": "TRUE",
            "classification": "parquet",
            "projection.enabled": "true",
            "projection.date.type": "date",
            "projection.date.format": "yyyy-MM-dd",
            "projection.date.range": f"{FIRST_DATE},NOW+1DAYS",
            "projection.date.interval": "1",
            "projection.date.interval.unit": "DAYS",
            "projection.hour.type": "integer",
            "projection.hour.range": "0,23",
            "projection.hour.digits": "2",
            "storage.location.template": f"{location}date=${{date}}/hour=${{hour}}/",
            **own_parameters(dataset.name, quarantine_bucket),
        },
        "StorageDescriptor": {
            "Location": location,
            "Columns": _commented({"Name": name, "Type": "string"} for name in column_names(dataset, convert)),
            **PARQUET_FORMAT,
        },
    }


def is_own_table(table: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether ``catalog`` has created it: a table with our parameters over the dataset's objects, and not a view."""
    location = table.get("StorageDescriptor", {}).get("Location", "").rstrip("/")
    return (
        table.get("TableType") == wanted["TableType"]
        and location == wanted["StorageDescriptor"]["Location"].rstrip("/")
        and any(name.startswith(OWN_PARAMETERS) for name in table.get("Parameters", {}))
    )


def extended_table(table: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any] | None:
    """A ``TableInput`` of the table with what it lacks of ``wanted``; None when it lacks nothing.

    Columns are appended and none is ever removed. Description and comments are added where there are none, and of the
    parameters only ours are set: what an operator has changed stays.
    """
    extended = dict(table)
    descriptor = table["StorageDescriptor"]
    present = {column["Name"] for column in descriptor["Columns"]}
    missing = [column for column in wanted["StorageDescriptor"]["Columns"] if column["Name"] not in present]
    columns = _commented([*descriptor["Columns"], *missing])
    extended["StorageDescriptor"] = {**descriptor, "Columns": columns}
    extended["PartitionKeys"] = _commented(table.get("PartitionKeys", ()))
    extended["Description"] = table.get("Description") or wanted["Description"]
    own = {name: value for name, value in wanted["Parameters"].items() if name.startswith(OWN_PARAMETERS)}
    extended["Parameters"] = {**table.get("Parameters", {}), **own}
    if all(extended[name] == table.get(name) for name in CHANGED_FIELDS):
        return None
    # An empty string says as much as a missing field, and UpdateTable does not take every one (``Owner``).
    return {name: extended[name] for name in TABLE_INPUT_FIELDS if extended.get(name, "") != ""}


def _commented(columns: Iterable[Mapping[str, str]]) -> list[dict[str, str]]:
    """The columns, with a comment where they have none and there is something to say."""
    return [
        {**column, "Comment": comment}
        if not column.get("Comment") and (comment := column_comment(column["Name"]))
        else dict(column)
        for column in columns
    ]
