"""One manifest: its input files against the rows and records that its commit document has published."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lake.commit import read_commit
from lake.errors import InvalidDocumentError, NewerDocumentError
from lake.manifest import Identity, read_manifest
from verify.input_rows import InputCount, InputReader
from verify.lake_rows import has_provenance, read_pairs
from verify.locate import locate
from verify.objects import GoneError, download
from verify.quarantine_records import QuarantinedFile, add_records
from verify.report import Difference, ManifestReport
from verify.rows import RowMultiset, row_digest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_s3 import S3Client

    from lake.commit import CommitDocument, SourceCount
    from lake.ledger import ManifestRow
    from lake.manifest import Manifest, ObjectVersion
    from lake.resource_names import ResourceNames
    from verify.objects import Line
    from verify.rows import Pairs

Quarantine = dict[tuple[str, str], QuarantinedFile]
"""By URI and version of the input file."""


@dataclass(frozen=True, slots=True)
class CheckedManifest:
    """A compared manifest."""

    report: ManifestReport
    files: frozenset[Identity] = frozenset()
    objects: frozenset[str] = frozenset()
    """URIs of what it has published."""


def check_manifest(s3: S3Client, resources: ResourceNames, max_line_bytes: int, row: ManifestRow) -> CheckedManifest:
    """Compare a manifest that has published a generation.

    Everything is read once; if rows differ, the rows of some buckets are read a second time to find the place. The disk
    holds one object at a time.

    Raises
    ------
    ClientError, BotoCoreError
        S3 refused a request or did not answer.
    """
    report = ManifestReport()
    assert row.published is not None
    control, reference = resources.control_bucket, row.published.document
    try:
        document = read_commit(s3, control, reference)
        manifest = read_manifest(s3, control, row.id, (resources.input_bucket,))
    except NewerDocumentError as error:
        report.cannot_be_proven(f"manifest {row.id}: {error}")
    except InvalidDocumentError as error:
        report.differs(Difference(f"s3://{control}/{reference.key}", str(error)))
    else:
        with tempfile.TemporaryDirectory(prefix="hybrid-router-verify-") as folder:
            _Comparison(s3, InputReader(s3, max_line_bytes), manifest, document, Path(folder), report).run()
        objects = (f"s3://{item.bucket}/{item.key}" for item in (*document.objects, *document.quarantine))
        return CheckedManifest(report, frozenset(map(Identity.of, manifest.files)), frozenset(objects))
    return CheckedManifest(report)


@dataclass(frozen=True, slots=True)
class _Comparison:
    s3: S3Client
    reader: InputReader
    manifest: Manifest
    document: CommitDocument
    folder: Path
    report: ManifestReport

    def run(self) -> None:
        quarantine = self._read_quarantine()
        in_lake, provenance, complete = self._read_lake()
        in_files = RowMultiset()
        sources = {(source.uri, source.version): source for source in self.document.sources}
        self.report.files = len(self.manifest.files)
        readable: list[ObjectVersion] = []
        for file in self.manifest.files:
            record = quarantine.pop((file.uri, file.version), QuarantinedFile())
            if record.whole:
                self._check_whole(file, record)
                continue
            count = self._read_file(file, record, in_files, provenance=provenance)
            if count is None:
                complete = False
                continue
            readable.append(file)
            self._check_count(file, count, sources.get((file.uri, file.version)))
        for uri, version in quarantine:
            self._differs(uri, "is in the quarantine, but not in the manifest", version)
        buckets = in_files.differing_buckets(in_lake) if complete else []
        if buckets:
            rows = (
                (file, line, pairs)
                for file in readable
                for line, pairs in self.reader.read(file, provenance=provenance)
            )
            for difference in locate(rows, self._lake_rows(), buckets, in_lake.rows):
                self.report.differs(difference)

    def _read_quarantine(self) -> Quarantine:
        files: Quarantine = {}
        for item in self.document.quarantine:
            uri, path = f"s3://{item.bucket}/{item.key}", self.folder / "object.jsonl"
            try:
                download(self.s3, item.bucket, item.key, path)
                add_records(path, files)
            except GoneError as error:
                self._differs(uri, f"is missing: {error}")
            except ValueError as error:
                self._differs(uri, str(error))
        return files

    def _read_lake(self) -> tuple[RowMultiset, bool, bool]:
        """The rows of all objects, whether they have provenance, and whether all objects could be read."""
        rows, provenance, complete = RowMultiset(), False, True
        for item in self.document.objects:
            uri, path = f"s3://{item.bucket}/{item.key}", self.folder / "object.parquet"
            try:
                download(self.s3, item.bucket, item.key, path)
                provenance = provenance or has_provenance(path)
                for pairs in read_pairs(path):
                    rows.add(row_digest(pairs))
            except GoneError as error:
                self._differs(uri, f"is missing: {error}")
                complete = False
            except (OSError, ValueError) as error:
                self._differs(uri, f"cannot be read by pyarrow: {error}")
                complete = False
        return rows, provenance, complete

    def _lake_rows(self) -> Iterator[tuple[str, Pairs]]:
        for item in self.document.objects:
            path = self.folder / "object.parquet"
            download(self.s3, item.bucket, item.key, path)
            for pairs in read_pairs(path):
                yield f"s3://{item.bucket}/{item.key}", pairs

    def _read_file(
        self, file: ObjectVersion, record: QuarantinedFile, rows: RowMultiset, *, provenance: bool
    ) -> InputCount | None:
        """The counts of a file whose rows were added to ``rows``; None: it cannot be compared."""
        count = InputCount()

        def compare(line: Line, reason: str) -> None:
            problem = record.take(line, reason)
            if problem is not None:
                self.report.differs(Difference(file.uri, problem, file.version, line.number, line.offset))

        try:
            for _, pairs in self.reader.read(file, provenance=provenance, count=count, on_reject=compare):
                rows.add(row_digest(pairs))
        except GoneError as error:
            self.report.cannot_be_proven(f"{file.uri} (version {file.version}) is gone: {error}")
            return None
        except (OSError, EOFError, ValueError) as error:
            problem = f"cannot be decompressed to its end ({error}), and is not in the quarantine as a whole"
            self._differs(file.uri, problem, file.version)
            return None
        self.report.rows += count.rows
        self.report.rejects += count.rejects.total()
        for problem in record.remaining():
            self._differs(file.uri, problem, file.version)
        return count

    def _check_whole(self, file: ObjectVersion, record: QuarantinedFile) -> None:
        self.report.whole_files += 1
        if len(record.whole) > 1 or record.lines or record.counted:
            problem = "is in the quarantine as a whole, and has further records there"
            self._differs(file.uri, problem, file.version)

    def _check_count(self, file: ObjectVersion, count: InputCount, source: SourceCount | None) -> None:
        """The commit document must say of the file what was counted in it: this is what ``explain`` shows."""
        counted = (count.lines, count.rows, count.blank_lines, dict(count.rejects))
        claimed = None if source is None else (source.lines, source.rows, source.blank_lines, source.rejects)
        if counted != claimed:
            problem = f"has (lines, rows, blank lines, rejects) = {counted}, and the commit document says {claimed}"
            self._differs(file.uri, problem, file.version)

    def _differs(self, uri: str, problem: str, version: str | None = None) -> None:
        self.report.differs(Difference(uri, problem, version))
