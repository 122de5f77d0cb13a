"""``hybrid-router quarantine export`` and ``retry``: export rejected lines for repair, and give them back."""

import hashlib
import json
from codecs import BOM_UTF8
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.commands import Answer, DryRun
from cli.deployed_stack import DeployedStack
from cli.errors import ExitCode
from cli.quarantine.records import (
    ALL_RECORDS,
    ONE_LINE,
    WHOLE_FILE,
    Limit,
    RecordScan,
    RecordSelection,
    RejectedPlace,
    resubmitted_lines,
)
from cli.terminal import working
from lake.documents import decode, encode, encode_body, put_document
from lake.errors import InvalidInputError
from lake.layout import resubmission_key, resubmitted_lines_key
from lake.ledger.table import batches_of
from lake.manifest import Partition, new_manifest_id
from lake.manifest_documents import MAX_LINES, RejectedLines, Resubmission
from lake.settings import ConvertSettings
from lake.texts import format_count, printable, shell_word
from router.requests.resubmit import check_resubmission
from verify.elements import lines_of
from verify.line_rules import INVALID_UTF8, RejectedError
from verify.rows import row_of

ORIGINS_SUFFIX = ".origins"
ORIGINS_FORMAT = 1
NOT_KEPT = (
    "not kept in the quarantine: if too long, raise convert.max_line_bytes and reprocess the file; otherwise put only "
    "such lines, repaired, under a new key"
)


@dataclass(frozen=True, slots=True)
class Origin(RejectedPlace):
    """The origin of a line of an export."""

    digest: str
    """BLAKE2b of the line (32 hexadecimal characters): an unchanged line is not resubmitted."""


def origins_file(exported: Path) -> Path:
    """Return the file next to an export with the origins of its lines, one line for each."""
    return exported.with_name(f"{exported.name}{ORIGINS_SUFFIX}")


def line_digest(line: bytes) -> str:
    return hashlib.blake2b(line, digest_size=16).hexdigest()


def quarantine_export_command(
    stack: DeployedStack,
    target: Annotated[Path, typer.Argument(help="New file for the lines; its origins go to a file next to it.")],
    selected: RecordSelection = ALL_RECORDS,
    limit: Limit = 100_000,
) -> Answer:
    """Write rejected lines to a file, unchanged, so that a person can repair them."""
    # Lines that the quarantine does not keep, and lines that were resubmitted, are only counted.
    scan = RecordScan(stack, limit, selected)
    found: Counter[str] = Counter()
    try:
        with working("reading the quarantine ..."):
            _write(scan, target, found)
    except FileExistsError as error:
        text = f"{error.filename} exists: pass the name of a new file, nothing is overwritten"
        raise InvalidInputError(text) from error
    counts = {name: found[name] for name in ("lines", "not_kept", "resubmitted", "files")}
    body = {"file": str(target), "origins": str(origins_file(target)), **counts, "complete": scan.is_complete}
    code = ExitCode.OK if found["lines"] else ExitCode.NEGATIVE
    return Answer(body, lambda: typer.echo(stack.runnable(_exported(body))), code)


def read_origins(exported: Path) -> list[Origin]:
    path = origins_file(exported)
    try:
        head, *lines = path.read_text(encoding="utf-8").splitlines()
        if json.loads(head) != {"format": ORIGINS_FORMAT}:
            raise ValueError(f"its first line is not the one of format {ORIGINS_FORMAT}")
        return [decode(Origin, json.loads(line)) for line in lines]
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInputError(f"{path} is not a valid file of origins ({error}): export the lines again") from error


def _write(scan: RecordScan, target: Path, found: Counter[str]) -> None:
    """Write both files. After an error, or without a line, neither is left; other processes' files are kept."""
    with ExitStack() as remove, ExitStack() as stack:
        lines = stack.enter_context(target.open("xb"))
        remove.callback(target.unlink)
        origins = stack.enter_context(origins_file(target).open("x", encoding="utf-8"))
        remove.callback(origins_file(target).unlink)
        origins.write(json.dumps({"format": ORIGINS_FORMAT}) + "\n")
        for record in scan:
            if record.kind == WHOLE_FILE:
                found["files"] += 1
            elif record.kind != ONE_LINE or record.line is None:
                found["not_kept"] += record.count
            elif scan.is_resubmitted(record):
                found["resubmitted"] += 1
            else:
                # An element of an array can have newlines between its values, never in a string.
                line = record.line.replace(b"\n", b" ")
                lines.write(line + b"\n")
                place = {item.name: getattr(record, item.name) for item in fields(RejectedPlace)}
                origins.write(json.dumps(encode(Origin(**place, digest=line_digest(line)))) + "\n")
                found["lines"] += 1
        if found["lines"]:
            remove.pop_all()


