"""``hybrid-router quarantine export``: rejected lines as a file that a person can repair, and where each comes from."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import typer

from cli.deployed_stack import DeployedStack
from cli.exit_codes import ExitCode
from cli.quarantine.records import ONE_LINE, WHOLE_FILE, QuarantineRecord, QuarantineSelection, RecordScan
from cli.quarantine.resubmitted import ResubmittedLines
from lake.errors import InvalidInputError
from lake.partition import Partition
from lake.texts import format_count

ORIGINS_SUFFIX = ".origins"
ORIGINS_FORMAT = 1
"""Version of the format of a file of origins."""
NOT_KEPT = "not kept in the quarantine: repair the input file"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an exported line comes from."""

    partition: Partition
    manifest: str
    generation: int
    source: str
    """URI of the input file."""
    version: str
    offset: int
    """First byte of the line, in the decompressed file where it is compressed."""
    reason: str
    digest: str
    """BLAKE2b of the line (32 hexadecimal characters): an unchanged line is not given back."""

    @property
    def identity(self) -> tuple[str, str, int]:
        """What names the line, whichever generation has rejected it."""
        return self.source, self.version, self.offset


def origins_file(exported: Path) -> Path:
    """The file next to an export that says where its lines come from, one line for each."""
    return exported.with_name(f"{exported.name}{ORIGINS_SUFFIX}")


def line_digest(line: bytes) -> str:
    """What stands for the text of a line."""
    return hashlib.blake2b(line, digest_size=16).hexdigest()


def export_lines(
    stack: DeployedStack, selection: QuarantineSelection, target: Path, limit: int, *, as_json: bool
) -> int:
    """Write the rejected lines of the selection to ``target`` and their origins; an element of an array on one line.

    Lines that the quarantine does not keep, and those that were given back, are only counted. Returns the exit code: 1
    if there is no line to write.
    """
    for path in (target, origins_file(target)):
        if path.exists():
            raise InvalidInputError(f"{path} exists: pass the name of a new file, nothing is overwritten")
    scan = RecordScan(stack, selection, limit)
    found: Counter[str] = Counter()
    _write(scan, ResubmittedLines(stack), target, found)
    if not found["lines"]:
        with suppress(FileNotFoundError):
            target.unlink()
            origins_file(target).unlink()
    body = {
        "file": str(target),
        "origins": str(origins_file(target)),
        "lines": found["lines"],
        "not_kept": found["not_kept"],
        "resubmitted": found["resubmitted"],
        "files": found["files"],
        "complete": scan.is_complete,
    }
    typer.echo(json.dumps(body, indent=1) if as_json else stack.runnable(_summary(body)))
    return ExitCode.FINE if found["lines"] else ExitCode.NOT_SO


def read_origins(exported: Path) -> list[Origin]:
    """The origin of each line of an export, in their order."""
    path = origins_file(exported)
    try:
        head, *lines = path.read_text(encoding="utf-8").splitlines()
        if json.loads(head) != {"format": ORIGINS_FORMAT}:
            raise ValueError(f"its first line is not the one of format {ORIGINS_FORMAT}")
        return [_decode(json.loads(line)) for line in lines]
    except FileNotFoundError as error:
        raise InvalidInputError(
            f"{path} is missing: keep it beside the file of the lines, as the export has written both"
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInputError(f"{path} is not a valid file of origins ({error}): export the lines again") from error


def _write(
    records: Iterable[QuarantineRecord], resubmitted: ResubmittedLines, target: Path, found: Counter[str]
) -> None:
    with ExitStack() as stack:
        lines = stack.enter_context(target.open("xb"))
        origins = stack.enter_context(origins_file(target).open("x", encoding="utf-8"))
        origins.write(json.dumps({"format": ORIGINS_FORMAT}) + "\n")
        for record in records:
            if record.kind == WHOLE_FILE:
                found["files"] += 1
            elif record.kind != ONE_LINE or record.line is None:
                found["not_kept"] += record.count
            elif resubmitted.include(record):
                found["resubmitted"] += 1
            else:
                # An element of an array can have newlines between its values, never in a string.
                line = record.line.replace(b"\n", b" ")
                lines.write(line + b"\n")
                origins.write(json.dumps(_encode(record, line)) + "\n")
                found["lines"] += 1


def _encode(record: QuarantineRecord, line: bytes) -> dict[str, Any]:
    origin = Origin(
        record.partition,
        record.manifest,
        record.generation,
        record.source,
        record.version,
        record.offset,
        record.reason,
        line_digest(line),
    )
    return {**asdict(origin), "partition": str(record.partition)}


def _decode(data: dict[str, Any]) -> Origin:
    return Origin(**{**data, "partition": Partition.parse(data["partition"])})


def _summary(body: dict[str, Any]) -> str:
    others = [
        format_count(body[name], *texts)
        for name, texts in (
            ("resubmitted", ("given back before", "given back before")),
            ("not_kept", (f"rejected line is {NOT_KEPT}", f"rejected lines are {NOT_KEPT}")),
            (
                "files",
                (
                    "unreadable file: 'hybrid-router reprocess <uri>' reads it again",
                    "unreadable files: 'hybrid-router reprocess <uri>' reads each again",
                ),
            ),
        )
        if body[name]
    ]
    if not body["complete"]:
        others.append("there is more: narrow the selection, or raise --limit")
    first = f"exported lines: {body['lines']:,}"
    if body["lines"]:
        file = shlex.quote(body["file"])
        others.append(
            f"repair the lines in {body['file']} and keep their number: leave a line empty that stays as it is; then "
            f"run 'hybrid-router quarantine retry {file}'"
        )
    return "\n".join([first, *others])
