"""Commands that need no account: the demo, the local cloud, settings files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.commands.options import SettingsFile  # noqa: TC001

app = typer.Typer()
local_app = typer.Typer(no_args_is_help=True)
settings_app = typer.Typer(no_args_is_help=True)
app.add_typer(local_app, name="local", help="The whole cloud on this machine.")
app.add_typer(settings_app, name="settings", help="Settings files.")


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


@settings_app.command()
def check(path: Path) -> None:
    """Print all settings of a file, or the key and the value that is wrong."""
    from lake.settings import dump_settings, load_settings

    typer.echo(dump_settings(load_settings(path)))
