"""Commands that need no stack: the demo, the local cloud, settings files, and whether all is ready for one."""

import os
from pathlib import Path
from typing import Annotated, Literal

import typer

from cli.commands.options import Json, Local, Profile, Region, SettingsFile, Stage
from lake.errors import InvalidInputError

BucketRegion = Annotated[str | None, typer.Option("--region", help="AWS region of the buckets.")]

app = typer.Typer()
local_app = typer.Typer(no_args_is_help=True)
settings_app = typer.Typer(no_args_is_help=True)
app.add_typer(local_app, name="local", help="The whole cloud on this machine.")
app.add_typer(settings_app, name="settings", help="Settings files.")


@app.command()
def demo(
    data: Annotated[Path | None, typer.Option(help="Your own NDJSON: a file or a folder.")] = None,
    output: Annotated[Path, typer.Option(help="Folder for lake, quarantine and report.")] = Path("demo-output"),
) -> None:
    """Send files through both lanes on this machine and prove that nothing was lost."""
    from cli.doctor.checks import require_local_packages

    require_local_packages()
    from cli.demo.run import run_demo

    raise typer.Exit(run_demo(data, output, output / "cloud"))


@app.command()
def convert(
    names: Annotated[list[str], typer.Argument(help="Files, folders, s3://bucket/folder/, or - (standard input).")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for lake and quarantine.")],
    dataset: Annotated[
        str | None, typer.Option(help="Dataset of all files; without it the name of the folder.")
    ] = None,
    hour: Annotated[str | None, typer.Option(help="UTC hour of all files, such as 2026-11-21T08.")] = None,
    compression: Annotated[Literal["zstd", "snappy"] | None, typer.Option(help="Codec of the Parquet pages.")] = None,
    settings: Annotated[
        Path | None, typer.Option(help="Settings file: its tables convert, input and datasets.")
    ] = None,
    cores: Annotated[int, typer.Option(min=1, help="Cores to use.")] = os.cpu_count() or 1,
    replace: Annotated[
        bool, typer.Option("--replace", help="Convert files that have changed in place of their old rows.")
    ] = False,
    table: Annotated[
        bool, typer.Option("--table", help="Iceberg tables over the files, which later calls extend.")
    ] = False,
    region: BucketRegion = None,
    as_json: Json = False,
) -> None:
    """Convert files of this machine, without any cloud: 0 all lines are rows, 1 not all of them."""
    import dataclasses

    from cli.offline.convert import Request, convert_files, parse_destination, region_of_environment
    from lake.settings import Settings, load_settings
    from offline.input_files import Search

    chosen = Settings(stage="here") if settings is None else load_settings(settings)
    if compression is not None:
        packed = dataclasses.replace(chosen.convert, compression=compression)
        chosen = dataclasses.replace(chosen, convert=packed)
    search = Search(names, chosen, parse_destination(dataset, hour), region or region_of_environment(names))
    raise typer.Exit(convert_files(Request(search, output, cores, as_json, replace, table)))


@app.command(name="try")
def try_(
    file: Annotated[str, typer.Argument(help="One NDJSON file, or s3://bucket/key.")],
    key: Annotated[
        str | None, typer.Option(help="Its key in the input bucket; without it the object's, or the path as given.")
    ] = None,
    tag: Annotated[list[str] | None, typer.Option(help="A tag of the object, as name=value; may be repeated.")] = None,
    metadata: Annotated[
        list[str] | None, typer.Option(help="Metadata of the object, as name=value; may be repeated.")
    ] = None,
    settings: SettingsFile = Path("settings/dev.toml"),
    at: Annotated[str | None, typer.Option(help="UTC hour of its arrival, such as 2026-11-21T08.")] = None,
    cores: Annotated[int, typer.Option(min=1, help="Cores to use.")] = os.cpu_count() or 1,
    region: BucketRegion = None,
    as_json: Json = False,
) -> None:
    """Show what would happen to one file: lane, dataset, columns, rejects, cost; 1 if not all of it would be rows."""
    from datetime import UTC, datetime

    from cli.offline.convert import parse_destination, region_of_environment
    from cli.offline.try_file import Trial, parse_attributes, try_file
    from lake.settings import load_settings

    now = parse_destination(None, at).hour or datetime.now(UTC)
    attributes, where = parse_attributes(tag or [], metadata or []), region or region_of_environment([file])
    trial = Trial(file, key, attributes, load_settings(settings), now, cores, where)
    raise typer.Exit(try_file(trial, as_json=as_json))


@app.command()
def doctor(
    stage: Stage = "dev",
    settings: Annotated[
        Path | None, typer.Option(help="Settings file of the stage; settings/<stage>.toml without it.")
    ] = None,
    canary: Annotated[
        bool, typer.Option("--canary", help="Start each job of the stack once, for about a minute.")
    ] = False,
    athena: Annotated[
        str | None, typer.Option(help="With --canary: the workgroup in which Athena reads the Iceberg tables.")
    ] = None,
    local: Local = False,
    profile: Profile = None,
    region: Region = None,
    as_json: Json = False,
) -> None:
    """Show whether machine, account and stack are ready: 0 all is, 1 something is to do, 3 AWS is not reachable."""
    from cli.doctor.checks import examine, print_findings, run_canary

    file = settings or Path("settings") / f"{stage}.toml"
    if athena is not None and (local or not canary):
        raise InvalidInputError("--athena is for --canary on AWS: the local cloud has no Athena")
    if canary:
        raise typer.Exit(run_canary(file, stage, profile, region, athena=athena, local=local, as_json=as_json))
    if local:
        raise InvalidInputError("--local is for --canary: the other lines are about this machine and AWS")
    raise typer.Exit(print_findings(examine(file, stage, profile, region), as_json=as_json))


@local_app.command()
def up(
    settings: SettingsFile = Path("settings/dev.toml"),
    keep: Annotated[bool, typer.Option("--keep", help="Keep its buckets and logs when it ends.")] = False,
) -> None:
    """Run the whole cloud on this machine until Ctrl-C, which deletes it, and deploy a settings file's stack to it."""
    from cli.doctor.checks import require_local_packages

    require_local_packages()
    from cli.local_stage.local_up import local_up

    local_up(settings, keep=keep)


@local_app.command()
def down(stage: Stage = "dev") -> None:
    """End the local cloud of a stage as Ctrl-C does, and delete what a killed one has left."""
    from cli.local_stage.local_clouds import local_down

    raise typer.Exit(local_down(stage))


@local_app.command(name="ls")
def list_clouds(as_json: Json = False) -> None:
    """List the local clouds of this machine, with what killed ones have left."""
    from cli.local_stage.local_clouds import print_local_clouds

    raise typer.Exit(print_local_clouds(as_json=as_json))


@settings_app.command()
def check(
    path: Annotated[Path, typer.Argument(help="Settings file of a stage.")],
    as_json: Json = False,
) -> None:
    """Show every wrong value of a settings file, or what the file means: 0 it is valid, 2 not; --json: all values."""
    from cli.offline.settings import check_settings

    raise typer.Exit(check_settings(path, as_json=as_json))


@settings_app.command()
def explain(
    key: Annotated[str, typer.Argument(help="A key such as stream.trigger_seconds, or a table such as stream.")],
    as_json: Json = False,
) -> None:
    """Show meaning, unit, default and allowed values of a settings key."""
    from cli.offline.settings import explain_settings

    raise typer.Exit(explain_settings(key, as_json=as_json))
