"""``hybrid-router promote``: queued files become urgent by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from lake.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cli.deployed_stack import Deployment

LABELS = {
    "inStream": "in the stream lane already",
    "tooLate": "too late",
    "notMoved": "not moved",
    "ignored": "ignored",
    "notRouted": "not routed yet",
    "unknown": "unknown",
}
EXAMPLES = (
    "type hybrid-router promote s3://bucket/key, or hybrid-router promote --dataset orders --from 2026-11-21T08 "
    "--to 2026-11-21T09"
)


def promote_files(deployment: Deployment, given: Mapping[str, Any], *, dry_run: bool) -> int:
    """Ask for it and say what happened; the exit code: 1 when every name is one that nobody knows or wants.

    ``given`` are the function's fields, None where nothing was typed.
    """
    fields = {name: value for name, value in given.items() if value is not None}
    if ("files" in fields) == bool(fields.keys() - {"files"}):
        raise InvalidInputError(f"promote takes files or a part of the backlog, one of both: {EXAMPLES}")
    answer = deployment.promote({**fields, "dryRun": dry_run})
    for message in answer["messages"]:
        typer.echo(message)
    if answer["omitted"]:
        typer.echo(f"... and {answer['omitted']:,} more")
    typer.echo(_summary(answer))
    wrong = answer["unknown"] + answer["ignored"]
    return 1 if wrong and wrong == sum(answer[name] for name in ("promoted", *LABELS)) else 0


def _summary(answer: Mapping[str, Any]) -> str:
    others = [f"{answer[name]:,} {label}" for name, label in LABELS.items() if answer[name]]
    if not answer["promoted"] and not others:
        return "nothing is queued there"
    did = "dry run, nothing was done; to be promoted" if answer["dryRun"] else "promoted"
    into = f" (new manifests: {answer['manifests']:,})" if answer["manifests"] else ""
    return ", ".join([f"{did}: {answer['promoted']:,}{into}", *others])
