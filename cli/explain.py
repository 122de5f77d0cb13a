"""``hybrid-router explain s3://...``: the operator's answer to "where is my file?"."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from cli.trace import trace
from lake.errors import InvalidInputError
from router.s3_uri import format_unknown_file, parse_s3_uri

if TYPE_CHECKING:
    from cli.deployed_stack import Deployment
    from cli.trace import Trace


def print_explanation(deployment: Deployment, uri: str) -> None:
    """Every recorded version of the key, its lane and reason, its manifests and what came of it."""
    name = parse_s3_uri(uri)
    arrivals = deployment.ledger.arrivals.versions(name.bucket, name.key)
    if not arrivals:
        raise InvalidInputError(format_unknown_file(uri))
    for arrival in sorted(arrivals, key=lambda item: item.recorded_at):
        _print(trace(deployment.s3, deployment.ledger, deployment.resources, arrival))


def _print(view: Trace) -> None:
    arrival = view.arrival
    typer.echo(f"{arrival.file.uri}  version {arrival.file.version}  {arrival.file.size:,} bytes")
    typer.echo(f"  arrived   {arrival.file.arrived_at}, recorded {arrival.recorded_at}")
    typer.echo(f"  lane      {arrival.lane or 'none'}: {arrival.reason}")
    for row in view.chain:
        typer.echo(
            f"  manifest  {row.id}  {row.state}  {row.lane} lane  {row.partition}  generation {row.generation}, "
            f"attempt {row.attempt}" + (f", owner {row.owner}" if row.owner else "")
        )
        if row.earlier_owners:
            typer.echo(f"            earlier attempts by {', '.join(row.earlier_owners)}")
        if row.reason:
            typer.echo(f"            {row.reason}")
    source = view.source
    if source is None:
        typer.echo(f"  state     {view.state}: nothing is published yet" if view.chain else f"  state     {view.state}")
        return
    rejects = sum(source["rejects"].values())
    typer.echo(f"  result    {source['rows']:,} rows, {rejects:,} quarantined, {source['blank_lines']:,} blank lines")
    for reason in (source["failed"], source["first_reject"]):
        if reason:
            typer.echo(f"            {reason}")
    for item in (view.result or {}).get("files", []):
        typer.echo(f"  parquet   {item['key']}  {item['rows']:,} rows, {item['size']:,} bytes")
