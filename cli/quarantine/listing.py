"""``hybrid-router quarantine ls`` and ``show``: what is in the quarantine, counted or line by line."""

import base64
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Annotated, Any, Literal

import pyarrow as pa
import typer

from cli.commands import Answer
from cli.deployed_stack import DeployedStack
from cli.errors import ExitCode
from cli.quarantine.records import (
    ALL_RECORDS,
    COUNTED_LINES,
    ONE_LINE,
    WHOLE_FILE,
    Limit,
    QuarantineRecord,
    RecordScan,
    RecordSelection,
)
from cli.terminal import print_table, working
from lake.aws_types import S3Client
from lake.layout import parse_s3_uri
from lake.manifest import ObjectVersion
from lake.texts import format_count, printable
from verify.elements import Line, lines_of
from verify.objects import GoneError, get_range, open_text

MAX_READ_BYTES = 64 << 20
"""Maximum bytes read of a file, after decompression: only a reader of all earlier lines knows a line's number."""
MAX_LINE_BYTES = 1 << 20
"""A longer neighbour is only counted."""
UNREADABLE = (GoneError, EOFError, OSError, pa.ArrowInvalid)
"""Errors raised by a file that is gone, or by the decompression of a damaged file."""


@dataclass(slots=True)
class LineContext:
    number: int
    before: list[Line]
    after: list[Line] = field(default_factory=list)


def read_contexts(
    s3: S3Client, records: Iterable[QuarantineRecord], count: int
) -> dict[tuple[str, str, int], LineContext | str]:
    """Return the context of each rejected line, by its identity, or a text that says why there is none.

    ``count``: lines before and after a rejected line. Memory holds these and a line of at most ``MAX_LINE_BYTES``.
    """
    lines = sorted((record for record in records if record.kind == ONE_LINE), key=lambda record: record.identity)
    contexts: dict[tuple[str, str, int], LineContext | str] = {}
    for (source, version), of_file in groupby(lines, key=lambda record: (record.source, record.version)):
        offsets = [record.offset for record in of_file]
        found: dict[int, LineContext] = {}
        reason = f"it is after the first {MAX_READ_BYTES >> 20} MiB of its file"
        try:
            stream = open_text(s3, _input_file(s3, source, version))
            # Contexts found before an error are kept.
            found.update(_contexts(lines_of(stream, MAX_LINE_BYTES), offsets, count))
        except UNREADABLE as error:
            reason = f"the file cannot be read: {error}"
        contexts.update({(source, version, offset): found.get(offset, reason) for offset in offsets})
    return contexts


def _input_file(s3: S3Client, source: str, version: str) -> ObjectVersion:
    """Return the version that the record names; raises ``GoneError``."""
    uri = parse_s3_uri(source)
    etag = version.removeprefix("etag:")
    file = ObjectVersion(uri.bucket, uri.key, etag, 0, "", version if etag == version else None)
    # A file with a rejected line has a first byte.
    return replace(file, size=int(get_range(s3, file, 0, 1)["ContentRange"].rpartition("/")[2]))


def _contexts(lines: Iterable[Line], offsets: Sequence[int], count: int) -> Iterator[tuple[int, LineContext]]:
    """Yield the context of each offset (ascending); reads only the lines that are needed."""
    waiting = deque(offsets)
    before: deque[Line] = deque(maxlen=count)
    incomplete: list[LineContext] = []
    for line in lines:
        for context in incomplete:
            context.after.append(line)
        incomplete = [context for context in incomplete if len(context.after) < count]
        # A line after a byte order mark begins after it.
        while waiting and waiting[0] <= line.offset + line.length:
            context = LineContext(line.number, list(before))
            incomplete.extend([context] if count else [])
            yield waiting.popleft(), context
        if not (waiting or incomplete) or line.offset >= MAX_READ_BYTES:
            return
        before.append(line)


NUMBERS = ("lines", "resubmitted", "files")
COLUMNS = {
    "dataset": ("dataset", "reason"),
    "hour": ("dataset", "hour", "reason"),
    "reason": ("reason",),
    "file": ("dataset", "hour", "file", "reason"),
}


def quarantine_ls_command(
    stack: DeployedStack,
    selected: RecordSelection = ALL_RECORDS,
    by: Annotated[Literal["dataset", "hour", "reason", "file"], typer.Option(help="Group by this.")] = "hour",
    limit: Limit = 100_000,
) -> Answer:
    """Count the rejected lines and the unreadable files."""
    columns = COLUMNS[by]
    counted: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    scan = RecordScan(stack, limit, selected)
    with working("reading the quarantine ..."):
        for record in scan:
            group = counted[tuple(values_of(record)[column] for column in columns)]
            group["lines"] += record.count
            group["resubmitted"] += scan.is_resubmitted(record)
            group["files"] += record.kind == WHOLE_FILE
    totals = {name: sum(group[name] for group in counted.values()) for name in NUMBERS}
    groups: list[dict[str, Any]] = [
        {**dict(zip(columns, names, strict=True)), **{name: group[name] for name in NUMBERS}}
        for names, group in sorted(counted.items())
    ]

    def show() -> None:
        rows = [
            (*(printable(group[name]) for name in columns), *(f"{group[name]:,}" for name in NUMBERS))
            for group in groups
        ]
        print_table("", columns, NUMBERS, rows)
        typer.echo(
            f"rejected lines: {totals['lines']:,}, resubmitted: {totals['resubmitted']:,}, "
            f"unreadable files: {totals['files']:,}"
        )
        print_if_cut(scan)

    return Answer({"groups": groups, **totals, "complete": scan.is_complete}, show)


