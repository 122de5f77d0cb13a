"""``hybrid-router convert``: NDJSON files to Parquet on this machine."""

import dataclasses
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal
from uuid import uuid4

import boto3
import typer
from botocore.exceptions import BotoCoreError, ClientError, NoRegionError
from ndjson_arrow import CONCATENATED_REMEDY
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from cli.commands import ALL_CORES, Answer, BucketRegion, Cores
from cli.errors import ExitCode, NotReachableError, advise
from lake.commit import SourceCount
from lake.documents import to_json
from lake.errors import InvalidInputError
from lake.manifest import ObjectVersion
from lake.settings import Settings, load_settings
from lake.settings.declaration import DATASET_NAME
from lake.texts import format_count, format_size, printable
from offline.conversion import Conversion, GroupOutcome
from offline.input_files import SCHEME, InputFile, LocalFile, Search, groups
from offline.output_folder import Converted, OutputFolder

PIPE, PIPE_FOLDER = "-", "pipe"
HAS_CHANGED = "it has changed since its {rows} converted: pass --replace to replace them"
MAX_NAMED = 20


@dataclass(frozen=True, slots=True)
class Request:
    search: Search
    output: Path
    cores: int
    replace: bool = False
    with_tables: bool = False
    """Whether the folder gets Iceberg tables if it has none yet."""


@dataclass
class Quarantined:
    quarantined: Counter[str] = field(default_factory=Counter)
    """Lines by reason."""
    unreadable: Counter[str] = field(default_factory=Counter)
    """Files by reason."""

    def add(self, rejects: Mapping[str, int], failed: str | None) -> None:
        self.quarantined.update(rejects)
        if failed is not None:
            self.unreadable[failed] += 1

    def is_empty(self) -> bool:
        return not self.quarantined and not self.unreadable


@dataclass
class Summary(Quarantined):
    """The result of a call: the members that ``--json`` prints, and two for a person."""

    files: int = 0
    skipped: int = 0
    """Files converted by an earlier call."""
    bytes: int = 0
    rows: int = 0
    blank_lines: int = 0
    parquet_files: int = 0
    earlier: Quarantined = field(default_factory=Quarantined)
    refused: dict[str, str] = field(default_factory=dict)
    """Reasons by path, for files that look like input but cannot be converted."""
    other_files: int = 0
    """Entries of folders that are hidden or have none of ``input.suffixes``."""
    snapshots: dict[str, str | None] = field(default_factory=dict)
    stopped: str | None = None
    seconds: float = 0
    named: list[str] = field(default_factory=list)
    other_file: str = ""

    def add_other(self, path: str) -> None:
        self.other_files += 1
        self.other_file = path

    def refuse_file(self, file: ObjectVersion, reason: str) -> None:
        self.refused[file.key if isinstance(file, LocalFile) else file.uri] = reason

    def add_outcome(self, outcome: GroupOutcome) -> None:
        self.parquet_files += len(outcome.objects)
        for file, failure in outcome.refused.items():
            again = f"{failure.advice}; the next call retries it"
            self.refuse_file(file, failure.reason if failure.advice is None else again)
        for source in outcome.sources:
            self.files += 1
            self.bytes += source.size
            self.rows += source.rows
            self.blank_lines += source.blank_lines
            self.add(source.rejects, source.failed)
            if (source.failed is not None or any(source.rejects.values())) and len(self.named) < MAX_NAMED:
                self.named.append(_finding(source))


def parse_hour(hour: str | None) -> datetime | None:
    if hour is None:
        return None
    try:
        found = datetime.fromisoformat(hour)
        utc = found.replace(tzinfo=found.tzinfo or UTC).astimezone(UTC)
        # A neighbouring day, which a stage's time zone can show, must be a date as well.
        if not datetime.min.year < utc.year < datetime.max.year:
            raise ValueError(f"year {utc.year} is out of range")
    except (ValueError, OverflowError) as error:
        raise InvalidInputError(f"the hour {hour!r} is not valid: pass a UTC hour such as 2026-11-21T08") from error
    return utc


def region_of_environment(names: Sequence[str]) -> str:
    """Return the region of boto3's session if an object of S3 is named, else an empty one."""
    if not any(name.startswith(SCHEME) for name in names):
        return ""
    region = boto3.Session().region_name
    if region is None:
        raise NotReachableError(advise(NoRegionError()))
    return str(region)


