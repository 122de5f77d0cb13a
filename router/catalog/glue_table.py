"""The Glue table of a dataset. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

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


def column_names(dataset: DatasetRow, convert: ConvertSettings) -> list[str]:
    """Columns of the dataset's files: those that the ledger knows, then the product's own."""
    added = (RESCUED, *PROVENANCE) if convert.provenance else (RESCUED,)
    return [*(name for name in dataset.columns if name not in added), *added]


def new_table(dataset: DatasetRow, convert: ConvertSettings, lake_bucket: str) -> dict[str, Any]:
    """A ``TableInput`` with partition projection: Athena needs neither a crawler nor ``MSCK REPAIR``."""
    location = f"s3://{lake_bucket}/{dataset.name}/"
    return {
        "Name": dataset.name,
        "TableType": "EXTERNAL_TABLE",
        "PartitionKeys": [{"Name": "date", "Type": "date"}, {"Name": "hour", "Type": "int"}],
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
        },
        "StorageDescriptor": {
            "Location": location,
            "Columns": _columns(column_names(dataset, convert)),
            **PARQUET_FORMAT,
        },
    }


def extended_table(table: Mapping[str, Any], names: list[str]) -> dict[str, Any] | None:
    """A ``TableInput`` with the missing columns appended; None when none is missing. No column is ever removed."""
    descriptor = table["StorageDescriptor"]
    present = {column["Name"] for column in descriptor["Columns"]}
    missing = [name for name in names if name not in present]
    if not missing:
        return None
    # An empty string says as much as a missing field, and UpdateTable does not take every one (``Owner``).
    extended = {name: table[name] for name in TABLE_INPUT_FIELDS if table.get(name, "") != ""}
    extended["StorageDescriptor"] = {**descriptor, "Columns": [*descriptor["Columns"], *_columns(missing)]}
    return extended


def _columns(names: list[str]) -> list[dict[str, str]]:
    return [{"Name": name, "Type": "string"} for name in names]
