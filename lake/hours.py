"""Decides whether an hour of a dataset is open, complete or reopened: one rule for the sweep and for people. Pure."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from lake.ledger import HourCounts, HourRow, HourState, Ledger, ManifestCounts, ManifestRow, State
from lake.ledger.tables import with_current_mark
from lake.manifest import Lane, Partition
from lake.successors import follow

GRACE = timedelta(minutes=15)
"""Wait after the end of an hour for the events of its last files (a later event raises the alarm LateArrivals), and
after the touch of the hour: the function that was about to queue a manifest has ended by then (Lambda's maximum)."""
CONFIRM_AFTER = 2 * GRACE
"""Wait after a further revision was decided: by then the sweep that decided it has ended, and so has each sweep that
read the row before it and may have written an earlier revision's marker late (twice Lambda's maximum)."""
ONE_HOUR = timedelta(hours=1)


@dataclass(slots=True, kw_only=True)
class HourContents(ManifestCounts):
    """Sums over the current rows of an hour's manifests; a manifest without a row counts as open."""

    waits_for: str | None = None
    """Id of the first manifest that is open, FAILED or not yet shown by its table; None if none is."""
    published_at: str = ""
    """Time of the last publication, ISO 8601, UTC; empty if nothing was published."""
    stream_lane: ManifestCounts = field(default_factory=ManifestCounts)
    """Counts of the stream lane's conversions; ``settle`` judges the batch lane's."""
    has_table: bool = False
    """Whether the dataset has an Iceberg table, which must show what is published."""
    not_in_table: int = 0
    """Manifests with published rows that the table does not show yet."""
    last_batch: tuple[int, int] = (0, 0)
    """Number and snapshot of the last batch that brought one of the manifests into the table."""
    was_reprocessed: bool = False
    """Whether a manifest was queued again: objects of an earlier generation stay visible for a while."""

    def add(self, manifest: str, row: ManifestRow | None) -> None:
        """Add a manifest with its current row; a SUPERSEDED or ABANDONED one adds nothing to the counts.

        A part whose document is damaged is in the list of an hour and counts as open: its number of files is not known.
        """
        # Also if it was SUPERSEDED afterwards: a publish that FAILED can have left objects.
        self.was_reprocessed = self.was_reprocessed or (row is not None and row.generation > 1)
        if row is None or row.state == State.COLLECTED:
            self.open += 1
        elif row.state in (State.SUPERSEDED, State.ABANDONED):
            return
        else:
            self.count_state(row)
            # The objects of an earlier generation stay published until the next one is DONE.
            self.count_files(row)
            self.not_in_table += self.has_table and row.published is not None and not row.is_tabled
            if self.has_table and row.tabled is not None:
                self.last_batch = max(self.last_batch, (row.tabled.batch, row.tabled.snapshot))
        if row is not None and row.state == State.DONE:
            self.published_at = max(self.published_at, row.finished_at or "")
            if row.lane == Lane.STREAM:
                self.stream_lane.count_files(row)
            if not self.has_table or row.is_tabled:
                return
        self.waits_for = self.waits_for or manifest

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
    """Whether an hour has been quiet long enough at ``now`` (aware) that no new manifest can appear in it."""
    # Both times are an hour early: the end of the last hour of ``datetime`` cannot be represented.
    begin = datetime.fromisoformat(f"{row.partition.stamp}:00:00+00:00")
    touched = datetime.fromisoformat(row.touched_at) - ONE_HOUR if row.touched_at else begin
    return now - GRACE - ONE_HOUR >= max(begin, touched)


def may_confirm(row: HourRow, now: datetime) -> bool:
    """Whether to write the marker once more at ``now`` (aware), because a late sweep may have written an earlier one.

    False for the first revision: no marker existed before it.
    """
    if row.revision <= max(row.confirmed, 1) or row.announced < row.revision:
        return False
    return now >= datetime.fromisoformat(row.decided_at) + CONFIRM_AFTER


def state_of_hour(row: HourRow, contents: HourContents, now: datetime, *, shows_replaced: bool) -> HourState:
    """The state of an hour at ``now`` (aware).

    ``contents`` was read after ``row``, and may be empty for a settled hour. ``shows_replaced``: readers may still see
    objects of a replaced generation, so that rows are visible twice.
    """
    if contents.waits_for is None and not shows_replaced and may_be_complete(row, now):
        return HourState.COMPLETE
    return row.state


def stamps_between(first: str, last: str) -> list[str]:
    """The hours from ``first`` to ``last`` (``YYYY-MM-DDTHH``), both inclusive, in order."""
    hour, end = (datetime.strptime(stamp, "%Y-%m-%dT%H") for stamp in (first, last))
    # `strftime` does not pad years of three digits.
    return [(hour + number * ONE_HOUR).isoformat(timespec="hours") for number in range((end - hour) // ONE_HOUR + 1)]


def read_hour(ledger: Ledger, partition: Partition, *, has_table: bool, until_waiting: bool = False) -> HourContents:
    """The contents of an hour by consistent reads, 100 manifests to a request. Raises botocore's errors.

    An undivided collection of the hour counts as one open manifest. The newest manifests come first, because they are
    converted last. ``until_waiting`` stops at the first manifest that the hour waits for; the counts are incomplete
    then. With ``has_table`` the hour also waits for each published manifest that the dataset's Iceberg table does not
    show.
    """
    contents = HourContents(has_table=has_table)
    for collection in ledger.collections.of_hour(partition.stamp):
        if not collection.done:
            contents.add(str(collection.id), None)
    if until_waiting and contents.waits_for is not None:
        return contents
    newest_first = sorted(ledger.partitions.manifests(partition), reverse=True)
    for page in follow(ledger, newest_first, parallel=1):
        # Read after the rows: a table that was replaced meanwhile does not show what their marks say.
        table = ledger.tables.get(partition.dataset) if has_table else None
        for manifest, row in page:
            contents.add(manifest, row and with_current_mark(row, table))
        if until_waiting and contents.waits_for is not None:
            break
    return contents
