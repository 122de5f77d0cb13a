"""Compares the input files of one manifest with the rows and records that its commit document has published.

Both sides are multisets of row digests, made by tasks that any process can run, because their results are added up.
"""

from __future__ import annotations

import base64
import hashlib
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from lake.aws_types import S3Client
from lake.commit import CommitDocument, PendingObject, SourceCount, read_commit, read_result
from lake.cut import cut
from lake.errors import InvalidDocumentError, NewerDocumentError
from lake.faults import Fault, judge
from lake.layout import parse_s3_uri, partition_prefix
from lake.ledger import ManifestRow
from lake.manifest import Identity, Manifest, ObjectVersion
from lake.manifest_documents import read_manifest
from lake.texts import format_count
from verify.elements import Line
from verify.objects import GoneError, download
from verify.report import Difference, ManifestReport
from verify.rows import (
    ColumnTypeError,
    InputRules,
    Pairs,
    RowMultiset,
    columns_of,
    locate,
    read_lines,
    read_pairs,
    row_digest,
)
from verify.stack import Stack
from verify.table_check import Column, ShownTable

T = TypeVar("T")


@dataclass(slots=True)
class QuarantinedFile:
    lines: dict[int, tuple[int, str, bytes | None]] = field(default_factory=dict)
    """By offset: length, reason and digest of the bytes; None if the record has the line only by reference."""
    counted: Counter[str] = field(default_factory=Counter)
    """Lines without a record of their own, by reason."""
    whole: list[str] = field(default_factory=list)
    """Reasons in the records of the whole file."""
    problems: list[str] = field(default_factory=list)

    def take(self, line: Line, reason: str) -> str | None:
        """Compare a rejected line with its record, and remove the record; returns the difference, if any.

        A line without a record counts as one of the lines that are only counted.
        """
        record = self.lines.pop(line.offset, None)
        if record is None:
            self.counted[reason] -= 1
            return None
        length, recorded, digest = record
        if (length, recorded) != (line.length, reason):
            return f"is {reason}, and its quarantine record says {recorded}, {format_count(length, 'byte')}"
        if digest is not None and digest != line_digest(line.body or b""):
            return "is in the quarantine with other bytes"
        return None

    def remaining(self) -> list[str]:
        """The differences that are left after all lines were taken."""
        found = [f"the quarantine has a record of byte {offset}, which is not a rejected line" for offset in self.lines]
        for reason, count in sorted(self.counted.items()):
            if count < 0:
                lines = format_count(-count, f"rejected line ({reason}) is", f"rejected lines ({reason}) are")
                found.append(f"{lines} not in the quarantine")
            elif count > 0:
                found.append(f"the quarantine counts {format_count(count, 'rejected line')} ({reason}) too many")
        return [*self.problems, *found]


def line_digest(line: bytes) -> bytes:
    return hashlib.blake2b(line, digest_size=16).digest()


def add_records(path: Path, files: dict[tuple[str, str], QuarantinedFile]) -> int:
    """Add the records of a quarantine object to ``files``, by URI and version of the input file; returns their number.

    Raises ``ValueError``, which names the record, if a record cannot be read.
    """
    number = 0
    with path.open("rb") as stream:
        for number, text in enumerate(stream, 1):
            try:
                record = json.loads(text)
                _add(record, files.setdefault((record["source"], record["version"]), QuarantinedFile()))
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"its record {number} cannot be read ({error})") from error
    return number


def _add(record: dict[str, Any], file: QuarantinedFile) -> None:
    kind, reason = record["kind"], record["reason"]
    if kind == "file":
        file.whole.append(reason)
    elif kind == "lines":
        file.counted[reason] += record["count"]
    elif record["offset"] in file.lines:
        file.problems.append(f"the quarantine has two records of byte {record['offset']}")
    else:
        body = base64.b64decode(record["line_base64"]) if "line_base64" in record else None
        body = record["line"].encode() if "line" in record else body
        file.lines[record["offset"]] = (record["length"], reason, None if body is None else line_digest(body))


Quarantine = dict[tuple[str, str], QuarantinedFile]
"""By URI and version of the input file."""


@dataclass(frozen=True, slots=True)
class CheckedManifest:
    report: ManifestReport
    files: frozenset[Identity] | None = None
    """All files of its document; None if they are not known."""
    objects: frozenset[str] | None = None
    """URIs of its published objects; None if they are not known."""


