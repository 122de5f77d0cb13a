"""Commands for what a night or a day needs and costs: planned, spent, simulated, measured."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cli.commands.options import FirstHour, Json, LastHour, Local, Region, SettingsFile, Stage, on_stack

if TYPE_CHECKING:
    from cli.deployed_stack import DeployedStack

app = typer.Typer()


@app.command()
@on_stack
def plan(
    stack: DeployedStack,
    dataset: Annotated[str | None, typer.Option(help="Only the queued files of this dataset.")] = None,
    first: FirstHour = None,
    last: LastHour = None,
    engine: Annotated[str | None, typer.Option(help="Only this one of batch.engines.")] = None,
    as_json: Json = False,
) -> int:
    """Show what the next night would do with what is queued now, and its price: 0 in time, 1 too late."""
    from cli.cost.plan import print_plan

    options = {"dataset": dataset, "from": first, "to": last, "engine": engine}
    return print_plan(stack, options, as_json=as_json)


@app.command()
@on_stack
def cost(
    stack: DeployedStack,
    first: Annotated[str | None, typer.Option("--from", help="UTC day, such as 2026-11-20; today without it.")] = None,
    last: Annotated[str | None, typer.Option("--to", help="UTC day, inclusive; today without it.")] = None,
    by: Annotated[Literal["dataset", "lane", "engine", "day"], typer.Option(help="Sum up by this.")] = "dataset",
    as_json: Json = False,
) -> int:
    """Show what the job runs of some days have cost, and what the plans said: 0, or 1 if the parts do not add up."""
    from cli.cost.cost import print_cost

    return print_cost(stack, first, last, by, as_json=as_json)


@app.command()
def simulate(
    profile: Annotated[Path | None, typer.Argument(help="TOML: how many files of which sizes arrive when.")] = None,
    a_day: Annotated[str | None, typer.Option(help="Instead of a profile: all files of a day together: 2TB.")] = None,
    files_of: Annotated[str | None, typer.Option(help="With --a-day: the size of each file: 3.5MB.")] = None,
    ledger: Annotated[bool, typer.Option("--from-ledger", help="Instead: what a stage recorded of --date.")] = False,
    day: Annotated[str | None, typer.Option("--date", help="Local date of the night after it: 2026-11-18.")] = None,
    settings: SettingsFile = Path("settings/dev.toml"),
    as_json: Json = False,
    stage: Stage = "dev",
    local: Local = False,
    aws_profile: Annotated[str | None, typer.Option("--profile", help="Profile of ~/.aws/config.")] = None,
    region: Region = None,
) -> None:
    """Show what a day of files would look like: latency, backlog, the night and dollars, without any cloud."""
    from functools import partial

    from cli.connect import connect_to_stage
    from cli.cost.sizing import Source, print_simulation
    from lake.settings import load_settings

    connect = partial(connect_to_stage, stage, local=local, profile=aws_profile, region=region)
    sizes = (a_day, files_of) if a_day or files_of else None
    source = Source(profile, sizes, connect if ledger else None)
    print_simulation(source, load_settings(settings), day, as_json=as_json)


@app.command()
def calibrate(
    files: Annotated[list[Path], typer.Argument(help="NDJSON files, or folders that hold some.")],
    goal_seconds: Annotated[float, typer.Option(help="Duration of the longest conversion, about.")] = 60.0,
    cores: Annotated[int, typer.Option(help="Cores to use.")] = os.cpu_count() or 1,
    output: Annotated[Path | None, typer.Option(help="Settings file to write.")] = None,
    as_json: Json = False,
) -> None:
    """Convert your own files on this machine, more and more of them, and say which settings to use."""
    from cli.cost.sizing import calibrate_files

    calibrate_files(files, goal_seconds, cores, output, as_json=as_json)
