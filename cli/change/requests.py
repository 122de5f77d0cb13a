"""``hybrid-router promote``, ``reprocess`` and ``sweep``: requests of a person to functions of the stack."""

import secrets
from collections.abc import Iterable, Mapping, Set
from typing import Annotated, Any

import typer

from cli.commands import Answer, DryRun, Files, FirstHour, Json, LastHour, given
from cli.deployed_stack import DeployedStack
from cli.errors import ExitCode
from lake.errors import InvalidInputError
from lake.texts import format_count, format_size, printable
from router.sweep.handler import COUNTS

UNPROMOTED_LABELS = {
    "inStream": "already in the stream lane",
    "tooLate": "too late",
    "notMoved": "not moved",
    "ignored": "ignored",
    "notRouted": "not routed yet",
    "unknown": "unknown",
}


def promote_command(
    stack: DeployedStack,
    uris: Files = None,
    dataset: Annotated[str | None, typer.Option(help="Instead of files: the queued files of this dataset.")] = None,
    first: FirstHour = None,
    last: LastHour = None,
    *,
    dry_run: DryRun = False,
) -> Answer:
    """Make queued files urgent: they go from the batch lane to the stream lane."""
    fields = given({"files": uris or None, "dataset": dataset, "from": first, "to": last})
    _check_target("promote", fields, {"files"})
    response = stack.invoke("promote", {**fields, "dryRun": dry_run})
    return Answer(response, lambda: _print_promoted(response), _exit_code(response, ("promoted", *UNPROMOTED_LABELS)))


def _print_promoted(response: Mapping[str, Any]) -> None:
    _print_messages(response)
    manifests = f" (new manifests: {response['manifests']:,})" if response["manifests"] else ""
    text = _summary(response, "promoted", UNPROMOTED_LABELS, f"promoted: {response['promoted']:,}{manifests}")
    typer.echo(text or "nothing to promote: no file of this selection waits in the batch lane")


def _check_target(command: str, fields: Mapping[str, Any], lists: Set[str]) -> None:
    named = fields.keys() & lists
    if len(named) + bool(fields.keys() - named) != 1:
        raise InvalidInputError(
            f"{command} needs either {' or '.join(sorted(lists))}, or a dataset or hours: run 'hybrid-router {command} "
            f"s3://bucket/key', or 'hybrid-router {command} --dataset orders --from 2026-11-21T08 --to 2026-11-21T09'"
        )


def _print_messages(response: Mapping[str, Any]) -> None:
    for message in response["messages"]:
        typer.echo(printable(message))
    if response["omitted"]:
        typer.echo(f"... and {response['omitted']:,} more")


def _summary(response: Mapping[str, Any], done: str, labels: Mapping[str, str], text: str) -> str:
    """Return a text of the member ``done`` and of the other numbers by their labels; empty if all are 0."""
    others = [f"{response[name]:,} {label}" for name, label in labels.items() if response[name]]
    if not response[done] and not others:
        return ""
    return ", ".join([f"dry run, nothing was done; to be {text}" if response["dryRun"] else text, *others])


UNQUEUED_LABELS = {
    "open": "still open",
    "repeated": "queued by this request before",
    "converted": "converted already",
    "ignored": "ignored",
    "unusable": "unusable",
    "unknown": "unknown",
}
WITHOUT_EFFECT = {"ignored", "unusable", "unknown"}
"""Outcomes that need a person: nothing converts these files."""


def reprocess_command(
    stack: DeployedStack,
    uris: Files = None,
    manifest: Annotated[
        list[str] | None, typer.Option(help="Instead of files: a manifest's id; may be repeated.")
    ] = None,
    dataset: Annotated[str | None, typer.Option(help="Instead of files: the manifests of this dataset.")] = None,
    first: FirstHour = None,
    last: LastHour = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="Include manifests without unreadable files.")] = False,
    now: Annotated[bool, typer.Option("--now", help="Start overnight for them at once.")] = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> int:
    """Convert again what FAILED or could not be read: it is queued for the next overnight run."""
    selection = {"files": uris or None, "manifests": manifest or None, "dataset": dataset, "from": first, "to": last}
    fields = given(selection)
    _check_target("reprocess", fields, {"files", "manifests"})
    # All pages are one request, for which the function queues a manifest once, even if an invocation is repeated.
    event = {**fields, "all": every, "dryRun": dry_run, "request": f"command-{secrets.token_hex(8)}"}
    while True:
        response = stack.invoke("reprocess", event)
        if not as_json:
            _print_messages(response)
        if response["token"] is None:
            break
        event["token"] = response["token"]
        if not as_json:
            typer.echo(f"so far: {_requeued(response)}")
    selection = response["selection"]
    if not as_json:
        # Printed before the start, which may be refused.
        typer.echo(_requeued(response))
        if selection is not None and not dry_run:
            typer.echo("the next overnight run converts them")
    is_started = selection is not None and now and not dry_run
    overnight = stack.start("overnight", selection) if is_started else None
    if as_json or overnight:
        text = f"overnight started: {overnight}"
        Answer({**response, "overnight": overnight}, lambda: typer.echo(text)).print(as_json=as_json)
    return _exit_code(response, ("queued", *UNQUEUED_LABELS))


def _exit_code(response: Mapping[str, Any], names: Iterable[str]) -> ExitCode:
    """Return the exit code for these counts: 1 if all named files or manifests need a person."""
    outcomes = {name for name in names if response[name]}
    return ExitCode.NEGATIVE if outcomes and outcomes <= WITHOUT_EFFECT else ExitCode.OK


def _requeued(response: Mapping[str, Any]) -> str:
    manifests, files = format_count(response["queued"], "manifest"), format_count(response["files"], "file")
    size = f" ({files}, {format_size(response['bytes'])})" if response["queued"] else ""
    text = _summary(response, "queued", UNQUEUED_LABELS, f"queued again: {manifests}{size}")
    return text or "nothing to reprocess: no manifest of this selection has ended"


def sweep_command(stack: DeployedStack, *, dry_run: DryRun = False) -> Answer:
    """Repair now what crashed processes left; a schedule does so every 15 minutes."""
    answer = stack.invoke("sweep", {"dryRun": dry_run})
    return Answer(answer, lambda: _print_sweep(stack, answer, dry_run))


def _print_sweep(stack: DeployedStack, answer: Mapping[str, Any], dry_run: bool) -> None:
    if dry_run:
        typer.echo("dry run, nothing was done; a sweep would repair:")
        for item in answer["items"]:
            typer.echo(f"  {printable(item)}")
    found = [f"{stack.runnable(label)}: {answer[name]:,}" for name, label in COUNTS.items() if answer[name]]
    typer.echo("\n".join(found) if found else "nothing to repair")
