"""``hybrid-router promote``, ``reprocess`` and ``sweep``: requests of a person to functions of the stack."""

import json
import secrets
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import typer

from cli.commands import DryRun, Files, FirstHour, Json, LastHour, command, given
from cli.deployed_stack import DeployedStack
from cli.errors import ExitCode
from lake.errors import InvalidInputError
from lake.texts import format_size, printable
from router.sweep.handler import COUNTS


def print_messages(response: Mapping[str, Any]) -> None:
    for message in response["messages"]:
        typer.echo(printable(message))
    if response["omitted"]:
        typer.echo(f"... and {response['omitted']:,} more")


UNPROMOTED_LABELS = {
    "inStream": "already in the stream lane",
    "tooLate": "too late",
    "notMoved": "not moved",
    "ignored": "ignored",
    "notRouted": "not routed yet",
    "unknown": "unknown",
}
PROMOTE_EXAMPLES = (
    "run 'hybrid-router promote s3://bucket/key', or "
    "'hybrid-router promote --dataset orders --from 2026-11-21T08 --to 2026-11-21T09'"
)


@command("promote")
def promote_files(
    stack: DeployedStack,
    uris: Files = None,
    dataset: Annotated[str | None, typer.Option(help="Instead of files: the queued files of this dataset.")] = None,
    first: FirstHour = None,
    last: LastHour = None,
    *,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> int:
    """Make queued files urgent: they go from the batch lane to the stream lane."""
    fields = given({"files": uris or None, "dataset": dataset, "from": first, "to": last})
    if ("files" in fields) == bool(fields.keys() - {"files"}):
        raise InvalidInputError(f"promote needs either files or a selection of the backlog: {PROMOTE_EXAMPLES}")
    response = stack.invoke("promote", {**fields, "dryRun": dry_run})
    if as_json:
        typer.echo(json.dumps(response, indent=1))
    else:
        print_messages(response)
        typer.echo(_promoted(response))
    return _exit_code(response, ("promoted", *UNPROMOTED_LABELS))


def _promoted(response: Mapping[str, Any]) -> str:
    unpromoted = [f"{response[name]:,} {label}" for name, label in UNPROMOTED_LABELS.items() if response[name]]
    if not response["promoted"] and not unpromoted:
        return "nothing to promote: no file of this selection is queued"
    action = "dry run, nothing was done; to be promoted" if response["dryRun"] else "promoted"
    manifests = f" (new manifests: {response['manifests']:,})" if response["manifests"] else ""
    return ", ".join([f"{action}: {response['promoted']:,}{manifests}", *unpromoted])


UNQUEUED_LABELS = {
    "open": "still open",
    "repeated": "queued by this request before",
    "converted": "converted already",
    "ignored": "ignored",
    "unusable": "unusable",
    "unknown": "unknown",
}
FRUITLESS = {"ignored", "unusable", "unknown"}
"""Outcomes that a person has to look at: nothing converts these files."""
REPROCESS_EXAMPLES = (
    "run 'hybrid-router reprocess s3://bucket/key', or 'hybrid-router reprocess --manifest <id>', or "
    "'hybrid-router reprocess --dataset orders --from 2026-11-21T08 --to 2026-11-21T09'"
)


@command("reprocess")
def reprocess_manifests(
    stack: DeployedStack,
    uris: Files = None,
    manifest: Annotated[
        list[str] | None, typer.Option(help="Instead of files: a manifest's id; may be repeated.")
    ] = None,
    dataset: Annotated[str | None, typer.Option(help="Instead of files: the manifests of this dataset.")] = None,
    first: FirstHour = None,
    last: LastHour = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="Also what was converted without any unreadable file.")] = False,
    now: Annotated[bool, typer.Option("--now", help="Start overnight for them at once.")] = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> int:
    """Convert again what FAILED or could not be read: it is queued for the next overnight run."""
    selection = {"files": uris or None, "manifests": manifest or None, "dataset": dataset, "from": first, "to": last}
    fields = given(selection)
    named = fields.keys() & {"files", "manifests"}
    if len(named) + bool(fields.keys() - named) != 1:
        raise InvalidInputError(f"reprocess needs files, manifests, or a dataset or hours: {REPROCESS_EXAMPLES}")
    only = "all" if every else "failed"
    # All pages are one request: the function queues a manifest once for each, also when an invocation is repeated.
    event = {**fields, "only": only, "dryRun": dry_run, "request": f"command-{secrets.token_hex(8)}"}
    response = _invoke_to_the_end(stack, event, is_quiet=as_json)
    selection = response["selection"]
    if not as_json:
        # Before the start, which may be refused.
        typer.echo(_requeued(response))
        if selection is not None and not dry_run:
            typer.echo("the next overnight run converts them")
    is_started = selection is not None and now and not dry_run
    overnight = stack.start("overnight", selection) if is_started else None
    if as_json:
        typer.echo(json.dumps({**response, "overnight": overnight}, indent=1))
    elif overnight:
        typer.echo(f"overnight started: {overnight}")
    return _exit_code(response, ("queued", *UNQUEUED_LABELS))


def _exit_code(response: Mapping[str, Any], names: Iterable[str]) -> ExitCode:
    """The exit code for these counts: 1 if all that was named is what a person has to look at."""
    outcomes = {name for name in names if response[name]}
    return ExitCode.NOT_SO if outcomes and outcomes <= FRUITLESS else ExitCode.FINE


def _invoke_to_the_end(stack: DeployedStack, event: Mapping[str, Any], *, is_quiet: bool) -> dict[str, Any]:
    """The last response, which has the totals of all; prints the messages of each unless ``is_quiet``."""
    token = None
    while True:
        response = stack.invoke("reprocess", event if token is None else {**event, "token": token})
        if not is_quiet:
            print_messages(response)
        token = response["token"]
        if token is None:
            return response
        if not is_quiet:
            typer.echo(f"so far: {_requeued(response)}")


def _requeued(response: Mapping[str, Any]) -> str:
    unqueued = [f"{response[name]:,} {label}" for name, label in UNQUEUED_LABELS.items() if response[name]]
    if not response["queued"] and not unqueued:
        return "nothing to reprocess: no manifest of this selection has ended"
    action = (
        "dry run, nothing was done; manifests to be queued again" if response["dryRun"] else "manifests queued again"
    )
    size = f" (files: {response['files']:,}, {format_size(response['bytes'])})" if response["queued"] else ""
    return ", ".join([f"{action}: {response['queued']:,}{size}", *unqueued])


@command("sweep")
def print_sweep(stack: DeployedStack, *, dry_run: DryRun = False, as_json: Json = False) -> int:
    """Repair now what crashed processes left; a schedule does so every 15 minutes."""
    answer = stack.invoke("sweep", {"dryRun": dry_run})
    if as_json:
        typer.echo(json.dumps(answer, indent=1))
        return ExitCode.FINE
    if dry_run:
        typer.echo("dry run, nothing was done; a sweep would repair:")
        for item in answer["items"]:
            typer.echo(f"  {printable(item)}")
    found = [f"{stack.runnable(label)}: {answer[name]:,}" for name, label in COUNTS.items() if answer[name]]
    typer.echo("\n".join(found) if found else "nothing to repair")
    return ExitCode.FINE
