"""``hybrid-router convert``: NDJSON files to Parquet on this machine."""

import dataclasses
import shutil
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal
from uuid import uuid4

import boto3
import typer
from botocore.exceptions import BotoCoreError, ClientError, NoRegionError
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from cli.commands import ALL_CORES, BucketRegion, Cores, Json, command
from cli.errors import ExitCode, NotReachableError, advise
from cli.terminal import print_answer
from lake.commit import SourceCount
from lake.errors import InvalidInputError
from lake.manifest import ObjectVersion
from lake.settings import Settings, load_settings
from lake.settings.declaration import DATASET_NAME
from lake.texts import format_count, format_size, printable
from offline.conversion import Conversion, GroupOutcome
from offline.input_files import FIRST_YEAR, SCHEME, Destination, InputFile, LocalFile, Search, groups
from offline.output_folder import OutputFolder, withdraw_changed

PIPE = "-"
HAS_CHANGED = "it has changed since its {rows} converted: pass --replace to convert it in place of them"
MAX_NAMED = 20
MAX_KEPT_FILES = 100_000
"""Files that are found once; each takes half a kilobyte of memory until all are converted."""
HOUR_FORMS = ("%Y-%m-%dT%H", "%Y-%m-%d")
LAST_YEAR = 9998
"""An hour on the clock of another time zone can be in the next year, and a ``datetime`` ends with 9999."""


@dataclass(frozen=True, slots=True)
class Request:
    search: Search
    output: Path
    cores: int
    as_json: bool
    replace: bool = False
    with_tables: bool = False
    """Whether the folder gets Iceberg tables, unless it has them already."""


@dataclass(slots=True)
class Quarantined:
    lines: Counter[str] = field(default_factory=Counter)
    files: Counter[str] = field(default_factory=Counter)

    def add(self, rejects: Mapping[str, int], failed: str | None) -> None:
        self.lines.update(rejects)
        if failed is not None:
            self.files[failed] += 1

    def __bool__(self) -> bool:
        return bool(self.lines or self.files)


@dataclass(slots=True)
class Summary:
    files: int = 0
    skipped: int = 0
    """Converted by an earlier call."""
    bytes: int = 0
    rows: int = 0
    blank_lines: int = 0
    parquet_files: int = 0
    quarantined: Quarantined = field(default_factory=Quarantined)
    earlier: Quarantined = field(default_factory=Quarantined)
    named: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    """Reasons by path: what looks like input and cannot be converted."""
    other_files: int = 0
    """Entries of folders that have none of ``input.suffixes``."""
    other_file: str = ""
    not_replaced: dict[str, str] = field(default_factory=dict)
    """Reasons by URI: files that have changed and cannot be converted in place of their old rows."""
    tables: dict[str, int | None] = field(default_factory=dict)
    stopped: str | None = None

    def refuse(self, path: Path, reason: str) -> None:
        self.refused[str(path)] = reason

    def add_other(self, path: str) -> None:
        self.other_files += 1
        self.other_file = path

    def refuse_file(self, file: ObjectVersion, reason: str) -> None:
        self.refused[file.key if isinstance(file, LocalFile) else file.uri] = reason

    def add(self, outcome: GroupOutcome) -> None:
        self.parquet_files += len(outcome.objects)
        for file, failure in outcome.refused.items():
            again = f"{failure.advice}; the next call tries it again"
            self.refuse_file(file, failure.reason if failure.advice is None else again)
        for source in outcome.sources:
            self.files += 1
            self.bytes += source.size
            self.rows += source.rows
            self.blank_lines += source.blank_lines
            self.quarantined.add(source.rejects, source.failed)
            if (source.failed is not None or any(source.rejects.values())) and len(self.named) < MAX_NAMED:
                self.named.append(_finding(source))


def parse_destination(dataset: str | None, hour: str | None) -> Destination:
    if dataset is not None and not DATASET_NAME.fullmatch(dataset):
        raise InvalidInputError(
            f"--dataset {dataset!r} is not valid: it begins with a letter and has at most 63 lower case letters, "
            "digits and underscores"
        )
    if hour is None:
        return Destination(dataset)
    for form in HOUR_FORMS:
        try:
            found = datetime.strptime(hour, form).replace(tzinfo=UTC)
        except ValueError:
            continue
        if FIRST_YEAR <= found.year <= LAST_YEAR:
            return Destination(dataset, found)
    raise InvalidInputError(f"the hour {hour!r} is not valid: pass a UTC hour such as 2026-11-21T08")


def region_of_environment(names: Sequence[str]) -> str:
    """The region of boto3's session where an object of S3 is named, else none."""
    if not any(name.startswith(SCHEME) for name in names):
        return ""
    region = boto3.Session().region_name
    if region is None:
        raise NotReachableError(advise(NoRegionError()))
    return str(region)


