"""``hybrid-router explain s3://...``: where a file is, and why it is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from cli.exit_codes import ExitCode
from cli.trace import trace_arrival
from lake.printable import printable
from router.s3_uri import format_unknown_file, parse_s3_uri

if TYPE_CHECKING:
    from cli.deployed_stack import DeployedStack
    from cli.trace import Trace


def print_explanation(stack: DeployedStack, uri: str) -> int:
    """Print every recorded version of the key: its lane and the reason, its manifests and its result.

    Returns the exit code: 1 if the ledger has no arrival of this key.

    Raises
    ------
    InvalidInputError
        ``uri`` is not an S3 URI.
    """
    name = parse_s3_uri(uri)
    arrivals = stack.ledger.arrivals.versions(name.bucket, name.key)
    if not arrivals:
        typer.echo(f"hybrid-router: {printable(format_unknown_file(uri))}", err=True)
        return ExitCode.NOT_SO
    for arrival in sorted(arrivals, key=lambda item: item.recorded_at):
        _print(trace_arrival(stack.s3, stack.ledger, stack.resources, arrival))
    return ExitCode.FINE


def _print(trace: Trace) -> None:
    arrival = trace.arrival
    typer.echo(f"{printable(arrival.file.uri)}  version {arrival.file.version}  {arrival.file.size:,} bytes")
    typer.echo(f"  arrived   {arrival.file.arrived_at}, recorded {arrival.recorded_at}")
    typer.echo(f"  lane      {arrival.lane or 'none'}: {printable(arrival.reason)}")
    for row in trace.manifests:
        typer.echo(
            f"  manifest  {row.id}  {row.state}  {row.lane} lane  {row.partition}  generation {row.generation}, "
            f"attempt {row.attempt}" + (f", owner {row.owner}" if row.owner else "")
        )
        if row.earlier_owners:
            typer.echo(f"            earlier attempts by {', '.join(row.earlier_owners)}")
        if row.reason:
            typer.echo(f"            {printable(row.reason)}")
    source = trace.source
    if source is None:
        typer.echo(f"  state     {trace.state}" + (": nothing is published yet" if trace.manifests else ""))
        return
    rejects = sum(source["rejects"].values())
    typer.echo(f"  result    {source['rows']:,} rows, {rejects:,} quarantined, {source['blank_lines']:,} blank lines")
    for reason in (source["failed"], source["first_reject"]):
        if reason:
            typer.echo(f"            {printable(reason)}")
    for item in (trace.result or {}).get("files", []):
        typer.echo(f"  parquet   {item['key']}  {item['rows']:,} rows, {item['size']:,} bytes")
