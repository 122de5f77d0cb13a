"""``hybrid-router``: the command line. The same commands work on AWS and on the local cloud (``--local``)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from cli.output import guarded

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Routes NDJSON to Parquet, exactly once.",
)
local_app = typer.Typer(no_args_is_help=True, help="The whole cloud on this machine.")
settings_app = typer.Typer(no_args_is_help=True, help="Settings files.")
app.add_typer(local_app, name="local")
app.add_typer(settings_app, name="settings")

Local = Annotated[bool, typer.Option("--local", help="Talk to the cloud that `local up` runs on this machine.")]
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
    output: Annotated[Path, typer.Option(help="Where lake, quarantine and summary are put.")] = Path("demo-output"),
) -> None:
    """Send files through both lanes on this machine and prove that nothing was lost."""
    from cli.local_packages import require_local_packages

    require_local_packages()
    from cli.demo.run import run_demo

    raise typer.Exit(run_demo(data, output, output / "cloud"))


@local_app.command()
def up(settings: SettingsFile = Path("settings/dev.toml")) -> None:
    """Run the cloud on this machine until Ctrl-C, with the stack of a settings file deployed."""
    from cli.local_packages import require_local_packages

    require_local_packages()
    from cli.local_up import local_up

    local_up(settings)


@app.command()
def status(stage: Stage = "dev", local: Local = False) -> None:
    """Open manifests by lane and state, their ages, and the stream's health."""
    from cli.connect import connect
    from cli.status import print_status

    print_status(connect(stage, local))


@app.command()
def explain(uri: str, stage: Stage = "dev", local: Local = False) -> None:
    """Where is my file? Everything the ledger knows of s3://bucket/key."""
    from cli.connect import connect
    from cli.explain import print_explanation

    print_explanation(connect(stage, local), uri)


@app.command()
def promote(
    uris: Annotated[list[str] | None, typer.Argument(help="Files: s3://bucket/key.")] = None,
    dataset: Annotated[str | None, typer.Option(help="Instead of files: this dataset's.")] = None,
    first: Annotated[str | None, typer.Option("--from", help="UTC day or hour, such as 2026-11-21T08.")] = None,
    last: Annotated[str | None, typer.Option("--to", help="UTC day or hour, inclusive.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would happen.")] = False,
    stage: Stage = "dev",
    local: Local = False,
) -> None:
    """Make queued files urgent: they go from the batch lane to the stream lane."""
    from cli.connect import connect
    from cli.promote import promote_files

    given = {"files": uris or None, "dataset": dataset, "from": first, "to": last}
    raise typer.Exit(promote_files(connect(stage, local), given, dry_run=dry_run))


@settings_app.command()
def check(path: Path) -> None:
    """Read a settings file; a wrong value is named with its key."""
    from lake.settings import dump_settings, load_settings

    typer.echo(dump_settings(load_settings(path)))


def run() -> None:
    """Entry point: deliberate errors are one sentence and exit code 1; ``--debug`` shows the stack trace."""
    debug = "--debug" in sys.argv
    if debug:
        sys.argv.remove("--debug")
    with guarded(debug):
        app()