def check_manifest(stack: Stack, row: ManifestRow, run_tasks: RunTasks | None) -> CheckedManifest:
    """Compare a manifest that has published a generation.

    Everything is read once. The disk of a process holds one object at a time. ``run_tasks`` reads the rows of both
    sides; if it is None, this process does, and reads rows that differ again to locate them. Raises ``ClientError`` or
    ``BotoCoreError`` if S3 refused a request or did not answer.
    """
    report = ManifestReport()
    assert row.published is not None
    control, reference = stack.resources.control_bucket, row.published.document
    try:
        document = read_commit(stack.s3, control, reference)
        # The ledger confirms the bytes of both documents, and input.bucket can have been another one.
        earlier = {parse_s3_uri(source.uri).bucket for source in document.sources}
        manifest = read_manifest(stack.s3, control, row, {*stack.resources.file_buckets, *earlier})
    except NewerDocumentError as error:
        report.cannot_be_proven(f"manifest {row.id}: {error}")
    except InvalidDocumentError as error:
        report.differs(Difference(f"manifest {row.id}", str(error)))
    else:
        _compare_counts(row, manifest, document, report)
        _compare_result(stack, document, report)
        with tempfile.TemporaryDirectory(prefix="hybrid-router-verify-") as folder:
            table = stack.table if row.is_tabled else None
            _Comparison(stack, manifest, document, table, Path(folder), report).run(run_tasks)
        objects = []
        for bucket, items in zip(stack.resources.output_buckets, (document.objects, document.quarantine), strict=True):
            folder = f"s3://{bucket}/{partition_prefix(manifest.partition)}"
            for item in items:
                objects.append(uri := f"s3://{item.bucket}/{item.key}")
                if not uri.startswith(folder):
                    report.differs(Difference(uri, "is not in the folder of its hour: readers do not see it"))
        files = (Identity.of(file) for file in manifest.files)
        return CheckedManifest(report, frozenset(files), frozenset(objects))
    return CheckedManifest(report)


def _compare_counts(row: ManifestRow, manifest: Manifest, document: CommitDocument, report: ManifestReport) -> None:
    """Compare the row's counts with the documents: commands, markers and events of hours read only the row."""
    assert row.published is not None
    totals = row.published.totals
    recorded = (row.files, row.bytes, row.published.generation, totals.rows, totals.rejects, totals.failed_files)
    counts = (document.generation, document.rows, dict(document.rejects), document.failed_files)
    expected = (len(manifest.files), manifest.bytes, *counts)
    if recorded != expected:
        names = "(files, bytes, generation, rows, rejects, unreadable files)"
        problem = f"has {names} = {recorded}, its documents {expected}"
        report.differs(Difference(f"the ledger's row of manifest {row.id}", problem))
    if [(item.uri, item.version) for item in document.sources] != [(item.uri, item.version) for item in manifest.files]:
        report.differs(Difference(f"the commit document of manifest {row.id}", "counts other files, or a file twice"))


def _compare_result(stack: Stack, document: CommitDocument, report: ManifestReport) -> None:
    """Compare the result document with the commit document: commands about files read only the former."""
    name = f"the result document of manifest {document.manifest}"
    try:
        result = read_result(stack.s3, stack.resources.control_bucket, document.manifest, document.generation)
    except InvalidDocumentError as error:
        report.differs(Difference(name, str(error)))
        return
    if any(getattr(result, item.name) != getattr(document, item.name) for item in fields(document)):
        report.differs(Difference(name, "differs from the commit document"))


