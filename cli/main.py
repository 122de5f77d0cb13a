"""``hybrid-router``: the command line. The same commands work on AWS and on the local cloud (``--local``)."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from cli.cost_by import CostBy
from cli.error_output import errors_on_stderr
from lake.printable import printable

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Route NDJSON files to a stream or a batch lane and convert them to Parquet exactly once.",
)
local_app = typer.Typer(no_args_is_help=True, help="The whole cloud on this machine.")
settings_app = typer.Typer(no_args_is_help=True, help="Settings files.")
app.add_typer(local_app, name="local")
app.add_typer(settings_app, name="settings")

Local = Annotated[bool, typer.Option("--local", help="Use the cloud that `local up` runs on this machine.")]
Stage = Annotated[str, typer.Option(help="Stage of the stack.")]
SettingsFile = Annotated[Path, typer.Option("--settings", help="Settings file of the stage.")]


def _print_version(requested: bool) -> None:
    if requested:
        from importlib.metadata import version

        typer.echo(version("hybrid-router"))
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options of the command line itself."""


@app.command()
def demo(
    data: Annotated[Path | None, typer.Option(help="Your own NDJSON: a file or a folder.")] = None,
    output: Annotated[Path, typer.Option(help="Folder for lake, quarantine and summary.")] = Path("demo-output"),
) -> None:
    """Send files through both lanes on this machine and prove that nothing was lost."""
    from cli.local_packages import require_local_packages

    require_local_packages()
    from cli.demo.run import run_demo

    raise typer.Exit(run_demo(data, output, output / "cloud"))


@local_app.command()
def up(settings: SettingsFile = Path("settings/dev.toml")) -> None:
    """Run the whole cloud on this machine until Ctrl-C and deploy the stack of a settings file to it."""
    from cli.local_packages import require_local_packages

    require_local_packages()
    from cli.local_up import local_up

    local_up(settings)


@app.command()
def status(stage: Stage = "dev", local: Local = False) -> None:
    """Show open manifests by lane and state, their ages, and the stream's health."""
    from cli.connect import connect_to_stage
    from cli.status import print_status

    print_status(connect_to_stage(stage, local))


@app.command()
def explain(uri: str, stage: Stage = "dev", local: Local = False) -> None:
    """Show where a file is: everything that the ledger knows about s3://bucket/key."""
    from cli.connect import connect_to_stage
    from cli.explain import print_explanation

    print_explanation(connect_to_stage(stage, local), uri)


@app.command()
def promote(
    uris: Annotated[list[str] | None, typer.Argument(help="Files: s3://bucket/key.")] = None,
    dataset: Annotated[str | None, typer.Option(help="Instead of files: the queued files of this dataset.")] = None,
    first: Annotated[str | None, typer.Option("--from", help="UTC day or hour, such as 2026-11-21T08.")] = None,
    last: Annotated[str | None, typer.Option("--to", help="UTC day or hour, inclusive.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would happen; change nothing.")] = False,
    stage: Stage = "dev",
    local: Local = False,
) -> None:
    """Make queued files urgent: they go from the batch lane to the stream lane."""
    from cli.connect import connect_to_stage
    from cli.promote import promote_files

    fields = {"files": uris or None, "dataset": dataset, "from": first, "to": last}
    raise typer.Exit(promote_files(connect_to_stage(stage, local), fields, dry_run=dry_run))


@app.command()
def reprocess(
    uris: Annotated[list[str] | None, typer.Argument(help="Files: s3://bucket/key.")] = None,
    manifest: Annotated[list[str] | None, typer.Option(help="Instead of files: a manifest's id; repeatable.")] = None,
    dataset: Annotated[str | None, typer.Option(help="Instead of files: the manifests of this dataset.")] = None,
    first: Annotated[str | None, typer.Option("--from", help="UTC day or hour, such as 2026-11-21T08.")] = None,
    last: Annotated[str | None, typer.Option("--to", help="UTC day or hour, inclusive.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Also what was converted without any unreadable file.")] = False,
    now: Annotated[bool, typer.Option("--now", help="Start overnight for them at once.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would happen; change nothing.")] = False,
    stage: Stage = "dev",
    local: Local = False,
) -> None:
    """Convert again what FAILED or could not be read: it is queued for the next overnight run."""
    from cli.connect import connect_to_stage
    from cli.reprocess import reprocess_manifests

    fields = {"files": uris or None, "manifests": manifest or None, "dataset": dataset, "from": first, "to": last}
    stack = connect_to_stage(stage, local)
    raise typer.Exit(reprocess_manifests(stack, fields, every=every, now=now, dry_run=dry_run))


