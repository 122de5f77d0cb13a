"""Whether an hour of a dataset is open, complete or reopened: one rule, for the sweep and for people. Pure."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from lake.ledger import ConvertedCounts, HourCounts, HourRow, HourState, Ledger, ManifestCounts, ManifestRow, State
from lake.ledger.tables import with_current_mark
from lake.manifest import Lane, Partition
from lake.successors import follow

GRACE = timedelta(minutes=15)
"""After the end of an hour, for the events of its last files: one that waits longer raises the alarm LateArrivals. And
after a manifest of it was about to be queued: the function that queues it has ended by then (Lambda's maximum)."""
CONFIRM_AFTER = 2 * GRACE
"""After a further revision of an hour was decided: the sweep that has decided it has ended, and so has each one that
had read the row before, which may have written the marker of an earlier revision late (Lambda's maximum, twice)."""
ONE_HOUR = timedelta(hours=1)
MAX_NAMED_MANIFESTS = 20
"""Maximum number of FAILED manifests that are named; all of them are counted."""


@dataclass(slots=True, kw_only=True)
class HourContents(ManifestCounts):
    """What the current rows of an hour's manifests say, one after the other; those without a row yet are open."""

    failed_manifests: list[str] = field(default_factory=list)
    """Ids of the first ``MAX_NAMED_MANIFESTS`` of the FAILED ones."""
    waits_for: str | None = None
    """The first manifest that is open or FAILED, or that its table does not show."""
    files: int = 0
    bytes: int = 0
    published_at: str = ""
    """ISO 8601, UTC: the last publication; empty: there was none."""
    stream_lane: ConvertedCounts = field(default_factory=ConvertedCounts)
    """What the stream lane has converted; the batch lane's executions are judged by ``settle``."""
    has_table: bool = False
    """Whether the dataset has an Iceberg table: it has to show what is published."""
    not_in_table: int = 0
    """Manifests with published rows that the table does not show yet."""
    last_batch: tuple[int, int] = (0, 0)
    """The last batch that has brought one of them into the table, and its snapshot."""
    was_reprocessed: bool = False
    """Whether a manifest was queued again: objects of an earlier generation stay visible for a while."""

    def add(self, manifest: str, row: ManifestRow | None) -> None:
        """Add a manifest with its current row; one that is SUPERSEDED or ABANDONED counts nothing.

        The list of an hour has a part if its document is damaged: it has files of the hour, and how many is not known.
        """
        # Also of one that was SUPERSEDED then: a publish that FAILED can have left objects.
        self.was_reprocessed = self.was_reprocessed or (row is not None and row.generation > 1)
        if row is None or row.state == State.COLLECTED:
            self.open += 1
        elif row.state in (State.SUPERSEDED, State.ABANDONED):
            return
        else:
            self.count_state(row)
            self.files += row.files
            self.bytes += row.bytes
            if row.published is not None:
                # What an earlier generation has published stays until the next one is DONE.
                self.count_totals(row.published.totals)
                self.not_in_table += self.has_table and not row.is_tabled
            if self.has_table and row.tabled is not None:
                self.last_batch = max(self.last_batch, (row.tabled.batch, row.tabled.snapshot))
        if row is not None and row.state == State.DONE:
            self.published_at = max(self.published_at, row.finished_at or "")
            if row.published is not None and row.lane == Lane.STREAM:
                self.stream_lane.count_converted(row, row.published.totals)
            if not self.has_table or row.is_tabled:
                return
        self.waits_for = self.waits_for or manifest
        if row is not None and row.state == State.FAILED and len(self.failed_manifests) < MAX_NAMED_MANIFESTS:
            self.failed_manifests.append(manifest)

    def counts(self) -> HourCounts:
        return HourCounts(
            self.done,
            self.files,
            self.bytes,
            self.rows,
            self.rejects.total(),
            self.failed_files,
            self.published_at,
            *self.last_batch,
        )


def may_be_complete(row: HourRow, now: datetime) -> bool:
    """Whether an hour has been quiet for so long at ``now`` (aware) that its manifests decide: no new one is near."""
    # Both an hour earlier: the last hour that a ``datetime`` knows has no end.
    begin = datetime.fromisoformat(f"{row.partition.stamp}:00:00+00:00")
    touched = datetime.fromisoformat(row.touched_at) - ONE_HOUR if row.touched_at else begin
    return now - GRACE - ONE_HOUR >= max(begin, touched)


def may_confirm(row: HourRow, now: datetime) -> bool:
    """Whether the marker is to be written once more at ``now`` (aware), because it may be that of an earlier revision.

    Before the first revision there was no marker that a late sweep could restore.
    """
    if row.revision <= max(row.confirmed, 1) or row.announced < row.revision:
        return False
    return now >= datetime.fromisoformat(row.decided_at) + CONFIRM_AFTER


def state_of_hour(row: HourRow, contents: HourContents, now: datetime, *, shows_replaced: bool) -> HourState:
    """The state of an hour at ``now`` (aware).

    ``contents``: read after ``row``; of a settled hour they may be empty. ``shows_replaced``: readers may see objects
    of a generation that another one has replaced: the rows would be there twice.
    """
    if contents.waits_for is None and not shows_replaced and may_be_complete(row, now):
        return HourState.COMPLETE
    return row.state


def stamps_between(first: str, last: str) -> list[str]:
    """The hours from ``first`` to ``last`` (``YYYY-MM-DDTHH``), both inclusive, in order."""
    hour, end = (datetime.strptime(stamp, "%Y-%m-%dT%H") for stamp in (first, last))
    # `strftime` writes no zeros before a year of three digits.
    return [(hour + number * ONE_HOUR).isoformat(timespec="hours") for number in range((end - hour) // ONE_HOUR + 1)]


def read_hour(ledger: Ledger, partition: Partition, *, has_table: bool, until_waiting: bool = False) -> HourContents:
    """The contents of an hour by consistent reads, 100 manifests to a request; raises botocore's errors.

    A collection of the hour that is not divided counts as one open manifest. The newest manifests come first, because
    they are converted last. ``until_waiting`` stops at the first one that the hour waits for: the counts are not
    complete then. ``has_table``: a published manifest that the Iceberg table of the dataset does not show is waited
    for.
    """
    contents = HourContents(has_table=has_table)
    for collection in ledger.collections.of_hour(partition.stamp):
        if not collection.done:
            contents.add(str(collection.id), None)
    if until_waiting and contents.waits_for is not None:
        return contents
    newest_first = sorted(ledger.partitions.manifests(partition), reverse=True)
    for page in follow(ledger, newest_first, parallel=1):
        # Read after the rows: a rebuild that has begun before shows nothing yet of what they are marked with.
        table = ledger.tables.get(partition.dataset) if has_table else None
        for manifest, row in page:
            contents.add(manifest, row and with_current_mark(row, table))
        if until_waiting and contents.waits_for is not None:
            break
    return contents