@dataclass(frozen=True, slots=True)
class _Comparison:
    stack: Stack
    manifest: Manifest
    document: CommitDocument
    table: ShownTable | None
    folder: Path
    report: ManifestReport

    def run(self, run_in_spark: RunTasks | None) -> None:
        run_tasks = run_in_spark or (lambda run, tasks: (run(self.stack.s3, task) for task in tasks))
        in_lake, in_files, objects = SideDigest(), SideDigest(), self.document.objects
        for digest in run_tasks(digest_lake, tasks_of(objects, lambda item: item.size)):
            in_lake.add(digest)
        expected = self._expected_files()
        rules = InputRules(self.document.max_line_bytes, self.document.concatenated, self.document.provenance)
        for digest in run_tasks(partial(digest_input, rules), tasks_of(expected, lambda item: item.file.size)):
            in_files.add(digest)
        self.report.files = len(self.manifest.files)
        self.report.merge(in_lake.report)
        self.report.merge(in_files.report)
        rebuild = f"run 'hybrid-router tables rebuild {self.manifest.partition.dataset}'"
        for column in self.table.hidden(in_lake.columns) if self.table is not None else ():
            problem = f"the Iceberg table does not show its column {column[0]}: {rebuild}"
            self.report.differs(Difference(in_lake.columns[column], problem))
        comparable = in_lake.complete and in_files.complete
        buckets = in_files.rows.differing_buckets(in_lake.rows) if comparable else []
        if not buckets:
            return
        found: list[Difference] = []
        if run_in_spark is None:
            found = self._find_place([item.file for item in expected], rules, buckets, in_lake)
        for difference in found:
            self.report.differs(difference)
        if not found:
            problem = f"its rows differ: {in_files.rows.rows} in the input files, {in_lake.rows.rows} in the lake"
            self._differs(f"manifest {self.manifest.id}", problem)

    def _expected_files(self) -> list[ExpectedFile]:
        """The files that were read to their end. Files that are quarantined as a whole are checked here."""
        quarantine = self._read_quarantine()
        sources = {(source.uri, source.version): source for source in self.document.sources}
        expected = []
        for file in self.manifest.files:
            record = quarantine.pop((file.uri, file.version), QuarantinedFile())
            source = sources.get((file.uri, file.version))
            self._check_whole(file, record, source.failed if source is not None else None)
            if not record.whole:
                expected.append(ExpectedFile(file, record, source))
        for uri, version in quarantine:
            self._differs(uri, "is in the quarantine, but not in the manifest", version)
        return expected

    def _read_quarantine(self) -> Quarantine:
        files: Quarantine = {}
        for item in self.document.quarantine:
            uri, path = f"s3://{item.bucket}/{item.key}", self.folder / "object.jsonl"
            try:
                if not (is_same := download(self.stack.s3, item, path)):
                    self._differs(uri, OTHER_BYTES)
                if add_records(path, files) != item.rows and is_same:
                    self._differs(uri, OTHER_COUNT)
            except GoneError as error:
                self._differs(uri, f"is missing: {error}")
            except ValueError as error:
                self._differs(uri, str(error))
        return files

    def _find_place(
        self, files: list[ObjectVersion], rules: InputRules, buckets: list[int], in_lake: SideDigest
    ) -> list[Difference]:
        lines = ((file, *found) for file in files for found in read_lines(self.stack.s3, file, rules))
        rows = ((file, line, pairs) for file, line, pairs in lines if isinstance(pairs, list))
        return locate(rows, self._lake_rows(), buckets, in_lake.rows.rows)

    def _lake_rows(self) -> Iterator[tuple[str, Pairs]]:
        for item in self.document.objects:
            path = self.folder / "object.parquet"
            download(self.stack.s3, item, path)
            for pairs in read_pairs(path):
                yield f"s3://{item.bucket}/{item.key}", pairs

    def _check_whole(self, file: ObjectVersion, record: QuarantinedFile, failed: str | None) -> None:
        """``failed`` is the reason in the commit document if the file could not be read."""
        self.report.whole_files += bool(record.whole)
        if record.whole[:1] != [reason for reason in (failed,) if reason is not None]:
            whole = f"as a whole ({record.whole[0]})" if record.whole else "not as a whole"
            problem = f"is in the quarantine {whole}, and the commit document says: {failed or 'it was read'}"
            self._differs(file.uri, problem, file.version)
        if len(record.whole) > 1 or (record.whole and (record.lines or record.counted)):
            problem = "is in the quarantine as a whole, and has further records there"
            self._differs(file.uri, problem, file.version)

    def _differs(self, uri: str, problem: str, version: str | None = None) -> None:
        self.report.differs(Difference(uri, problem, version))


OTHER_COUNT = "differs from the commit document in its number of rows or records"
OTHER_BYTES = "has other bytes than were published"
"""Reported even if the rows are equal: other parts, such as bounds and counts of a footer, are not compared."""
MAX_TASKS = 64
"""Maximum number of tasks for each side of a manifest; a multiset is 4,096 numbers."""

RunTasks = Callable[[Callable[["S3Client", Any], "SideDigest"], Sequence[Any]], Iterable["SideDigest"]]
"""Calls a function with an S3 client and each of the tasks, in any order, in any process."""