def _exported(body: dict[str, Any]) -> str:
    others = []
    if body["resubmitted"]:
        others.append(f"{body['resubmitted']:,} resubmitted before")
    if body["not_kept"]:
        others.append(f"{format_count(body['not_kept'], 'rejected line is', 'rejected lines are')} {NOT_KEPT}")
    if body["files"]:
        files = format_count(body["files"], "unreadable file")
        others.append(f"{files}: 'hybrid-router reprocess <uri>' reads it again")
    if not body["complete"]:
        others.append("there is more: narrow the selection, or raise --limit")
    first = f"exported lines: {body['lines']:,}"
    if body["lines"]:
        file = shell_word(body["file"])
        others.append(
            f"repair the lines in {body['file']} and keep their number: leave a line empty to keep it as it is; then "
            f"run: hybrid-router quarantine retry {file}"
        )
    return "\n".join([first, *others])


LEFT_OUT = {
    "empty": "left empty",
    "unchanged": "as they were exported",
    "resubmitted": "resubmitted before",
}


RepairedLine = tuple[Origin, bytes]


def quarantine_retry_command(
    stack: DeployedStack,
    exported: Annotated[Path, typer.Argument(help="A repaired file of an export.")],
    *,
    dry_run: DryRun = False,
) -> Answer:
    """Give repaired lines back: they become rows of their hour, once, however often this is run."""
    # Lines of one hour are one or more resubmissions; what an earlier, interrupted retry has recorded is completed. An
    # hour with a line that may not be rejected any more is refused and named; other hours continue.
    left_out: Counter[str] = Counter()
    by_hour: defaultdict[Partition, list[RepairedLine]] = defaultdict(list)
    for origin, line in _repaired(exported, left_out, stack.settings().convert):
        by_hour[origin.partition].append((origin, line))
    answers: list[dict[str, Any]] = []
    messages: list[str] = []
    refused: dict[str, str] = {}
    for partition, lines in sorted(by_hour.items()):
        resubmitted = resubmitted_lines(stack, partition)
        fresh = [(origin, line) for origin, line in lines if origin.identity not in resubmitted]
        left_out["resubmitted"] += len(lines) - len(fresh)
        # An earlier retry may have been interrupted after it was recorded.
        names = {resubmitted[origin.identity].name for origin, _ in lines if origin.identity in resubmitted}
        for name in sorted(names) if not dry_run else ():
            messages += stack.invoke("resubmit", {"resubmission": name})["messages"]
        for part in batches_of(fresh, MAX_LINES):
            try:
                answers.append(_resubmit(stack, partition, part, dry_run=dry_run))
                messages += answers[-1].pop("messages", ())
            except InvalidInputError as error:
                refused[str(partition)] = stack.runnable(str(error))
    counts = {name: left_out[name] for name in LEFT_OUT}
    body = {"dryRun": dry_run, "resubmissions": answers, "messages": messages, **counts, "refused": refused}
    code = ExitCode.OK if not refused and (answers or left_out["resubmitted"]) else ExitCode.NEGATIVE
    return Answer(body, lambda: typer.echo(_format_resubmitted(stack, body)), code)


