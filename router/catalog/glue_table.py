"""What a dataset's Glue table looks like: pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lake.ledger import DatasetRow
    from lake.settings import ConvertSettings

RESCUED = "_rescued"
PROVENANCE = ("_source", "_offset", "_arrived_at")
PARQUET = {
    "InputFormat": "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
    "OutputFormat": "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
    "SerdeInfo": {"SerializationLibrary": "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"},
}
FIRST_DATE = "2020-01-01"
"""Partitions are projected from this date on."""
WRITABLE = (
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
"""Fields of GetTable's answer that UpdateTable takes."""


def column_names(dataset: DatasetRow, convert: ConvertSettings) -> list[str]:
    """Columns of the dataset's files: those the ledger knows, then our own."""
    own = (RESCUED, *PROVENANCE) if convert.provenance else (RESCUED,)
    return [*(name for name in dataset.columns if name not in own), *own]


def new_table(dataset: DatasetRow, convert: ConvertSettings, lake_bucket: str) -> dict[str, Any]:
    """A ``TableInput`` whose partitions Athena projects: no crawler, no MSCK."""
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
        "StorageDescriptor": {"Location": location, "Columns": _columns(column_names(dataset, convert)), **PARQUET},
    }


def extended_table(table: Mapping[str, Any], names: list[str]) -> dict[str, Any] | None:
    """A ``TableInput`` with the missing columns appended; None when none is missing. Nothing is ever removed."""
    descriptor = table["StorageDescriptor"]
    present = {column["Name"] for column in descriptor["Columns"]}
    missing = [name for name in names if name not in present]
    if not missing:
        return None
    extended = {name: table[name] for name in WRITABLE if name in table}
    extended["StorageDescriptor"] = {**descriptor, "Columns": [*descriptor["Columns"], *_columns(missing)]}
    return extended


def _columns(names: list[str]) -> list[dict[str, str]]:
    return [{"Name": name, "Type": "string"} for name in names]
