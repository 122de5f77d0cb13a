"""Announces that an hour became complete, or that something came to a complete hour.

A marker next to the data exists while the hour is complete, and each change sends an event.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from lake.documents import encode_document, put_document, to_json
from lake.errors import TransientError
from lake.hours import may_be_complete, may_confirm, read_hour, state_of_hour
from lake.layout import complete_marker_key, partition_prefix
from lake.ledger import HourCounts, HourRow, HourState, ManifestRow, State
from lake.ledger.table import batches_of
from lake.manifest import Partition
from lake.successors import follow
from router.services import Services, in_parallel
from router.sweep.repair import Repair
from router.tables.batch import TableCatalog
from router.telemetry import logger


def announce_hours(repair: Repair) -> None:
    """Announce hours that are complete or reopened; counts them as ``completed`` and ``reopened``."""
    partitions = repair.services.ledger.partitions

    def look(row: HourRow) -> None:
        if not repair.expired:
            with repair.isolated("hour", partition=str(row.partition)):
                _look(repair, row)

    for listed in batches_of(repair.in_time(partitions.unsettled())):
        due = [row.partition for row in _due(repair, listed)]
        # The rows decide, because the index is only a hint.
        in_parallel(look, partitions.get_many(due) if due else [])


def _due(repair: Repair, rows: Sequence[HourRow]) -> list[HourRow]:
    """Hours with an announcement that is unfinished, no longer true or ready to confirm; then quiet hours, except those
    whose last check found a manifest that is still not done."""
    services, now = repair.services, repair.services.clock()

    def is_begun(row: HourRow) -> bool:
        return row.announced != row.revision or row.decided == HourState.COMPLETE or may_confirm(row, now)

    quiet = [row for row in rows if not is_begun(row) and may_be_complete(row, now)]
    met = sorted({row.waits_for for row in quiet if row.waits_for is not None})
    waiting: set[str] = set()
    # If one cannot be read, each hour is checked.
    with repair.isolated("manifests that hours wait for"):
        current = services.ledger.manifests.get_many(met) if met else []
        # A FAILED or COLLECTED manifest keeps an hour waiting until a person acts.
        unfinished = (State.FAILED, State.COLLECTED)
        waiting = {row.id for row in current if row is not None and (row.open or row.state in unfinished)}
    return [*filter(is_begun, rows), *(row for row in quiet if row.waits_for not in waiting)]


def _look(repair: Repair, row: HourRow) -> None:
    """Check an hour once. If it changed since ``row`` was read, its revision or its touches refuse the write."""
    services, partitions = repair.services, repair.services.ledger.partitions
    if row.announced < row.revision:
        _announce(repair, row, row.decided)
        return
    if row.decided == HourState.COMPLETE and not row.is_settled:
        _announce(repair, row, HourState.REOPENED)
        return
    if may_confirm(row, services.clock()) and not repair.dry_run:
        # A caller that resumed late may have written the marker of an earlier revision.
        write_marker(services, row)
        if not partitions.confirmed(row):
            write_marker(services, partitions.get(row.partition))
    if row.decided != HourState.COMPLETE:
        has_table = services.settings.has_table(row.partition.dataset)
        contents = read_hour(services.ledger, row.partition, has_table=has_table, until_waiting=True)
        if contents.waits_for is None:
            # Read after the rows: DONE of a later generation and its due deletion are in one transaction.
            may_show = contents.was_reprocessed and not has_table
            shows_replaced = may_show and services.ledger.deletions.is_pending(row.partition)
            state = state_of_hour(row, contents, services.clock(), shows_replaced=shows_replaced)
            # Once the hour is closed, later parts touch the hours of their datasets: no complete hour misses them.
            close = services.ledger.collections.close_hour
            if state == HourState.COMPLETE and (repair.dry_run or close(row.partition.stamp, services.clock())):
                if not has_table:
                    _list_for_later(repair, row.partition)
                share = contents.stream_lane.quarantined_share
                if share > services.settings.alarms.max_quarantined_share and not repair.dry_run:
                    hour = str(row.partition)
                    logger.warning("hour above alarms.max_quarantined_share", partition=hour, share=round(share, 4))
                    repair.count("aboveShare")
                _announce(repair, row, HourState.COMPLETE, contents.counts())
        elif not repair.dry_run:
            if has_table:
                _list_published(repair, row.partition, contents.waits_for)
            if contents.waits_for != row.waits_for:
                partitions.wait_for(row, contents.waits_for)


def _list_published(repair: Repair, hour: Partition, manifest: str) -> None:
    """List an hour's published generations for its table if ``manifest``, for which it waits, has no entry.

    Entries are missing if a job with the settings of an earlier deployment, without a table, published the hour. If
    ``manifest`` has an entry, the table is only behind or stopped.
    """

    def list_row(row: ManifestRow | None) -> bool:
        if row is None or row.published is None or row.is_tabled:
            return False
        now = repair.services.clock()
        return ledger.tables.list_generation(hour.dataset, row.id, row.published.generation, now)

    ledger = repair.services.ledger
    if list_row(ledger.manifests.get(manifest)):
        for page in follow(ledger, ledger.partitions.manifests(hour), parallel=1):
            for _, row in page:
                list_row(row)


def _list_for_later(repair: Repair, partition: Partition) -> None:
    """List an hour for the Iceberg table that its dataset had, in case the settings ask for it again.

    A table that is created after this read lists all hours itself, and so does a rebuild of a deleted table.
    """
    services, tables = repair.services, repair.services.ledger.tables
    if repair.dry_run or tables.get(partition.dataset) is None:
        return
    if TableCatalog(services, partition.dataset).exists():
        tables.list_hour(partition, services.clock())


def _announce(repair: Repair, row: HourRow, state: HourState, counts: HourCounts | None = None) -> None:
    """Decide the next revision, unless a decided one is not announced yet. Then write the marker by the row, send the
    event, and record both. Idempotent, by any caller.

    A row that changed since it was read is left to the next sweep. A caller that resumes late may write a marker that
    is no longer true. Its last write then fails, and it writes the marker by the current row; if it ends earlier, a
    later sweep does that (``may_confirm``). Raises ``ClientError`` if a request was refused, and ``TransientError`` if
    EventBridge did not accept the event: the next sweep repeats it.
    """
    services, kind = repair.services, "completed" if state == HourState.COMPLETE else "reopened"
    if repair.only_counts(kind, f"hour {row.partition}"):
        return
    if row.announced == row.revision:
        if not services.ledger.partitions.decide(state, row, counts or row.counts, services.clock()):
            return
        row = services.ledger.partitions.get(row.partition)
    assert services.events is not None
    write_marker(services, row)
    detail = json.dumps(hour_document(services, row), ensure_ascii=False)
    change = "Complete" if row.decided == HourState.COMPLETE else "Reopened"
    entry = {"Source": "hybrid-router", "DetailType": f"Dataset Hour {change}", "Detail": detail}
    answer = services.events.put_events(Entries=[entry])
    if answer["FailedEntryCount"]:
        reason = answer["Entries"][0].get("ErrorMessage", "no reason given")
        raise TransientError(
            f"EventBridge did not accept the event of {row.partition} ({reason}): the next sweep sends it"
        )
    logger.info("hour announced", partition=str(row.partition), state=row.decided, revision=row.revision)
    if not services.ledger.partitions.announced(row):
        write_marker(services, services.ledger.partitions.get(row.partition))
    repair.count(kind)


def write_marker(services: Services, row: HourRow) -> None:
    """Put the marker of a complete hour; delete it if the hour is not complete."""
    bucket, key = services.resources.lake_bucket, complete_marker_key(row.partition)
    if row.decided == HourState.COMPLETE:
        put_document(services.s3, bucket, key, encode_document(hour_document(services, row)))
    else:
        services.s3.delete_object(Bucket=bucket, Key=key)


@dataclass(frozen=True, slots=True)
class TableSnapshot:
    """A snapshot of an Iceberg table that shows the whole hour."""

    name: Annotated[str, "database and table of the catalog"]
    snapshot: Annotated[str, "id, for FOR VERSION AS OF while it is kept; digits that a JSON number may not hold"]
    batch: Annotated[int, "number of the batch"]


@dataclass(frozen=True, slots=True)
class HourDocument:
    """The marker of a complete hour, and the detail of its events."""

    id: Annotated[str, "lake bucket, dataset, hour and revision: the same for each repetition of an event"]
    stage: str
    dataset: str
    hour: Annotated[str, "YYYY-MM-DDTHH, UTC"]
    state: Annotated[str, "complete or reopened"]
    revision: Annotated[int, "grows by one with each change of the hour"]
    at: Annotated[str, "ISO 8601, UTC: when this state was found"]
    data: Annotated[str, "URI of the hour's folder in the lake"]
    marker: Annotated[str, "URI of the marker, which exists while the hour is complete"]
    manifests: int
    files: Annotated[int, "input files"]
    bytes: Annotated[int, "size of the input files as stored"]
    rows: Annotated[int, "in the lake"]
    quarantined_lines: int
    unreadable_files: Annotated[int, "files in the quarantine as a whole"]
    published_at: Annotated[str | None, "ISO 8601, UTC: the last publication"]
    table: Annotated[TableSnapshot | None, "null: the dataset has no Iceberg table, or the hour has no rows in it"]
    format: Literal[1] = 1


def hour_document(services: Services, row: HourRow) -> dict[str, Any]:
    """The body of marker and event: the same bytes from any caller and at any time."""
    partition, counts, lake = row.partition, row.counts, services.resources.lake_bucket
    name = f"{services.resources.tables_database}.{partition.dataset}"
    document = HourDocument(
        # Without the stage, which can be deployed again or in another region, where revisions begin at 1 again.
        id=f"{lake}/{partition.dataset}/{partition.stamp}/{row.revision}",
        stage=services.settings.stage,
        dataset=partition.dataset,
        hour=partition.stamp,
        state=row.decided.value,
        revision=row.revision,
        at=row.decided_at,
        data=f"s3://{lake}/{partition_prefix(partition)}",
        marker=f"s3://{lake}/{complete_marker_key(partition)}",
        manifests=counts.manifests,
        files=counts.files,
        bytes=counts.bytes,
        rows=counts.rows,
        quarantined_lines=counts.quarantined_lines,
        unreadable_files=counts.unreadable_files,
        published_at=counts.published_at or None,
        table=TableSnapshot(name, str(counts.snapshot), counts.batch) if counts.batch else None,
    )
    body: dict[str, Any] = to_json(document)
    return body
