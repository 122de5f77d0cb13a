"""``hybrid-router quarantine retry``: repaired lines become rows of the hour that they came from, once."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import typer

from cli.deployed_stack import DeployedStack
from cli.exit_codes import ExitCode
from cli.quarantine.export import Origin, line_digest, origins_file, read_origins
from cli.quarantine.resubmitted import ResubmittedLines
from lake.codec import encode_body
from lake.documents import put_document
from lake.errors import InvalidInputError
from lake.layout import resubmission_key, resubmitted_lines_key
from lake.manifest import new_manifest_id
from lake.partition import Partition
from lake.resubmission import MAX_LINES, RejectedLines, Resubmission
from lake.texts import format_count
from router.requests.resubmit import check_resubmission

LEFT_OUT = {
    "empty": "left empty",
    "unchanged": "as they were exported",
    "resubmitted": "given back before",
}


@dataclass(frozen=True, slots=True)
class RepairedLine:
    """A line that a person has repaired."""

    origin: Origin
    line: bytes
    """Without its newline."""


def retry_lines(stack: DeployedStack, exported: Path, *, dry_run: bool, now: bool, as_json: bool) -> int:
    """Give the repaired lines of an export back: those that differ from what was exported and were never given back.

    Lines of one hour are one or more resubmissions. What an earlier, interrupted retry has recorded is completed.

    Parameters
    ----------
    now
        Start ``overnight`` for their hours.

    Returns
    -------
    The exit code: 1 if there is no line to give back, and none was given back before.
    """
    left_out: Counter[str] = Counter()
    by_hour: defaultdict[Partition, list[RepairedLine]] = defaultdict(list)
    for line in _repaired(exported, left_out):
        by_hour[line.origin.partition].append(line)
    resubmitted = ResubmittedLines(stack)
    answers: list[dict[str, Any]] = []
    for partition, lines in sorted(by_hour.items()):
        given_back = resubmitted.of(partition)
        fresh = [line for line in lines if line.origin.identity not in given_back]
        left_out["resubmitted"] += len(lines) - len(fresh)
        # An earlier retry may have been interrupted after it was recorded.
        names = {given_back[line.origin.identity].name for line in lines if line.origin.identity in given_back}
        for name in sorted(names) if not dry_run else ():
            stack.resubmit(name)
        parts = (fresh[first : first + MAX_LINES] for first in range(0, len(fresh), MAX_LINES))
        answers += [_resubmit(stack, partition, part, dry_run=dry_run) for part in parts]
    body = {"dryRun": dry_run, "resubmissions": answers, **{name: left_out[name] for name in LEFT_OUT}}
    hours = sorted({answer["partition"] for answer in answers}) if now and not dry_run else []
    executions = [_start(stack, hour) for hour in hours]
    typer.echo(json.dumps({**body, "executions": executions}, indent=1) if as_json else _summary(body, executions))
    return ExitCode.FINE if answers or left_out["resubmitted"] else ExitCode.NOT_SO


def _repaired(exported: Path, left_out: Counter[str]) -> Iterator[RepairedLine]:
    """The lines of the file that differ from what was exported."""
    origins = read_origins(exported)
    try:
        lines = exported.read_bytes().removesuffix(b"\n").split(b"\n")
    except FileNotFoundError as error:
        raise InvalidInputError(f"{exported} does not exist: pass the file of an export") from error
    while len(lines) > len(origins) and not lines[-1].strip():
        lines.pop()
    if len(lines) != len(origins):
        raise InvalidInputError(
            f"{exported} has {format_count(len(lines), 'line')}, and {origins_file(exported)} names {len(origins):,}: "
            "keep one line for each line of the export, and leave a line empty that is not to be given back"
        )
    for origin, line in zip(origins, lines, strict=True):
        if not line.strip():
            left_out["empty"] += 1
        # An editor may have changed the ends of all lines.
        elif origin.digest in (line_digest(line), line_digest(line.removesuffix(b"\r"))):
            left_out["unchanged"] += 1
        else:
            yield RepairedLine(origin, line)


def _resubmit(
    stack: DeployedStack, partition: Partition, lines: Sequence[RepairedLine], *, dry_run: bool
) -> dict[str, Any]:
    """Put the lines and the document, then have them recorded; a dry run only checks them."""
    resubmission = Resubmission(new_manifest_id(datetime.now(UTC)), partition, _rejected(lines))
    control = stack.resources.control_bucket
    if dry_run:
        earlier = stack.ledger.resubmissions.of(partition)
        check_resubmission(stack.s3, stack.ledger, control, resubmission, earlier)
        return {"partition": str(partition), "lines": len(lines)}
    body = b"".join(line.line + b"\n" for line in lines)
    stack.s3.put_object(Bucket=control, Key=resubmitted_lines_key(resubmission.name), Body=body)
    put_document(stack.s3, control, resubmission_key(resubmission.name), encode_body(resubmission))
    return stack.resubmit(resubmission.name)


def _rejected(lines: Sequence[RepairedLine]) -> tuple[RejectedLines, ...]:
    groups: defaultdict[tuple[str, str, str, int], list[int]] = defaultdict(list)
    for line in lines:
        origin = line.origin
        groups[origin.source, origin.version, origin.manifest, origin.generation].append(origin.offset)
    return tuple(RejectedLines(*group, tuple(offsets)) for group, offsets in groups.items())


def _start(stack: DeployedStack, partition: str) -> str:
    dataset, _, hour = partition.rpartition("#")
    return stack.start_overnight({"dataset": dataset, "from": hour, "to": hour})


def _summary(body: dict[str, Any], executions: Sequence[str]) -> str:
    action = "dry run, nothing was done; lines to be given back" if body["dryRun"] else "lines given back"
    texts = [f"{action}: {sum(answer['lines'] for answer in body['resubmissions']):,}"]
    texts += [f"{body[name]:,} {label}" for name, label in LEFT_OUT.items() if body[name]]
    hours = [f"{answer['partition']}: {format_count(answer['lines'], 'line')}" for answer in body["resubmissions"]]
    if executions:
        end = [f"overnight started: {execution}" for execution in executions]
    else:
        end = ["the next overnight run converts them"] if body["resubmissions"] and not body["dryRun"] else []
    return "\n".join([*hours, ", ".join(texts), *end])