@command("convert")
def convert(
    names: Annotated[list[str], typer.Argument(help="Files, folders, s3://bucket/folder/, or - (standard input).")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for lake and quarantine.")],
    dataset: Annotated[
        str | None, typer.Option(help="Dataset of all files; without it the name of the folder.")
    ] = None,
    hour: Annotated[str | None, typer.Option(help="UTC hour of all files, such as 2026-11-21T08.")] = None,
    compression: Annotated[Literal["zstd", "snappy"] | None, typer.Option(help="Codec of the Parquet pages.")] = None,
    settings: Annotated[
        Path | None, typer.Option(help="Settings file: its tables convert, input and datasets.")
    ] = None,
    cores: Cores = ALL_CORES,
    *,
    replace: Annotated[
        bool, typer.Option("--replace", help="Convert files that have changed in place of their old rows.")
    ] = False,
    table: Annotated[
        bool, typer.Option("--table", help="Iceberg tables over the files, which later calls extend.")
    ] = False,
    region: BucketRegion = None,
    as_json: Json = False,
) -> int:
    """Convert files of this machine or of S3, without a stack: 0 all lines are rows, 1 not all of them."""
    chosen = Settings(stage="here") if settings is None else load_settings(settings)
    if compression is not None:
        chosen = dataclasses.replace(chosen, convert=dataclasses.replace(chosen.convert, compression=compression))
    search = Search(names, chosen, parse_destination(dataset, hour), region or region_of_environment(names))
    return convert_files(Request(search, output, cores, as_json, replace, table))


def convert_files(request: Request) -> int:
    """Convert, and print what was done; the exit code: 1 if a line or a file is not in the lake."""
    started, summary, code = time.monotonic(), Summary(), ExitCode.FINE
    if request.output.parts[1:] and request.output.parts[0].endswith(":"):
        raise InvalidInputError(f"--output {request.output} is not a folder of this machine: pass one")
    try:
        with OutputFolder(request.output, with_tables=request.with_tables) as output, _piped(request, output) as asked:
            _convert(asked, output, summary)
            if output.has_tables:
                from cli.offline.iceberg_tables import update_tables

                summary.tables = update_tables(output)
                output.remove_withdrawn()
    except (BotoCoreError, ClientError) as error:
        # Some of them are OSErrors.
        summary.stopped, code = f"{advise(error)}; the next call goes on", ExitCode.NOT_REACHABLE
    except OSError as error:
        place = error.filename or request.output
        summary.stopped = f"{place}: {error.strerror or error}: remove the cause and convert again"
    seconds = time.monotonic() - started
    print_answer(_to_json(summary, seconds), lambda: _print(summary, request.output, seconds), as_json=request.as_json)
    incomplete = summary.quarantined or summary.earlier or summary.refused or summary.stopped
    return code or (ExitCode.NOT_SO if incomplete else ExitCode.FINE)


def _convert(request: Request, output: OutputFolder, summary: Summary) -> None:
    if request.replace:
        found = (item.file for item in _with_dataset(request, output, summary))
        summary.not_replaced = withdraw_changed(output, found)
    todo, number, size = _find_todo(request, output, summary)
    # More files than that take too much memory: they are found again, one by one.
    again = (item for item in _found(request, output, summary) if not output.converted.is_done(item.file))
    files = todo if number == len(todo) else again
    with _progress(size, shown=number > 0 and not request.as_json) as advance:
        settings, region = request.search.settings.convert, request.search.region
        conversion = Conversion(output, settings, request.cores, advance, region)
        for outcome in conversion.run(groups(files)):
            summary.add(outcome)


def _find_todo(request: Request, output: OutputFolder, summary: Summary) -> tuple[list[InputFile], int, int]:
    """The first ``MAX_KEPT_FILES`` files to convert; the number and the bytes of all of them."""
    first: list[InputFile] = []
    number = size = 0
    quarantined_by: defaultdict[str, set[str]] = defaultdict(set)
    for item in _found(request, output, summary):
        if output.converted.is_done(item.file):
            summary.skipped += 1
            if (manifest := output.converted.quarantined_by(item.file)) is not None:
                quarantined_by[manifest].add(item.file.uri)
        else:
            number, size = number + 1, size + item.file.size
            if number <= MAX_KEPT_FILES:
                first.append(item)
    output.keep_folders()
    for manifest, uris in quarantined_by.items():
        for source in output.sources(manifest):
            if source["uri"] in uris:
                summary.earlier.add(source["rejects"], source["failed"])
    return first, number, size


def _found(request: Request, output: OutputFolder, summary: Summary) -> Iterator[InputFile]:
    """Converted files and files that can be converted; all others are refused, one by one."""
    for item in _with_dataset(request, output, summary):
        version = output.converted.version_with_lines(item.file)
        if version is None or version.is_of(item.file):
            yield item
        else:
            rows = format_count(version.rows, "row was", "rows were")
            reason = summary.not_replaced.get(item.file.uri) or HAS_CHANGED.format(rows=rows)
            summary.refuse_file(item.file, reason)


def _with_dataset(request: Request, output: OutputFolder, summary: Summary) -> Iterator[InputFile]:
    # Each pass over the files counts them again.
    summary.other_files = 0
    for item in request.search.find(request.output, summary.refuse, summary.add_other):
        dataset, reason = item.partition.dataset, item.refused
        if (
            reason is None
            and item.folder is not None
            and (owner := output.folder_of(dataset, item.folder)) != item.folder
        ):
            reason = (
                f"the folder {item.folder!r} would share the dataset {dataset}, which the folder {owner!r} has: pass "
                "--dataset, or settings with a rule for it"
            )
        if reason is None:
            yield item
        else:
            summary.refuse_file(item.file, reason)


@contextmanager
def _piped(request: Request, output: OutputFolder) -> Iterator[Request]:
    """Standard input as a file: it is kept on disk until it is converted, because tasks read ranges of it."""
    if PIPE not in request.search.names:
        yield request
        return
    if request.search.destination.dataset is None:
        raise InvalidInputError("what comes from a pipe has no folder: pass --dataset")
    if sys.stdin is None:
        raise InvalidInputError("standard input is closed: name a file, or pipe lines into the command")
    # A name of its own: the next call's lines are not another version of the same file.
    file = output.staging("pipe") / f"stdin-{uuid4().hex}"
    file.parent.mkdir(parents=True)
    with file.open("wb") as copy:
        shutil.copyfileobj(sys.stdin.buffer, copy, 1 << 20)
    names = [str(file) if name == PIPE else name for name in request.search.names]
    yield dataclasses.replace(request, search=dataclasses.replace(request.search, names=names))
    output.discard("pipe")


@contextmanager
def _progress(size: int, *, shown: bool) -> Iterator[Any]:
    columns = (BarColumn(), TextColumn("{task.percentage:>3.0f} %"), TransferSpeedColumn(), TimeRemainingColumn())
    is_seen = shown and sys.stderr and sys.stderr.isatty()
    with Progress(*columns, console=Console(stderr=True), disable=not is_seen) as progress:
        task = progress.add_task("converting", total=size)
        yield lambda read: progress.advance(task, read)


def _finding(source: SourceCount) -> str:
    if source.failed is not None:
        return f"{printable(source.uri)} could not be read: {printable(source.failed)}"
    lines = format_count(sum(source.rejects.values()), "line")
    return f"{printable(source.uri)}: {lines} quarantined (first: {printable(source.first_reject or '')})"


def _to_json(summary: Summary, seconds: float) -> dict[str, Any]:
    return {
        "files": summary.files,
        "skipped": summary.skipped,
        "bytes": summary.bytes,
        "rows": summary.rows,
        "blankLines": summary.blank_lines,
        "quarantined": dict(summary.quarantined.lines),
        "unreadable": dict(summary.quarantined.files),
        "earlier": {"quarantined": dict(summary.earlier.lines), "unreadable": dict(summary.earlier.files)},
        "refused": summary.refused,
        "otherFiles": summary.other_files,
        "stopped": summary.stopped,
        "parquetFiles": summary.parquet_files,
        "snapshots": {name: snapshot and str(snapshot) for name, snapshot in summary.tables.items()},
        "seconds": round(seconds, 3),
    }


def _print(summary: Summary, output: Path, seconds: float) -> None:
    for text in summary.named:
        typer.echo(text)
    for path, reason in islice(summary.refused.items(), MAX_NAMED):
        typer.echo(f"{printable(path)} was not converted: {printable(reason)}")
    if len(summary.refused) > MAX_NAMED:
        typer.echo(f"{len(summary.refused) - MAX_NAMED:,} more were not converted: --json names them")
    speed = f", {summary.bytes / 1e6 / seconds:,.0f} MB/s" if summary.bytes else ""
    typer.echo(
        f"{format_count(summary.files, 'file')}, {format_size(summary.bytes)}: {format_count(summary.rows, 'row')} in "
        f"{format_count(summary.parquet_files, 'Parquet file')} below {output / 'lake'}; {seconds:,.1f} s{speed}"
    )
    for name, snapshot in summary.tables.items():
        typer.echo(f"Iceberg table lake.{name} of {output / 'tables' / 'catalog.db'}: snapshot {snapshot}")
    if summary.skipped:
        typer.echo(f"{format_count(summary.skipped, 'file was', 'files were')} converted before")
    if summary.other_files:
        number = format_count(summary.other_files, "file was", "files were")
        typer.echo(
            f"{number} left out, such as {printable(summary.other_file)}: name such a file itself, or add its suffix "
            'to input.suffixes of --settings, or "" to take every name'
        )
    for when, quarantined in (("", summary.quarantined), (" by an earlier call", summary.earlier)):
        listed = quarantined.files.most_common(MAX_NAMED)
        texts = [f"{format_count(count, 'line')}: {reason}" for reason, count in quarantined.lines.items()]
        texts += [f"{format_count(count, 'file')}: {printable(reason)}" for reason, count in listed]
        if others := quarantined.files.total() - sum(count for _, count in listed):
            texts.append(f"{format_count(others, 'file')} for other reasons: --json names them")
        for text in texts:
            typer.echo(f"quarantined{when} below {output / 'quarantine'}: {text}")
    if summary.stopped is not None:
        typer.echo(f"hybrid-router: stopped before the last file: {printable(summary.stopped)}", err=True)
