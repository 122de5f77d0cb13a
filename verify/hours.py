"""Compares hours of a dataset: everything that arrived in them with everything that is published of them."""

import tempfile
import zlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError

from lake.documents import find_document, to_json
from lake.errors import InvalidDocumentError
from lake.hours import HourContents
from lake.layout import (
    complete_marker_key,
    is_complete_marker,
    is_own_key,
    list_objects,
    parse_generation,
    partition_prefix,
)
from lake.ledger import HourRow, HourState, ManifestRow, State
from lake.ledger.table import batches_of
from lake.manifest import Identity, ObjectVersion, Partition
from lake.successors import follow
from lake.texts import format_count
from verify.find_files import ROUTING_TIME, WINDOW, FileIndex, current_rows, find_files, open_index
from verify.manifest_check import CheckedManifest, RunTasks, check_manifest
from verify.report import Difference, HourReport
from verify.stack import Hours, Stack
from verify.table_check import check_table

TOO_LATE = (
    "not compared, because the run had no time left: lower verify.share, or raise batch.run_timeout_minutes or "
    "batch.workers"
)
CHANGED = "has changed meanwhile: verify this hour again"
COUNTED = ("manifests", "files", "bytes", "rows", "quarantinedLines", "unreadableFiles")
"""Counts of a marker and of an hour's row that are compared with the manifests."""
PARALLEL_MANIFESTS = 4
"""Number of manifests that are compared at the same time in Spark: small ones have few tasks."""


@dataclass(frozen=True, slots=True)
class Effort:
    share: float = 1.0
    """Share of the manifests that are compared, chosen by their ids; 1 for all."""
    run_tasks: RunTasks | None = None
    """Reads rows in Spark; None for this process, which also locates rows that differ, and lists folders of days before
    the hours. In such a folder, the sweep also finds a file that has no row in the ledger."""
    stop_at: datetime | None = None
    """Time after which no page of the input is listed and no manifest begun; aware."""


