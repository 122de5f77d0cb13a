"""``hybrid-router sweep``: repairs what crashed processes left, now and not within 15 minutes."""

from __future__ import annotations

import json

import typer

from cli.deployed_stack import DeployedStack
from cli.errors import ExitCode
from lake.texts import format_count, printable

LABELS = {
    "rolledForward": ("publish", "publishes", "finished"),
    "vanished": ("publish", "publishes", "FAILED, because uploads are gone"),
    "released": ("manifest", "manifests", "released"),
    "repointed": ("pointer", "pointers", "written again"),
    "resumed": ("file", "files", "of interrupted invocations owned"),
    "adopted": ("missed file", "missed files", "owned"),
    "divided": ("collection", "collections", "divided into manifests"),
    "aborted": ("stray upload", "stray uploads", "aborted"),
    "deleted": ("replaced object", "replaced objects", "deleted"),
    "stalled": (
        "manifest",
        "manifests",
        "without progress: 'hybrid-router status{options}' shows the backlog of each lane",
    ),
    "completed": ("hour", "hours", "announced as complete"),
    "reopened": ("hour", "hours", "announced as reopened"),
    "aboveShare": ("complete hour", "complete hours", "with much in the quarantine"),
}
"""Noun for 1, noun for other numbers, what happened; commands in it have the options of the stage."""


def print_sweep(stack: DeployedStack, *, dry_run: bool, as_json: bool) -> int:
    """Invoke the function ``sweep`` and print what it repaired, or would repair; the exit code."""
    answer = stack.invoke("sweep", {"dryRun": dry_run})
    if as_json:
        typer.echo(json.dumps(answer, indent=1))
        return ExitCode.FINE
    if dry_run:
        typer.echo("dry run, nothing was done; a sweep would repair:")
        for item in answer["items"]:
            typer.echo(f"  {printable(item)}")
    found = [
        f"{format_count(answer[name], one, several)} {what.format(options=stack.options)}"
        for name, (one, several, what) in LABELS.items()
        if answer[name]
    ]
    typer.echo("\n".join(found) if found else "nothing to repair")
    return ExitCode.FINE
