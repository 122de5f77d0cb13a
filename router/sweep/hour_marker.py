"""What readers are told about an hour: a marker beside the data while it is complete, and an event at each change."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from lake.documents import encode_document, put_document
from lake.errors import TransientError
from lake.json_document import to_json
from lake.layout import complete_marker_key, partition_prefix
from lake.ledger import HourRow, HourState
from router.telemetry import logger

if TYPE_CHECKING:
    from lake.partition import Partition
    from router.services import Services

EVENT_SOURCE = "hybrid-router"
DETAIL_TYPES = {
    HourState.COMPLETE: "Dataset Hour Complete",
    HourState.REOPENED: "Dataset Hour Reopened",
}


def announce(services: Services, row: HourRow) -> None:
    """Make the marker what the row tells, then send the event, then note both; idempotent, by any caller.

    A caller that resumes late may have put a marker that is no longer true. It learns that from the last write, and
    makes the marker what the current row tells.

    Raises
    ------
    ClientError
        A request was refused: the next sweep announces it.
    TransientError
        EventBridge did not take the event.
    """
    assert services.events is not None
    write_marker(services, row)
    detail = json.dumps(hour_document(services, row), ensure_ascii=False)
    entry = {"Source": EVENT_SOURCE, "DetailType": DETAIL_TYPES[row.told], "Detail": detail}
    answer = services.events.put_events(Entries=[entry])
    if answer["FailedEntryCount"]:
        reason = answer["Entries"][0].get("ErrorMessage", "no reason given")
        raise TransientError(
            f"EventBridge did not take the event of {row.partition} ({reason}): the next sweep sends it"
        )
    logger.info("hour announced", partition=str(row.partition), state=row.told, revision=row.revision)
    if not services.ledger.partitions.announced(row):
        _restore_marker(services, row.partition)


def confirm(services: Services, row: HourRow) -> None:
    """Write the marker of an announced revision once more, and note it; idempotent, by any caller.

    A caller that resumed late may have written the marker of an earlier revision, and ended before it learned that.
    """
    write_marker(services, row)
    if not services.ledger.partitions.confirmed(row):
        _restore_marker(services, row.partition)


def _restore_marker(services: Services, partition: Partition) -> None:
    """Make the marker what the current row tells; the event of that is not this caller's."""
    row = services.ledger.partitions.get(partition)
    while True:
        write_marker(services, row)
        current = services.ledger.partitions.get(partition)
        if current.revision == row.revision:
            return
        row = current


def write_marker(services: Services, row: HourRow) -> None:
    """Put the marker of a complete hour; delete that of one that is not."""
    bucket, key = services.resources.lake_bucket, complete_marker_key(row.partition)
    if row.told == HourState.COMPLETE:
        put_document(services.s3, bucket, key, encode_document(hour_document(services, row)))
    else:
        services.s3.delete_object(Bucket=bucket, Key=key)


@dataclass(frozen=True, slots=True)
class TableSnapshot:
    """A state of an Iceberg table that shows the whole hour."""

    name: Annotated[str, "database and table of the catalog"]
    snapshot: Annotated[str, "id, for FOR VERSION AS OF while it is kept; digits that a JSON number may not hold"]
    batch: Annotated[int, "number of the batch"]


@dataclass(frozen=True, slots=True)
class HourDocument:
    """The marker of a complete hour, and the detail of its events."""

    id: Annotated[str, "stage, dataset, hour and revision: the same for each repetition of an event"]
    stage: str
    dataset: str
    hour: Annotated[str, "YYYY-MM-DDTHH, UTC"]
    state: Annotated[str, "complete or reopened"]
    revision: Annotated[int, "grows by one with each change of the hour"]
    at: Annotated[str, "ISO 8601, UTC: when it was found so"]
    data: Annotated[str, "URI of the hour's folder in the lake"]
    marker: Annotated[str, "URI of the marker, which is there while the hour is complete"]
    manifests: int
    files: Annotated[int, "input files"]
    bytes: Annotated[int, "size of the input files as stored"]
    rows: Annotated[int, "in the lake"]
    quarantined_lines: int
    unreadable_files: Annotated[int, "files in the quarantine as a whole"]
    published_at: Annotated[str | None, "ISO 8601, UTC: the last publication"]
    table: Annotated[TableSnapshot | None, "null: the dataset has no Iceberg table, or the hour nothing in it"]
    format: Literal[1] = 1


def hour_document(services: Services, row: HourRow) -> dict[str, Any]:
    """The body of marker and event: the same bytes from any caller, and however often."""
    partition, counts, lake = row.partition, row.counts, services.resources.lake_bucket
    document = HourDocument(
        id=f"{services.settings.stage}/{partition.dataset}/{partition.stamp}/{row.revision}",
        stage=services.settings.stage,
        dataset=partition.dataset,
        hour=partition.stamp,
        state=row.told.value,
        revision=row.revision,
        at=row.told_at,
        data=f"s3://{lake}/{partition_prefix(partition)}",
        marker=f"s3://{lake}/{complete_marker_key(partition)}",
        manifests=counts.manifests,
        files=counts.files,
        bytes=counts.bytes,
        rows=counts.rows,
        quarantined_lines=counts.quarantined_lines,
        unreadable_files=counts.unreadable_files,
        published_at=counts.published_at or None,
        table=_table(services, row),
    )
    body: dict[str, Any] = to_json(document)
    return body


def _table(services: Services, row: HourRow) -> TableSnapshot | None:
    counts = row.counts
    if not counts.batch:
        return None
    name = f"{services.resources.tables_database}.{row.partition.dataset}"
    return TableSnapshot(name, str(counts.snapshot), counts.batch)