@dataclass(frozen=True, slots=True)
class HoursCheck:
    """Compares hours one after another: first their listings, then ledger rows.

    Memory holds the names of one hour's objects, the rows of its manifests, and the files of the manifests that are
    being compared. ``on_progress`` gets a line of text for each manifest; several threads call it.
    """

    stack: Stack
    hours: Hours
    effort: Effort
    on_progress: Callable[[str], None]

    def run(self) -> Iterator[HourReport]:
        """The report of each hour, in order.

        Raises ``ClientError`` or ``BotoCoreError`` if a listing or the ledger was refused or did not answer;
        ``OSError`` if the disk is full; ``TimeOverError`` if the time was over before the files were listed.
        """
        with (
            tempfile.TemporaryDirectory(prefix="hybrid-router-verify-") as folder,
            open_index(Path(folder)) as index,
            ThreadPoolExecutor(PARALLEL_MANIFESTS) as pool,
        ):
            old_days = self.effort.run_tasks is None
            reports = {stamp: HourReport(hour=stamp) for stamp in self.hours.stamps()}
            unknown = find_files(self.stack, self.hours, index, reports, self.effort.stop_at, old_days=old_days)
            for stamp, report in reports.items():
                problem = "is in the input bucket, but not in the ledger"
                _report_unowned(self.stack, report, unknown.get(stamp, ()), None, problem)
                self._check_hour(report, index, pool)
                yield report

    def _check_hour(self, report: HourReport, index: FileIndex, pool: ThreadPoolExecutor) -> None:
        date, _, hour = report.hour.partition("T")
        partition = Partition(self.hours.dataset, date, int(hour))
        self._add_resubmitted(partition, index, report)
        hour_row = self.stack.ledger.partitions.get(partition)
        objects, unnamed, has_marker = self._list_objects(partition)
        rows = current_rows(self.stack, index, report)
        for manifest, row in sorted(rows.items()):
            # The row of an abandoned owner has no partition.
            if row is None or row.partition != partition:
                problem = f"belongs to {manifest}, which the ledger does not have as a manifest of this hour"
                _report_unowned(self.stack, report, sorted(index.files_of(manifest)), manifest, problem)
        self._add_listed(partition, rows, report)
        for manifest in objects.keys() - rows.keys():
            rows[manifest] = self.stack.ledger.manifests.get(manifest)
        ours = [row for _, row in sorted(rows.items()) if row is not None and row.partition == partition]
        ours = self.stack.with_current_marks(ours)
        share = self.effort.share * (1 << 32)
        chosen = [row for row in ours if _is_counted(report, row) and zlib.crc32(row.id.encode()) < share]
        # Ctrl-C interrupts only this thread, so it runs a single comparison itself.
        compare = map if self.effort.run_tasks is None else pool.map
        for row, outcome in zip(chosen, compare(self._compare, chosen), strict=True):
            published: Collection[str] | None = None
            if isinstance(outcome, CheckedManifest):
                report.compared += 1
                report.merge(outcome.report)
                _check_files(report, row.id, outcome, index)
                published = outcome.objects
            else:
                report.missed += outcome != CHANGED
                report.cannot_be_proven(f"manifest {row.id} {outcome}")
            for uri in objects.pop(row.id, []):
                self._check_object(report, uri, row, published)
        for uri in unnamed:
            self._check_object(report, uri, None, None)
        current = {row.id: row for row in ours}
        for manifest, uris in objects.items():
            for uri in uris:
                self._check_object(report, uri, current.get(manifest), None)
        check_table(self.stack, partition, ours, report)
        self._check_marker(report, hour_row, ours, has_marker=has_marker)

    def _check_object(
        self, report: HourReport, uri: str, row: ManifestRow | None, published: Collection[str] | None
    ) -> None:
        """Check one object under the hour's prefix, where readers see it: its manifest must have published it.

        ``published`` has the URIs in the commit document; None if they are not known.
        """
        if row is None:
            report.differs(Difference(uri, "is an object that no manifest of this hour has written: readers see it"))
            return
        if published is not None and uri in published:
            return
        _, generation = parse_generation(uri) or ("", 0)
        current = 0 if row.published is None else row.published.generation
        if generation < current:
            # Without the commit document, the current generation may have kept this object.
            if published is not None and not (self.stack.has_table and row.is_tabled):
                report.cannot_be_proven(
                    f"{uri} was replaced by generation {current}: the sweep deletes it after a while"
                )
        elif generation > current and row.state == State.PUBLISHING:
            report.cannot_be_proven(
                f"{uri} is of generation {generation}, which is being published: verify this hour again"
            )
        elif generation > current:
            report.differs(Difference(uri, f"is visible, and its generation {generation} was never published"))
        elif published is not None:
            report.differs(Difference(uri, "is not in the commit document of its manifest: readers see it"))

    def _check_marker(
        self, report: HourReport, hour: HourRow, rows: Sequence[ManifestRow], *, has_marker: bool
    ) -> None:
        """Compare the marker with ``hour``, its earlier row; if the row has changed since, nothing is proven."""
        if hour != self.stack.ledger.partitions.get(hour.partition):
            return
        bucket, key = self.stack.resources.lake_bucket, complete_marker_key(hour.partition)
        uri = f"s3://{bucket}/{key}"
        waits = next((row for row in rows if row.open or row.state == State.FAILED), None)
        if has_marker and hour.is_settled and waits is not None:
            report.differs(Difference(uri, f"says that the hour is complete, and manifest {waits.id} is {waits.state}"))
        elif hour.announced == hour.revision and has_marker != (hour.decided == HourState.COMPLETE):
            problem = "is there" if has_marker else "is missing"
            report.cannot_be_proven(f"{uri} {problem}, and the hour was announced as {hour.decided}")
        elif has_marker and hour.is_settled:
            contents = HourContents()
            for row in rows:
                contents.add(row.id, row)
            counts = to_json(contents.counts())
            expected = {name: counts[name] for name in COUNTED}
            try:
                marker = find_document(self.stack.s3, bucket, key) or expected
            except (BotoCoreError, ClientError, InvalidDocumentError) as error:
                report.cannot_be_proven(f"{uri} could not be read ({type(error).__name__}: {error})")
                return
            if not all(expected.items() <= found.items() for found in (to_json(hour.counts), marker)):
                problem = "or the ledger's row of its hour has other counts than the manifests"
                report.cannot_be_proven(f"{uri} {problem}: {expected}")

    def _add_resubmitted(self, partition: Partition, index: FileIndex, report: HourReport) -> None:
        """Add files of lines that a person gave back, which no listing of the input contains."""
        for resubmission in self.stack.ledger.resubmissions.of(partition):
            arrival = self.stack.ledger.arrivals.get(resubmission.file)
            if arrival is not None and arrival.manifest is not None:
                index.add(report.hour, arrival.manifest, [resubmission.file])
                continue
            problem = "was resubmitted, and no manifest has it"
            advice = "run 'hybrid-router quarantine retry <file>' again"
            _report_unowned(self.stack, report, [resubmission.file], None, problem, advice)

    def _add_listed(self, partition: Partition, rows: dict[str, ManifestRow | None], report: HourReport) -> None:
        """Add manifests of the hour without a file left in the input, which only the ledger's list contains."""
        ledger = self.stack.ledger
        for page in follow(ledger, ledger.partitions.manifests(partition), parallel=1):
            for manifest, row in page:
                if manifest in rows:
                    continue
                if row is None:
                    problem = "is not recorded yet: the sweep completes or abandons it"
                    report.cannot_be_proven(f"manifest {manifest} {problem}")
                elif row.state == State.COLLECTED:
                    problem = "is damaged: the log of the sweep shows how"
                    report.cannot_be_proven(f"the document of part {manifest} {problem}")
                else:
                    rows[manifest] = row

    def _list_objects(self, partition: Partition) -> tuple[dict[str, list[str]], list[str], bool]:
        """URIs of all objects that readers see of an hour: by the manifest in their name, those without a manifest, and
        whether there is a marker of a complete hour.
        """
        named: dict[str, list[str]] = defaultdict(list)
        unnamed, has_marker = [], False
        for bucket in self.stack.resources.output_buckets:
            for item in list_objects(self.stack.s3, bucket, partition_prefix(partition)):
                uri, parsed = f"s3://{bucket}/{item['Key']}", parse_generation(item["Key"])
                if is_complete_marker(item["Key"]):
                    has_marker = True
                elif parsed is None or not is_own_key(item["Key"], partition, *parsed):
                    unnamed.append(uri)
                else:
                    named[parsed[0]].append(uri)
        return named, unnamed, has_marker

    def _compare(self, row: ManifestRow) -> CheckedManifest | str:
        """Compare a manifest. After any error the result is a text with the reason, so that the others are compared."""
        if self.effort.stop_at is not None and self.stack.clock() >= self.effort.stop_at:
            return f"was {TOO_LATE}"
        self.on_progress(
            f"{row.partition}: manifest {row.id}, {format_count(row.files, 'file')}, {row.bytes / 1e6:,.1f} MB"
        )
        try:
            checked = check_manifest(self.stack, row, self.effort.run_tasks)
            # The sweep may have deleted objects of the compared generation, or a rebuild may have emptied the table.
            return CHANGED if checked.report.differences and self._has_changed(row) else checked
        except Exception as error:
            # Uploaders' data decide which errors a library raises, and a task can run out of memory.
            return f"could not be compared ({type(error).__name__}: {error}): verify this hour again"

    def _has_changed(self, row: ManifestRow) -> bool:
        current = self.stack.ledger.manifests.get(row.id)
        assert current is not None
        (marked,) = self.stack.with_current_marks([current])
        return (marked.published, marked.tabled) != (row.published, row.tabled)


