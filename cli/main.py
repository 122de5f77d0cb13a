"""``hybrid-router``: the command line. The same commands work on AWS and on the local cloud (``--local``)."""

import gc
import os
import re
import sys
from contextlib import suppress
from io import TextIOWrapper
from typing import Annotated

import typer

from cli.commands import Group
from cli.errors import errors_on_stderr
from lake.errors import InvalidInputError

GARBAGE_THRESHOLD = 50_000
"""New objects before Python looks for cycles: its default of 700 costs a tenth of the time of many small files."""
EMPTY = re.compile(r"(--[a-z-]+=)?")
"""A folder without a name would be the current folder."""

GROUPS = {
    "stream": "The streaming job.",
    "dead-letters": "Events and starts of schedules that failed in every attempt.",
    "local": "The whole cloud on this machine.",
    "settings": "Settings files.",
    "quarantine": "Lines and files that could not become rows.",
    "catalog": "Columns of datasets: propose types, drop empty ones.",
    "tables": "Iceberg tables: what they show, and what to do about one that is stopped.",
}

app = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Route NDJSON files to a stream or a batch lane and convert them to Parquet exactly once.",
)
for group, text in GROUPS.items():
    app.add_typer(typer.Typer(cls=Group, no_args_is_help=True), name=group, help=text)


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


def run() -> None:
    """Entry point: an error is one sentence on stderr and a non-zero exit code; ``--debug`` shows the stack trace."""
    gc.set_threshold(GARBAGE_THRESHOLD)
    for descriptor in range(3):
        # Another process may have set a shared pipe to non-blocking: a pause of its other end would cut the content.
        with suppress(OSError):
            os.set_blocking(descriptor, True)
    if isinstance(sys.stdout, TextIOWrapper):
        # Characters that the terminal's character set lacks, such as a letter of a key, are escaped, as on stderr.
        sys.stdout.reconfigure(errors="backslashreplace")
    if region := os.environ.get("AWS_REGION"):
        # The variable of the AWS command line; boto3 reads only the other variable.
        os.environ["AWS_DEFAULT_REGION"] = region
    debug = "--debug" in sys.argv
    if debug:
        sys.argv.remove("--debug")
    with errors_on_stderr(debug):
        if any(map(EMPTY.fullmatch, sys.argv[1:])):
            raise InvalidInputError("an argument is empty: set the variable that it is made of, or leave it out")
        app()