def _repaired(exported: Path, left_out: Counter[str], rules: ConvertSettings) -> Iterator[RepairedLine]:
    """Return the changed lines. Raises ``InvalidInputError`` if one of them is not a row by these rules.

    In a file with such a line the reader can find an array, or another format, and reject the valid lines too.
    """
    try:
        origins, lines = read_origins(exported), exported.read_bytes().removesuffix(b"\n").split(b"\n")
    except FileNotFoundError as error:
        raise InvalidInputError(
            f"{error.filename} does not exist: pass the file of an export, which has its origins next to it"
        ) from error
    while len(lines) > len(origins) and not lines[-1].strip():
        lines.pop()
    if len(lines) != len(origins):
        raise InvalidInputError(
            f"{exported} has {format_count(len(lines), 'line')}, and {origins_file(exported)} names {len(origins):,}: "
            "keep one line for each line of the export, and leave a line empty to skip it"
        )
    for number, (origin, line) in enumerate(zip(origins, lines, strict=True), 1):
        # An editor may have added a byte order mark before the first line, and changed all line endings.
        bare = line.removeprefix(BOM_UTF8)
        variants = (text.removesuffix(b"\r") + end for text in (line, bare) for end in (b"", b"\r"))
        if not bare.strip():
            left_out["empty"] += 1
        elif origin.digest in map(line_digest, variants):
            left_out["unchanged"] += 1
        elif (reason := _reason_to_reject(bare, rules) or _editor_damage(origin, bare)) is not None:
            raise InvalidInputError(
                f"line {number} of {exported} is still not a row: {reason}; repair it and others, or leave them empty; "
                "nothing was resubmitted"
            )
        else:
            yield origin, bare


def _reason_to_reject(line: bytes, rules: ConvertSettings) -> str | None:
    # A row comes before it, so that its first byte does not decide how the file is read.
    text = BytesIO(b"{}\n" + line)
    try:
        for item in lines_of(text, rules.max_line_bytes, concatenated=rules.concatenated):
            row_of(item)
    except RejectedError as error:
        return str(error)
    return None


def _editor_damage(origin: Origin, line: bytes) -> str | None:
    """Editors save U+FFFD for each byte that they cannot show, even in lines that their user has not touched."""
    if origin.reason != INVALID_UTF8 or "\ufffd".encode() not in line:
        return None
    return rf"{INVALID_UTF8}, which an editor has replaced by U+FFFD; write what was meant, a real U+FFFD as \ufffd"


def _resubmit(
    stack: DeployedStack, partition: Partition, lines: Sequence[RepairedLine], *, dry_run: bool
) -> dict[str, Any]:
    """Put the lines and the document, then have them recorded; a dry run only checks them."""
    groups: defaultdict[tuple[str, str, str, int], list[int]] = defaultdict(list)
    for origin, _ in lines:
        groups[origin.source, origin.version, origin.manifest, origin.generation].append(origin.offset)
    rejected = tuple(RejectedLines(*group, tuple(offsets)) for group, offsets in groups.items())
    resubmission = Resubmission(new_manifest_id(datetime.now(UTC)), partition, rejected)
    control = stack.resources.control_bucket
    if dry_run:
        earlier = stack.ledger.resubmissions.of(partition)
        check_resubmission(stack.s3, stack.ledger, control, resubmission, earlier)
        return {"partition": str(partition), "lines": len(lines)}
    body = b"".join(line + b"\n" for _, line in lines)
    stack.s3.put_object(Bucket=control, Key=resubmitted_lines_key(resubmission.name), Body=body)
    put_document(stack.s3, control, resubmission_key(resubmission.name), encode_body(resubmission))
    return stack.invoke("resubmit", {"resubmission": resubmission.name})


def _format_resubmitted(stack: DeployedStack, body: dict[str, Any]) -> str:
    action = "dry run, nothing was done; lines to resubmit" if body["dryRun"] else "lines resubmitted"
    texts = [f"{action}: {sum(answer['lines'] for answer in body['resubmissions']):,}"]
    texts += [f"{body[name]:,} {label}" for name, label in LEFT_OUT.items() if body[name]]
    hours = [f"{answer['partition']}: {format_count(answer['lines'], 'line')}" for answer in body["resubmissions"]]
    now = stack.runnable("'hybrid-router overnight --dataset <dataset>'")
    end = [f"the next overnight run converts them; {now} starts one now"]
    end = end if body["resubmissions"] and not body["dryRun"] else []
    refused = [f"{partition}: {why}" for partition, why in body["refused"].items()]
    return "\n".join([*hours, ", ".join(texts), *end, *body["messages"], *map(printable, refused)])