@app.command()
def plan(
    dataset: Annotated[str | None, typer.Option(help="Only the queued files of this dataset.")] = None,
    first: Annotated[str | None, typer.Option("--from", help="UTC day or hour, such as 2026-11-21T08.")] = None,
    last: Annotated[str | None, typer.Option("--to", help="UTC day or hour, inclusive.")] = None,
    engine: Annotated[str | None, typer.Option(help="Only this one of batch.engines.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    stage: Stage = "dev",
    local: Local = False,
) -> None:
    """Show what the next night would do with what is queued now, and its price: 0 in time, 1 too late."""
    from cli.connect import connect_to_stage
    from cli.plan import print_plan

    options = {"dataset": dataset, "from": first, "to": last, "engine": engine}
    raise typer.Exit(print_plan(connect_to_stage(stage, local), options, as_json=as_json))


@app.command()
def cost(
    first: Annotated[str, typer.Option("--from", help="UTC day, such as 2026-11-20.")],
    last: Annotated[str, typer.Option("--to", help="UTC day, inclusive.")],
    by: Annotated[CostBy, typer.Option(help="Sum up by this.")] = CostBy.DATASET,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    stage: Stage = "dev",
    local: Local = False,
) -> None:
    """Show what the job runs of some days have cost, and what the plans said: 0, or 1 if the parts do not add up."""
    from cli.connect import connect_to_stage
    from cli.cost import print_cost

    raise typer.Exit(print_cost(connect_to_stage(stage, local), first, last, by, as_json=as_json, local=local))


@app.command()
def verify(
    dataset: Annotated[str, typer.Option(help="Dataset to prove.")],
    first: Annotated[str, typer.Option("--from", help="UTC day or hour, such as 2026-11-21T08.")],
    last: Annotated[str, typer.Option("--to", help="UTC day or hour, inclusive.")],
    share: Annotated[float, typer.Option(help="Share of the manifests that are compared, above 0, at most 1.")] = 1.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    stage: Stage = "dev",
    local: Local = False,
) -> None:
    """Prove hours from the input files: 0 proven, 1 differs, 2 wrong use, 3 cannot be proven or not reachable."""
    from cli.connect import connect_to_stage
    from cli.verify import NOT_REACHABLE
    from cli.verify import verify as verify_hours
    from lake.errors import InvalidInputError

    try:
        stack = connect_to_stage(stage, local)
    except InvalidInputError as error:
        typer.echo(f"hybrid-router: {printable(str(error))}", err=True)
        raise typer.Exit(NOT_REACHABLE) from None
    options = {"dataset": dataset, "from": first, "to": last}
    raise typer.Exit(verify_hours(stack, options, share, as_json=as_json))


@app.command()
def quotas(settings: SettingsFile = Path("settings/dev.toml")) -> None:
    """Compare the AWS account's quotas with what a stage needs: 0 enough, 1 too low; before a deployment."""
    import boto3

    from cli.quotas import print_quotas
    from lake.settings import load_settings

    raise typer.Exit(print_quotas(load_settings(settings), boto3.client("service-quotas")))


@app.command()
def simulate(
    profile: Annotated[Path | None, typer.Argument(help="TOML: how many files of which sizes arrive when.")] = None,
    listing: Annotated[
        Path | None, typer.Option("--from-csv", help="Instead of a profile: a listing with the columns key,size,time.")
    ] = None,
    inventory: Annotated[
        Path | None, typer.Option("--from-inventory", help="Instead: manifest.json of an S3 Inventory report.")
    ] = None,
    ledger: Annotated[
        bool, typer.Option("--from-ledger", help="Instead: what a stage recorded before --date.")
    ] = False,
    day: Annotated[str | None, typer.Option("--date", help="Local date of the listing's night: 2026-11-18.")] = None,
    settings: SettingsFile = Path("settings/dev.toml"),
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    plots: Annotated[Path | None, typer.Option(help="Folder for plots, as PNG and SVG.")] = None,
    stage: Stage = "dev",
    local: Local = False,
) -> None:
    """Show what a day of files would look like: latency, backlog, the night and dollars, without any cloud."""
    from cli.simulate import Output, Source, simulate_source
    from lake.settings import load_settings

    source = Source(profile, listing, inventory, (stage, local) if ledger else None)
    simulate_source(source, load_settings(settings), day, Output(as_json, plots))


@app.command()
def calibrate(
    files: Annotated[list[Path], typer.Argument(help="NDJSON files, or folders that hold some.")],
    goal_seconds: Annotated[float, typer.Option(help="Duration of the longest conversion, about.")] = 60.0,
    cores: Annotated[int, typer.Option(help="Cores to use.")] = os.cpu_count() or 1,
    output: Annotated[Path | None, typer.Option(help="Settings file to write.")] = None,
    plots: Annotated[Path | None, typer.Option(help="Folder for plots, as PNG and SVG.")] = None,
) -> None:
    """Convert your own files on this machine, more and more of them, and say which settings to use."""
    from cli.calibrate import calibrate_files

    calibrate_files(files, goal_seconds, cores, output, plots)


@settings_app.command()
def check(path: Path) -> None:
    """Print all settings of a file, or the key and the value that is wrong."""
    from lake.settings import dump_settings, load_settings

    typer.echo(dump_settings(load_settings(path)))


def run() -> None:
    """Entry point: an error is one sentence on stderr and a non-zero exit code; ``--debug`` shows the stack trace."""
    debug = "--debug" in sys.argv
    if debug:
        sys.argv.remove("--debug")
    with errors_on_stderr(debug):
        app()
