"""``doctor --canary --athena WORKGROUP``: whether Athena shows the values of the Iceberg tables, and not NULLs."""

import time
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from cli.catalog.column_types import PARTITION_COLUMNS, Dialect, quoted
from cli.deployed_stack import DeployedStack
from cli.doctor.checks import Finding, Readiness
from cli.errors import advise
from lake.texts import format_count

MAX_TABLES = 3
MAX_COLUMNS = 50
ROWS = 1000
"""Rows of each table that are looked at: Athena ends its scan after them."""
SECONDS = 120


def ask_athena(stack: DeployedStack, workgroup: str, wait: Callable[[float], object] = time.sleep) -> Iterator[Finding]:
    """One finding for each of the first ``MAX_TABLES`` tables of the stage, read with the rights of the caller, and an
    error of AWS as the last one.

    ``workgroup``: it has a place for results. ``wait`` pauses for a number of seconds.
    """
    database = stack.resources.tables_database
    try:
        pages = stack.glue.get_paginator("get_tables").paginate(DatabaseName=database)
        tables = list(islice((table for page in pages for table in page["TableList"]), MAX_TABLES))
        if not tables:
            yield Finding(database, Readiness.SKIPPED, "it has no table yet")
        for table in tables:
            yield _examine(stack.open_client("athena"), workgroup, database, table, wait)
    except (BotoCoreError, ClientError) as error:
        yield Finding(database, Readiness.TO_DO, advise(error))


def _examine(
    athena: Any,  # noqa: ANN401
    workgroup: str,
    database: str,
    table: Mapping[str, Any],
    wait: Callable[[float], object],
) -> Finding:
    name = table["Name"]
    columns = [item["Name"] for item in table["StorageDescriptor"]["Columns"]]
    columns = [column for column in columns if column not in PARTITION_COLUMNS][:MAX_COLUMNS]
    place, source, *texts = (quoted(item, Dialect.ATHENA) for item in (database, name, *columns))
    counts = ", ".join(["count(*)", *(f"count({text})" for text in texts)])
    statement = f"SELECT {counts} FROM (SELECT * FROM {place}.{source} LIMIT {ROWS})"  # noqa: S608
    query = athena.start_query_execution(QueryString=statement, WorkGroup=workgroup)["QueryExecutionId"]
    status = athena.get_query_execution(QueryExecutionId=query)["QueryExecution"]["Status"]
    for _ in range(SECONDS):
        if status["State"] not in ("QUEUED", "RUNNING"):
            break
        wait(1)
        status = athena.get_query_execution(QueryExecutionId=query)["QueryExecution"]["Status"]
    else:
        athena.stop_query_execution(QueryExecutionId=query)
    if status["State"] != "SUCCEEDED":
        reason = status.get("StateChangeReason", f"after {SECONDS} seconds")
        return Finding(name, Readiness.TO_DO, f"query {query} {status['State']}: {reason}")
    _, row = athena.get_query_results(QueryExecutionId=query)["ResultSet"]["Rows"]
    rows, *filled = (int(cell["VarCharValue"]) for cell in row["Data"])
    if not rows:
        return Finding(name, Readiness.SKIPPED, "it has no rows yet")
    text = f"of {format_count(rows, 'row')} {sum(map(bool, filled))} of {len(filled)} columns have values"
    if any(filled):
        return Finding(name, Readiness.OK, text)
    return Finding(
        name, Readiness.TO_DO, f"{text}: Athena does not find the columns in the files; move no reader to it"
    )
