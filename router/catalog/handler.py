"""Lambda function ``catalog``: one Glue table per dataset, with comments and all columns that conversions found."""

import random
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from lake.errors import TransientError
from lake.ledger import DatasetRow
from lake.ledger.datasets import PROVENANCE, RESCUED
from lake.texts import printable
from router.entry import lambda_handler
from router.services import Services
from router.telemetry import logger

TIME_PER_CALL = timedelta(minutes=4)
"""Time after which no table is begun; shorter than the function's timeout of 5 minutes."""


def catalog(services: Services) -> dict[str, Any]:
    """Create and extend tables so that they have all columns that the ledger knows. Idempotent.

    The order is random, and no table is begun after ``TIME_PER_CALL``: of many tables, each gets its turn in one of
    the next invocations. A dataset with an Iceberg table gets no other table. An error of one table does not stop the
    others. An uploader can choose the name of a dataset, so a table or view that belongs to somebody else is only
    reported. Returns the number of ``tables`` examined, and how many were ``created``, ``extended`` or ``foreign``.
    Raises ``Exception``: the first error of a table, after all others were tried; the log names each table.
    """
    datasets, stop_at = services.ledger.datasets, services.clock() + TIME_PER_CALL
    counts = dict.fromkeys(("tables", "created", "extended", "foreign"), 0)
    errors: list[Exception] = []
    names = list(datasets.names())
    random.shuffle(names)
    for dataset in datasets.rows(names):
        if services.clock() >= stop_at:
            logger.warning("not all tables were examined", datasets=len(names))
            break
        counts["tables"] += 1
        if services.settings.has_table(dataset.name):
            continue
        try:
            kind = _bring_up_to_date(services, dataset)
        except Exception as error:
            logger.exception("table not updated: the next round retries it", table=dataset.name)
            errors.append(error)
        else:
            if kind is not None:
                counts[kind] += 1
                logger.info("table checked", table=dataset.name, outcome=kind)
    logger.info("catalog", counts=counts, errors=len(errors))
    if errors:
        raise errors[0]
    return counts


handler = lambda_handler(lambda _, services: catalog(services))
"""``{}`` -> ``{"tables": n, "created": n, "extended": n, "foreign": n}``."""


def _bring_up_to_date(services: Services, dataset: DatasetRow, *, again: bool = True) -> str | None:
    glue, resources, database = services.glue, services.resources, services.resources.catalog_database
    target = new_table(dataset, resources.lake_bucket, resources.quarantine_bucket)
    try:
        table = glue.get_table(DatabaseName=database, Name=dataset.name)["Table"]
    except glue.exceptions.EntityNotFoundException:
        table = None
    try:
        if table is None:
            glue.create_table(DatabaseName=database, TableInput=target)  # type: ignore[arg-type]
            return "created"
        # It is ours if it has our parameters and the location of the dataset's objects, and is not a view.
        location = table.get("StorageDescriptor", {}).get("Location", "").rstrip("/")
        if (
            table.get("TableType") != target["TableType"]
            or location != target["StorageDescriptor"]["Location"].rstrip("/")
            or not any(name.startswith(OWN_PARAMETERS) for name in table.get("Parameters", {}))
        ):
            logger.warning("a table from elsewhere has the name of a dataset: rename one of them", table=dataset.name)
            return "foreign"
        extended = extended_table(table, target)
        if extended is None:
            return None
        version = {"VersionId": table["VersionId"]} if "VersionId" in table else {}
        glue.update_table(DatabaseName=database, TableInput=extended, SkipArchive=True, **version)  # type: ignore[arg-type]
    except (glue.exceptions.AlreadyExistsException, glue.exceptions.ConcurrentModificationException) as error:
        if again:
            return _bring_up_to_date(services, dataset, again=False)
        raise TransientError(f"the table {dataset.name} is changed by another process, or hidden: {error}") from error
    return "extended"


PARQUET_FORMAT = {
    "InputFormat": "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
    "OutputFormat": "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
    "SerdeInfo": {"SerializationLibrary": "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"},
}
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


def column_names(dataset: DatasetRow) -> list[str]:
    """Columns of the dataset's files: first the columns that the ledger knows, then the product's own."""
    return [*dataset.columns, RESCUED, *(PROVENANCE if dataset.provenance else ())]