@dataclass(slots=True)
class SideDigest:
    """The rows of one side, or of a part of it."""

    rows: RowMultiset = field(default_factory=RowMultiset)
    report: ManifestReport = field(default_factory=ManifestReport)
    complete: bool = True
    """Whether nothing was left out; otherwise the sides cannot be compared."""
    columns: dict[Column, str] = field(default_factory=dict)
    """Columns of the files with their field ids, each with the URI of a file that has it."""

    def add(self, other: SideDigest) -> None:
        self.rows.merge(other.rows)
        self.report.merge(other.report)
        self.complete = self.complete and other.complete
        self.columns |= other.columns


@dataclass(frozen=True, slots=True)
class ExpectedFile:
    file: ObjectVersion
    record: QuarantinedFile
    source: SourceCount | None
    """Its counts in the commit document."""


def tasks_of(items: Sequence[T], size: Callable[[T], int]) -> list[tuple[T, ...]]:
    """At most ``MAX_TASKS`` tasks of consecutive items: two neighbours exceed two shares of the whole."""
    two_shares = 2 * sum(map(size, items)) / MAX_TASKS
    return list(cut(items, lambda item: (size(item), 0), (two_shares, 0)))


def digest_lake(s3: S3Client, objects: Sequence[PendingObject]) -> SideDigest:
    """The rows of published files; the disk holds one of them at a time."""
    digest = SideDigest()
    with tempfile.TemporaryDirectory(prefix="hybrid-router-verify-") as folder:
        path = Path(folder) / "object.parquet"
        for item in objects:
            uri = f"s3://{item.bucket}/{item.key}"
            try:
                if not (is_same := download(s3, item, path)):
                    digest.report.differs(Difference(uri, OTHER_BYTES))
                digest.columns |= dict.fromkeys(columns_of(path).items(), uri)
                before = digest.rows.rows
                for pairs in read_pairs(path):
                    digest.rows.add(row_digest(pairs))
                if digest.rows.rows - before != item.rows and is_same:
                    digest.report.differs(Difference(uri, OTHER_COUNT))
            except GoneError as error:
                digest.report.differs(Difference(uri, f"is missing: {error}"))
                digest.complete = False
            except (OSError, ValueError) as error:
                if judge(error) == Fault.ENVIRONMENT:
                    raise
                cause = str(error) if isinstance(error, ColumnTypeError) else f"cannot be read by pyarrow: {error}"
                digest.report.differs(Difference(uri, cause))
                digest.complete = False
    return digest


def digest_input(rules: InputRules, s3: S3Client, files: Iterable[ExpectedFile]) -> SideDigest:
    """The rows of input files. It compares rejected lines with the quarantine, and counts with the commit document."""
    digest = SideDigest()
    for expected in files:
        _read_file(s3, rules, expected, digest)
    return digest


def _read_file(s3: S3Client, rules: InputRules, expected: ExpectedFile, digest: SideDigest) -> None:
    file, report, rejects = expected.file, digest.report, Counter[str]()
    lines = rows = 0
    try:
        for line, found in read_lines(s3, file, rules):
            lines += 1
            if isinstance(found, str):
                rejects[found] += 1
                if (problem := expected.record.take(line, found)) is not None:
                    report.differs(Difference(file.uri, problem, file.version, line.number, line.offset))
            elif found is not None:
                rows += 1
                digest.rows.add(row_digest(found))
    except GoneError as error:
        report.cannot_be_proven(f"{file.uri} (version {file.version}) can no longer be read: {error}")
        digest.complete = False
        return
    except (OSError, EOFError, ValueError) as error:
        if judge(error) == Fault.ENVIRONMENT:
            raise
        problem = f"cannot be decompressed to its end ({error}), and is not in the quarantine as a whole"
        report.differs(Difference(file.uri, problem, file.version))
        digest.complete = False
        return
    report.rows += rows
    report.rejects += rejects.total()
    for problem in expected.record.remaining():
        report.differs(Difference(file.uri, problem, file.version))
    counted = (lines, rows, lines - rows - rejects.total(), dict(rejects))
    source = expected.source
    claimed = None if source is None else (source.lines, source.rows, source.blank_lines, source.rejects)
    if counted != claimed:
        # `explain` shows these counts.
        problem = f"has (lines, rows, blank lines, rejects) = {counted}, and the commit document says {claimed}"
        report.differs(Difference(file.uri, problem, file.version))
