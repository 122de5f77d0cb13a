"""``hybrid-router promote``: a person makes queued files urgent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import typer

from cli.change.response_messages import print_messages
from cli.deployed_stack import DeployedStack
from cli.exit_codes import ExitCode
from lake.errors import InvalidInputError

UNPROMOTED_LABELS = {
    "inStream": "already in the stream lane",
    "tooLate": "too late",
    "notMoved": "not moved",
    "ignored": "ignored",
    "notRouted": "not routed yet",
    "unknown": "unknown",
}
EXAMPLES = (
    "run 'hybrid-router promote s3://bucket/key', or "
    "'hybrid-router promote --dataset orders --from 2026-11-21T08 --to 2026-11-21T09'"
)


def promote_files(stack: DeployedStack, options: Mapping[str, Any], *, dry_run: bool, as_json: bool = False) -> int:
    """Invoke the function ``promote`` and print what it did.

    ``options`` are the fields of its input, None for each option that was not given. Returns the exit code: 1 when
    every file is unknown or ignored.
    """
    fields = {name: value for name, value in options.items() if value is not None}
    if ("files" in fields) == bool(fields.keys() - {"files"}):
        raise InvalidInputError(f"promote needs either files or a selection of the backlog: {EXAMPLES}")
    response = stack.promote({**fields, "dryRun": dry_run})
    if as_json:
        typer.echo(json.dumps(response, indent=1))
    else:
        print_messages(response)
        typer.echo(_summary(response))
    refused = response["unknown"] + response["ignored"]
    is_fruitless = refused and refused == sum(response[name] for name in ("promoted", *UNPROMOTED_LABELS))
    return ExitCode.NOT_SO if is_fruitless else ExitCode.FINE


def _summary(response: Mapping[str, Any]) -> str:
    unpromoted = [f"{response[name]:,} {label}" for name, label in UNPROMOTED_LABELS.items() if response[name]]
    if not response["promoted"] and not unpromoted:
        return "nothing to promote: no file of this selection is queued"
    action = "dry run, nothing was done; to be promoted" if response["dryRun"] else "promoted"
    manifests = f" (new manifests: {response['manifests']:,})" if response["manifests"] else ""
    return ", ".join([f"{action}: {response['promoted']:,}{manifests}", *unpromoted])