def new_table(dataset: DatasetRow, lake_bucket: str, quarantine_bucket: str) -> dict[str, Any]:
    """A ``TableInput`` with partition projection: Athena needs neither a crawler nor ``MSCK REPAIR``."""
    location = f"s3://{lake_bucket}/{dataset.name}/"
    return {
        "Name": dataset.name,
        "Description": f"The rows of the NDJSON files of {dataset.name}, each exactly once. Every column is the text "
        f"of the file; null and a missing key are NULL. For types run 'hybrid-router catalog suggest {dataset.name}'.",
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
            "projection.date.range": "2020-01-01,NOW+1DAYS",
            "projection.date.interval": "1",
            "projection.date.interval.unit": "DAYS",
            "projection.hour.type": "integer",
            "projection.hour.range": "0,23",
            "projection.hour.digits": "2",
            "storage.location.template": f"{location}date=${{date}}/hour=${{hour}}/",
            f"{OWN_PARAMETERS}promise": "per file, lines = rows + quarantined lines + blank lines; each row exactly "
            "once",
            f"{OWN_PARAMETERS}quarantine": f"s3://{quarantine_bucket}/{dataset.name}/",
        },
        "StorageDescriptor": {
            "Location": location,
            "Columns": [
                {"Name": name, "Type": "string", **({"Comment": comment} if (comment := column_comment(name)) else {})}
                for name in column_names(dataset)
            ],
            **PARQUET_FORMAT,
        },
    }


def extended_table(table: Mapping[str, Any], target: Mapping[str, Any]) -> dict[str, Any] | None:
    """A ``TableInput`` of the table with the columns of ``target`` that it lacks; None if it lacks none.

    New columns are appended. Nothing else changes, so what an operator has added or described stays.
    """
    descriptor = table["StorageDescriptor"]
    present = {column["Name"] for column in descriptor["Columns"]}
    missing = [column for column in target["StorageDescriptor"]["Columns"] if column["Name"] not in present]
    if not missing:
        return None
    extended = {**table, "StorageDescriptor": {**descriptor, "Columns": [*descriptor["Columns"], *missing]}}
    # An empty string has the meaning of a missing field, and UpdateTable refuses some of them (``Owner``).
    return {name: extended[name] for name in TABLE_INPUT_FIELDS if extended.get(name, "") != ""}


OWN_PARAMETERS = "hybrid_router."
"""Prefix of the table parameters that are ours; all other parameters are never changed."""
OWN_COLUMNS = {
    "_rescued": "JSON object: the keys that got no column, verbatim",
    "_source": "URI of the input file",
    "_offset": "first byte of the line in the input file; decompressed, if the file is compressed",
    "_arrived_at": "when the input file arrived",
}
PARTITION_COLUMNS = {
    "date": "UTC day in which the input file was first recorded",
    "hour": "UTC hour in which the input file was first recorded",
}
_RESERVED = (*OWN_COLUMNS, *PARTITION_COLUMNS, "_tmp_metadata_row_index")
_HASHED = re.compile(r"[a-z0-9_]{160}__1[0-9a-f]{32}_")
_ENCODED = re.compile(r"__0([0-9a-f]*)_|__([a-z])")


def column_comment(name: str) -> str | None:
    """The description of a column; None if its name is its key."""
    own = OWN_COLUMNS.get(name) or PARTITION_COLUMNS.get(name)
    if own is not None:
        return own
    key = key_of_column(name)
    if key is None:
        return "its key is in the metadata of the Parquet files"
    if key == name:
        return None
    # Glue accepts 255 characters. A name has up to 200, and decoding a character makes it at most a tenth longer.
    return f"key {printable(key)}" if key else "the empty key"


def key_of_column(name: str) -> str | None:
    """The input key of this column, by the rule of docs/columns.md; None if the name is hashed."""
    if _HASHED.fullmatch(name):
        return None
    reserved = name.removesuffix("__")
    return reserved if reserved != name and reserved in _RESERVED else _ENCODED.sub(_decoded, name)


def _decoded(encoded: re.Match[str]) -> str:
    if encoded[2]:
        return encoded[2].upper()
    return chr(int(encoded[1], 16)) if encoded[1] else ""
