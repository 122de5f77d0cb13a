"""The demo's Iceberg table: what DuckDB reads of each snapshot, before and after a file is converted again."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from cli.demo.stages import POLL_SECONDS, STAGE_TIMEOUT_SECONDS, DemoError, trace_sent_file
from lake.texts import format_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cli.demo.console import DemoConsole
    from cli.demo.stages import SentFile
    from cli.deployed_stack import DeployedStack
    from local.cloud import LocalCloud


def show_table(stack: DeployedStack, cloud: LocalCloud, files: Sequence[SentFile], console: DemoConsole) -> None:
    """Bring the published files of a dataset into its table, and print what DuckDB reads of each snapshot.

    Raises
    ------
    DemoError
        It takes too long.
    """
    dataset, database = files[0].file.dataset, stack.resources.tables_database
    with console.stage(f"Iceberg: {dataset} in the table", len(files)) as report:
        deadline = time.monotonic() + STAGE_TIMEOUT_SECONDS
        while (done := sum(_is_shown(stack, item) for item in files)) < len(files):
            report(done, "")
            if time.monotonic() > deadline:
                raise DemoError(f"{dataset} was not in its table after {STAGE_TIMEOUT_SECONDS} s: see the logs")
            # The schedule would do it within a minute.
            stack.change_table({})
            time.sleep(POLL_SECONDS)
        report(done, "")
    table: Any = stack.glue.get_table(DatabaseName=database, Name=dataset)["Table"]
    location = table["Parameters"]["metadata_location"]
    from local.duckdb_iceberg import duckdb_with_iceberg

    with duckdb_with_iceberg(cloud.endpoint, cloud.access_key) as connection:
        query = "SELECT snapshot_id FROM iceberg_snapshots(?) ORDER BY sequence_number"
        snapshots = connection.execute(query, [location]).fetchall()
        for number, (snapshot,) in enumerate(snapshots, start=1):
            query = "SELECT count(*) FROM iceberg_scan(?, snapshot_from_id => ?)"
            ((rows,),) = connection.execute(query, [location, snapshot]).fetchall()
            found = f"{format_count(rows, 'row')} in snapshot {number} of {len(snapshots)}"
            console.log(f"DuckDB reads {database}.{dataset}: {found}")


def convert_again(stack: DeployedStack, files: Sequence[SentFile]) -> None:
    """Queue the files for the next execution, although they are published."""
    manifests = [trace.manifests[-1].id for item in files if (trace := trace_sent_file(stack, item)) is not None]
    stack.reprocess({"manifests": manifests, "only": "all"})


def _is_shown(stack: DeployedStack, file: SentFile) -> bool:
    trace = trace_sent_file(stack, file)
    return trace is not None and bool(trace.manifests) and trace.manifests[-1].is_tabled