def _report_unowned(
    stack: Stack,
    report: HourReport,
    files: Iterable[ObjectVersion],
    owner: str | None,
    problem: str,
    advice: str = "run a backfill of this hour",
) -> None:
    """Report files without a manifest as differences, unless they may still be on their way.

    ``owner`` is the owner in their rows when they were read; None if they had no row. A backfill records old files as
    well.
    """
    for some in batches_of(files):
        for file, row in zip(some, stack.ledger.arrivals.get_many(some), strict=True):
            if row is not None and row.manifest != owner:
                meanwhile = "was recorded meanwhile: verify this hour again"
                report.cannot_be_proven(f"{file.uri} (version {file.version}) {meanwhile}")
                continue
            times = (file.arrived_at, *(() if row is None else (row.recorded_at,)))
            # A multipart upload, whose ETag has a dash, is listed with the time at which it began.
            routing_time = WINDOW if owner is None and "-" in file.etag else ROUTING_TIME
            if stack.clock() - max(map(datetime.fromisoformat, times)) < routing_time:
                report.cannot_be_proven(f"{file.uri} (version {file.version}) {problem} yet")
            else:
                report.differs(Difference(file.uri, f"{problem}: {advice}", file.version))


def _is_counted(report: HourReport, row: ManifestRow) -> bool:
    if row.published is None and row.state in (State.SUPERSEDED, State.ABANDONED):
        return False
    report.manifests += 1
    if row.published is None:
        reason = f": {row.reason}" if row.reason else ""
        report.cannot_be_proven(f"manifest {row.id} is {row.state} and has published nothing{reason}")
    return row.published is not None


def _check_files(report: HourReport, manifest: str, outcome: CheckedManifest, index: FileIndex) -> None:
    """Check that every arrived file is in the manifest that the ledger names, and that no file is in two."""
    if outcome.files is None:
        return
    for file in sorted(index.files_of(manifest)):
        if Identity.of(file) not in outcome.files:
            report.differs(Difference(file.uri, f"is not in manifest {manifest}, its owner", file.version))
    for identity in sorted(outcome.files):
        other = index.publisher(identity, manifest)
        if other != manifest:
            uri = f"s3://{identity.bucket}/{identity.key}"
            problem = f"was published twice, by the manifests {other} and {manifest}"
            report.differs(Difference(uri, problem, identity.version))
