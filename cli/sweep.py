"""``hybrid-router sweep``: repairs what crashed processes left, now and not within 15 minutes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import typer

from cli.exit_codes import ExitCode
from lake.printable import printable

if TYPE_CHECKING:
    from cli.deployed_stack import DeployedStack

LABELS = {
    "rolledForward": "publishes finished",
    "vanished": "publishes FAILED, because their uploads are gone",
    "released": "manifests released",
    "repointed": "pointers written again",
    "resumed": "files of interrupted invocations owned",
    "adopted": "missed files owned",
    "aborted": "stray uploads aborted",
    "deleted": "replaced objects deleted",
    "foreign": "foreign objects, left alone",
    "stalled": "manifests without progress: 'hybrid-router status' shows their lane",
    "completed": "hours announced as complete",
    "reopened": "hours announced as reopened",
    "aboveShare": "complete hours much of which is in the quarantine",
}


def print_sweep(stack: DeployedStack, *, dry_run: bool, as_json: bool) -> int:
    """Invoke the function ``sweep`` and print what it repaired, or would repair; the exit code.

    Raises
    ------
    FunctionFailedError
        A repair failed.
    """
    answer = stack.sweep(dry_run=dry_run)
    if as_json:
        typer.echo(json.dumps(answer, indent=1))
        return ExitCode.FINE
    if dry_run:
        typer.echo("dry run, nothing was done; a sweep would repair:")
        for item in answer["items"]:
            typer.echo(f"  {printable(item)}")
    found = [f"{answer[name]:,} {label}" for name, label in LABELS.items() if answer[name]]
    typer.echo("\n".join(found) if found else "nothing to repair")
    return ExitCode.FINE