def convert_command(
    names: Annotated[list[str], typer.Argument(help="Files, folders, s3://bucket/folder/, or - (standard input).")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for lake and quarantine.")],
    dataset: Annotated[str | None, typer.Option(help="Dataset of all files; default: the name of the folder.")] = None,
    hour: Annotated[str | None, typer.Option(help="UTC hour of all files, such as 2026-11-21T08.")] = None,
    compression: Annotated[Literal["zstd", "snappy"] | None, typer.Option(help="Codec of the Parquet pages.")] = None,
    settings: Annotated[
        Path | None, typer.Option(help="Settings file: its tables convert, input and datasets.")
    ] = None,
    cores: Cores = ALL_CORES,
    *,
    replace: Annotated[bool, typer.Option("--replace", help="Replace the rows of files that have changed.")] = False,
    table: Annotated[
        bool, typer.Option("--table", help="Iceberg tables over the files, which later calls extend.")
    ] = False,
    region: BucketRegion = None,
) -> Answer:
    """Convert files of this machine or of S3, without a stack; exit code 1 unless all lines are rows."""
    if dataset is not None and not DATASET_NAME.fullmatch(dataset):
        raise InvalidInputError(
            f"--dataset {dataset!r} is not valid: it begins with a letter and has at most 63 lower case letters, "
            "digits and underscores"
        )
    chosen = Settings(stage="here") if settings is None else load_settings(settings)
    if compression is not None:
        chosen = dataclasses.replace(chosen, convert=dataclasses.replace(chosen.convert, compression=compression))
    search = Search(names, chosen, dataset, parse_hour(hour), region or region_of_environment(names))
    return convert_files(Request(search, output, cores, replace, table))


def convert_files(request: Request) -> Answer:
    """Convert, and return what was done, with the exit code 1 if a line or a file is not in the lake."""
    started, summary, code = time.monotonic(), Summary(), ExitCode.OK
    if request.output.parts[1:] and request.output.parts[0].endswith(":"):
        raise InvalidInputError(f"--output {request.output} is not a folder of this machine: pass one")
    try:
        with OutputFolder(request.output, with_tables=request.with_tables) as output:
            _convert(_with_pipe(request, output), output, summary)
            output.discard(PIPE_FOLDER)
            if output.has_tables:
                from cli.offline.iceberg_tables import update_tables

                summary.snapshots = update_tables(output)
                output.remove_withdrawn()
    except (BotoCoreError, ClientError) as error:
        # Some of these errors are OSErrors.
        summary.stopped, code = f"{advise(error)}; the next call continues", ExitCode.NOT_REACHABLE
    except OSError as error:
        place = error.filename or request.output
        summary.stopped = f"{place}: {error.strerror or error}: remove the cause and convert again"
    summary.seconds = round(time.monotonic() - started, 3)
    document = to_json(summary)
    del document["named"], document["otherFile"]
    is_fine = summary.is_empty() and summary.earlier.is_empty() and not summary.refused and summary.stopped is None
    code = code or (ExitCode.OK if is_fine else ExitCode.NEGATIVE)
    return Answer(document, lambda: _print(summary, request.output), code)


def _convert(request: Request, output: OutputFolder, summary: Summary) -> None:
    find = partial(request.search.find, output, summary.refused.__setitem__, summary.add_other)
    not_replaced = output.withdraw_changed(item.file for item in find()) if request.replace else {}
    # Each pass over the files counts them again.
    summary.other_files = 0
    todo: list[InputFile] = []
    for item in find():
        converted = output.converted(item.file)
        if converted is not None and converted.is_of(item.file) and not _is_readable_now(converted, request):
            summary.skipped += 1
            summary.earlier.add(converted.rejects, converted.failed)
        elif converted is not None and converted.has_lines:
            rows = format_count(converted.rows, "row was", "rows were")
            summary.refuse_file(item.file, not_replaced.get(item.file.uri) or HAS_CHANGED.format(rows=rows))
        else:
            todo.append(item)
    size = sum(item.file.size for item in todo)
    with _progress(size, shown=bool(todo)) as advance:
        settings, region = request.search.settings.convert, request.search.region
        conversion = Conversion(output, settings, request.cores, advance, region)
        for outcome in conversion.run(groups(todo)):
            summary.add_outcome(outcome)


def _is_readable_now(converted: Converted, request: Request) -> bool:
    """Whether the settings now have what the reason of an unreadable file asks for."""
    asked = converted.failed is not None and CONCATENATED_REMEDY in converted.failed
    return asked and request.search.settings.convert.concatenated


def _with_pipe(request: Request, output: OutputFolder) -> Request:
    """Keep standard input as a file until it is converted, because tasks read ranges of it."""
    if PIPE not in request.search.names:
        return request
    if request.search.dataset is None:
        raise InvalidInputError("a pipe has no folder: pass --dataset")
    if sys.stdin is None:
        raise InvalidInputError("standard input is closed: name a file, or pipe lines into the command")
    # A new name for each call, whose lines are not another version of the same file.
    file = output.staging(PIPE_FOLDER) / f"stdin-{uuid4().hex}"
    file.parent.mkdir(parents=True)
    with file.open("wb") as copy:
        shutil.copyfileobj(sys.stdin.buffer, copy, 1 << 20)
    names = [str(file) if name == PIPE else name for name in request.search.names]
    return dataclasses.replace(request, search=dataclasses.replace(request.search, names=names))


@contextmanager
def _progress(size: int, *, shown: bool) -> Iterator[Any]:
    columns = (BarColumn(), TextColumn("{task.percentage:>3.0f} %"), TransferSpeedColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not (shown and console.is_terminal)) as progress:
        task = progress.add_task("converting", total=size)
        yield lambda read: progress.advance(task, read)


def _finding(source: SourceCount) -> str:
    if source.failed is not None:
        return f"{printable(source.uri)} could not be read: {printable(source.failed)}"
    lines = format_count(sum(source.rejects.values()), "line")
    return f"{printable(source.uri)}: {lines} quarantined (first: {printable(source.first_reject or '')})"


def _print(summary: Summary, output: Path) -> None:
    for text in summary.named:
        typer.echo(text)
    for path, reason in islice(summary.refused.items(), MAX_NAMED):
        typer.echo(f"{printable(path)} was not converted: {printable(reason)}")
    if len(summary.refused) > MAX_NAMED:
        typer.echo(f"{len(summary.refused) - MAX_NAMED:,} more were not converted: --json names them")
    seconds = summary.seconds
    speed = f", {summary.bytes / 1e6 / seconds:,.0f} MB/s" if summary.bytes else ""
    typer.echo(
        f"{format_count(summary.files, 'file')}, {format_size(summary.bytes)}: {format_count(summary.rows, 'row')} in "
        f"{format_count(summary.parquet_files, 'Parquet file')} below {output / 'lake'}; {seconds:,.1f} s{speed}"
    )
    for name, snapshot in summary.snapshots.items():
        typer.echo(f"Iceberg table lake.{name} of {output / 'tables' / 'catalog.db'}: snapshot {snapshot}")
    if summary.skipped:
        typer.echo(f"{format_count(summary.skipped, 'file was', 'files were')} converted before")
    if summary.other_files:
        number = format_count(summary.other_files, "file or folder was", "files or folders were")
        typer.echo(
            f"{number} left out, such as {printable(summary.other_file)}: name it itself, or, unless its name begins "
            'with "." or "_", add its suffix to input.suffixes of --settings, or "" to take every suffix'
        )
    for when, found in (("", summary), (" by an earlier call", summary.earlier)):
        texts = [f"{format_count(count, 'line')}: {reason}" for reason, count in found.quarantined.items()]
        listed = found.unreadable.most_common(MAX_NAMED)
        texts += [f"{format_count(count, 'whole file')}: {printable(reason)}" for reason, count in listed]
        if files := found.unreadable.total() - sum(count for _, count in listed):
            texts.append(f"{format_count(files, 'whole file')} for other reasons: --json names them")
        for text in texts:
            typer.echo(f"quarantined{when} below {output / 'quarantine'}: {text}")
    if summary.stopped is not None:
        typer.echo(f"hybrid-router: stopped before the last file: {printable(summary.stopped)}", err=True)