def values_of(record: QuarantineRecord) -> dict[str, str]:
    return {
        "dataset": record.partition.dataset,
        "hour": record.partition.stamp,
        "reason": record.reason,
        "file": record.source,
    }


def print_if_cut(scan: RecordScan) -> None:
    if not scan.is_complete:
        typer.echo("there is more: narrow the selection, or raise --limit")


SHOWN_CHARACTERS = 300
"""Maximum length of a line on the terminal; ``--json`` and ``export`` have all of it."""


def quarantine_show_command(
    stack: DeployedStack,
    selected: RecordSelection = ALL_RECORDS,
    limit: Limit = 20,
    context: Annotated[
        int | None,
        typer.Option(min=0, max=10, help="Number each line, with this many lines around it; reads the files."),
    ] = None,
) -> Answer:
    """Show rejected lines and unreadable files, each with file, offset and reason; exit code 1 if there are none."""
    scan = RecordScan(stack, limit, selected)
    with working("reading the quarantine ..."):
        records = list(scan)
        contexts = {} if context is None else read_contexts(stack.s3, records, context)
        found = [(record, contexts.get(record.identity), scan.is_resubmitted(record)) for record in records]

    def show() -> None:
        for item in found:
            _print_record(*item)
        if not found:
            typer.echo("the quarantine has nothing of this selection")
        print_if_cut(scan)

    document = {"records": [_as_json(*item) for item in found], "complete": scan.is_complete}
    return Answer(document, show, ExitCode.OK if found else ExitCode.NEGATIVE)


def _as_json(record: QuarantineRecord, context: LineContext | str | None, resubmitted: bool) -> dict[str, Any]:
    body: dict[str, Any] = {
        **values_of(record),
        "kind": record.kind,
        "version": record.version,
        "manifest": record.manifest,
        "offset": record.offset,
        "length": record.length,
        "lines": record.count,
        "resubmitted": resubmitted,
        **_text_as_json(record.line),
    }
    if isinstance(context, LineContext):
        body["line_number"] = context.number
        for name, lines in (("before", context.before), ("after", context.after)):
            body[name] = [
                {"line_number": line.number, "length": line.length, **_text_as_json(line.body)} for line in lines
            ]
    elif context is not None:
        body["no_context"] = context
    return body


def _text_as_json(line: bytes | None) -> dict[str, str]:
    if line is None:
        return {}
    try:
        return {"line": line.decode()}
    except UnicodeDecodeError:
        return {"line_base64": base64.b64encode(line).decode()}


def _print_record(record: QuarantineRecord, context: LineContext | str | None, resubmitted: bool) -> None:
    place = f"{printable(record.source)}  version {record.version}  hour {record.partition.stamp}"
    reason = printable(record.reason)
    if record.kind == WHOLE_FILE:
        typer.echo(f"{place}\n  the whole file: {reason}")
    elif record.kind == COUNTED_LINES:
        end = record.offset + record.length
        lines = f"{format_count(record.count, 'line')} from byte {record.offset:,} to {end:,}"
        typer.echo(f"{place}\n  {lines}: {reason}; only counted")
    else:
        note = "; resubmitted" if resubmitted else ""
        typer.echo(f"{place}\n  byte {record.offset:,}, {format_count(record.length, 'byte')}: {reason}{note}")
        _print_line(record.line, context)


def _print_line(line: bytes | None, context: LineContext | str | None) -> None:
    """Print the rejected line; with context, as ``grep -n -C`` does."""
    if not isinstance(context, LineContext):
        typer.echo(f"  {_shown(line)}")
        if context is not None:
            typer.echo(f"  (no line number: {printable(context)})")
        return
    for neighbour in context.before:
        typer.echo(f"  {neighbour.number}- {_shown(neighbour.body)}")
    typer.echo(f"  {context.number}: {_shown(line)}")
    for neighbour in context.after:
        typer.echo(f"  {neighbour.number}- {_shown(neighbour.body)}")


def _shown(line: bytes | None) -> str:
    if line is None:
        return "(too long to keep: it is in the input file only)"
    text = line.decode(errors="backslashreplace")
    return printable(text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}...")
