"""Divides a collection of the batch lane into manifests: closed, cut, committed by one document, then carried out.

Each step follows the collection's row. So all steps can be repeated after any crash, and by several processes at the
same time: only one division is committed, and all processes carry out that one.
"""

import secrets
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

from botocore.exceptions import BotoCoreError, ClientError

from lake.cut import cut
from lake.errors import HybridRouterError, InvalidDocumentError, TerminalError
from lake.faults import can_pass
from lake.hours import ONE_HOUR
from lake.ledger import CollectionId, CollectionRow, ManifestRow, Part
from lake.ledger.table import batches_of
from lake.ledger.transitions import MAX_LISTED
from lake.manifest import Lane, Manifest, Partition, new_manifest_id
from lake.manifest_documents import (
    Division,
    decode_files,
    read_division,
    read_part,
    write_division,
    write_manifest,
)
from router.executions.run_status import queued_successors
from router.requests.selection import Selection
from router.services import PARALLEL_REQUESTS, Services, in_parallel, read_many
from router.telemetry import logger

HOUR_ENDS_AFTER = timedelta(minutes=5)
"""Wait after the end of an hour for the events of its last files; later events open another collection of the hour."""

PARALLEL_TRANSACTIONS = 8
"""A small number: after a pause of the process all are sent within a second, in which the index takes 1,000 writes."""
MAX_WRITTEN_FILES = 5_000
"""Maximum files of the manifests that are written in parallel, unless one manifest has more."""

TEXTS_AT_ONCE = 100
"""Number of parts whose files of one dataset are decoded at a time."""


def is_over(hour: str, now: datetime) -> bool:
    """Whether, at ``now`` (aware), ``HOUR_ENDS_AFTER`` has passed since the end of an hour."""
    return now >= datetime.fromisoformat(f"{hour}:00:00+00:00") + ONE_HOUR + HOUR_ENDS_AFTER


def divide(services: Services, collection: CollectionId, pace: "WritePace | None" = None) -> list[str]:
    """Close a collection and divide it into manifests, which are QUEUED afterwards; returns their ids.

    ``pace`` limits the writes to the partition key of the index, which all manifests share. Raises
    ``InvalidDocumentError`` if the division document was changed, or if the document of a part that was set apart is
    still damaged; ``NewerDocumentError`` if a newer version wrote a document: that version divides the collection.
    """
    ledger, bucket = services.ledger, services.resources.control_bucket
    row = ledger.collections.get(collection)
    if row is not None and row.closed_at is None:
        earlier = any(other.final for other in ledger.collections.of_hour(collection.hour))
        now = services.clock()
        ledger.collections.close(collection, now, final=earlier or is_over(collection.hour, now))
        row = ledger.collections.get(collection)
    if row is None or row.closed_at is None:
        return []
    if row.division is None:
        if row.parts == 0:
            return []
        _commit_division(services, row)
        row = ledger.collections.get(collection)
        assert row is not None
        assert row.division is not None
    division = read_division(services.s3, bucket, row.division)
    if not row.done:
        _execute(services, division, pace or WritePace())
    return [manifest.id for manifest in division.manifests]


TRIES, PAUSE_SECONDS = 25, 5
"""Tries for collections that can be divided later, and the pause between two tries."""
MAX_RETRY_TIME = timedelta(minutes=2)
"""Time after the first try in which a further try may begin, so that other files are not held up for long."""


def divide_selected(services: Services, selection: Selection) -> tuple[list[ManifestRow], Exception | None]:
    """Divide the collections of the selected hours; returns the selected manifests that are QUEUED now.

    Also returns an error of a collection with selected files that could not be divided, or None; an error that passes
    has priority. Such a collection is retried after all others, because its files would otherwise wait for a day.
    If all tries fail, it is left to the sweep, which reports it.
    """
    manifests: list[str] = []
    undivided: dict[CollectionId, Exception] = {}
    waiting = [row.id for row in services.ledger.collections.open() if selection.selects_hour(row.id.hour)]
    stop_at = None
    for _ in range(TRIES):
        for collection in waiting:
            try:
                manifests += divide(services, collection)
                undivided.pop(collection, None)
            except (HybridRouterError, BotoCoreError, ClientError) as error:
                logger.warning("collection not divided", collection=str(collection), error=str(error))
                undivided[collection] = error
        waiting = [collection for collection, error in undivided.items() if can_pass(error)]
        stop_at = stop_at or services.clock() + MAX_RETRY_TIME
        if not waiting or services.clock() >= stop_at:
            break
        time.sleep(PAUSE_SECONDS)
    rows = queued_successors(services, manifests)
    selected = [row for row in rows if selection.selects(row.partition)]
    faults = [
        error
        for collection, error in undivided.items()
        if selection.dataset is None
        or any(selection.dataset in part.datasets for part in services.ledger.collections.parts(collection))
    ]
    return selected, max(faults, key=can_pass, default=None)


def draft_selected(services: Services, selection: Selection) -> Iterator[Manifest]:
    """The manifests that ``divide_selected`` would make. It writes nothing, and keeps one collection in memory."""
    for row in services.ledger.collections.open():
        current = services.ledger.collections.get(row.id)
        if current is None or current.done or not selection.selects_hour(row.id.hour):
            continue
        parts, datasets, _ = _read_parts(services, services.ledger.collections.parts(row.id))
        made = _cut(services, parts, datasets)
        yield from (manifest for manifest, *_ in made if selection.selects(manifest.partition))


Collected = dict[str, tuple[list[int], list[str]]]
"""Maps a dataset to the numbers of the parts with its files, and to the texts of these files in the parts' documents.
An hour has hundreds of thousands of them, and pairs would take 15 MiB more."""


def _cut(services: Services, parts: Sequence[Part], datasets: Collected) -> Iterator[tuple[Manifest, int, int]]:
    """The manifests of some parts of one hour, each with the numbers of the first and the last part that has its files.

    A manifest is as old as its oldest part, so that the age of a file stays visible. Only the files of one manifest are
    decoded at a time. ``datasets`` is emptied.
    """
    limits, now = services.settings.batch, services.clock()
    for dataset in sorted(datasets):
        found = (
            (part, file)
            for some in batches_of(zip(*datasets.pop(dataset), strict=True), TEXTS_AT_ONCE)
            for (part, _), files in zip(some, decode_files([text for _, text in some]), strict=True)
            for file in files
        )
        for piece in cut(found, lambda item: (item[1].size, 1), (limits.manifest_bytes, limits.manifest_files)):
            first, last = piece[0][0], piece[-1][0]
            oldest = parts[first]
            manifest = Manifest(
                new_manifest_id(now),
                Lane.BATCH,
                Partition.parse(f"{dataset}#{oldest.hour}"),
                oldest.created_at,
                tuple(sorted(file for _, file in piece)),
            )
            yield manifest, first, last


def _commit_division(services: Services, row: CollectionRow) -> None:
    """Cut the collection and commit its division, unless another process has committed one."""
    bucket = services.resources.control_bucket
    listed = services.ledger.collections.parts(row.id)
    if len(listed) != row.parts:
        raise TerminalError(
            f"the ledger lists {len(listed)} of {row.parts} parts of collection {row.id}, so it stays undivided: "
            "restore the ledger to a point in time at which its items were complete"
        )
    parts, datasets, damaged = _read_parts(services, listed)
    if row.id.is_apart and damaged:
        raise damaged[0][1]
    for part, error in damaged:
        logger.error("part is set apart: its document is damaged", part=part.id, error=str(error))
    made, rows, spans = _cut(services, parts, datasets), list[ManifestRow](), list[tuple[int, int]]()
    with ThreadPoolExecutor(PARALLEL_REQUESTS) as pool:
        for some in cut(made, lambda item: (len(item[0].files), 1), (MAX_WRITTEN_FILES, 4 * PARALLEL_REQUESTS)):
            rows += pool.map(lambda item: write_manifest(services.s3, bucket, item[0]), some)
            spans += [(first, last) for _, first, last in some]
    ids, apart = tuple(part.id for part in parts), tuple(part for part, _ in damaged)
    division = Division(row.id, ids, apart, tuple(rows), tuple(spans))
    services.ledger.collections.commit(row.id, write_division(services.s3, bucket, division, secrets.token_hex(8)))


def _read_parts(
    services: Services, listed: Sequence[Part]
) -> tuple[list[Part], Collected, list[tuple[Part, InvalidDocumentError]]]:
    """The readable parts, their files by dataset, and the parts with damaged documents."""
    resources = services.resources

    def read(part: Part) -> dict[str, str] | InvalidDocumentError:
        try:
            return read_part(services.s3, resources.control_bucket, part, resources.file_buckets)
        except InvalidDocumentError as error:
            return error

    parts: list[Part] = []
    datasets: Collected = defaultdict(lambda: ([], []))
    damaged: list[tuple[Part, InvalidDocumentError]] = []
    with ThreadPoolExecutor(PARALLEL_REQUESTS) as pool:
        for part, found in zip(listed, pool.map(read, listed), strict=True):
            if isinstance(found, InvalidDocumentError):
                damaged.append((part, found))
                continue
            number = len(parts)
            for dataset, text in found.items():
                numbers, texts = datasets[dataset]
                numbers.append(number)
                texts.append(text)
            parts.append(part)
    return parts, datasets, damaged


def _execute(services: Services, division: Division, pace: "WritePace") -> None:
    """Queue every manifest of a committed division, and list each for its hour.

    Several datasets share a transaction. Manifests of one dataset, which touch the same row, are written in sequence.
    """
    hour, ledger, now = division.collection.hour, services.ledger, services.clock()
    made = (manifest.id for manifest in division.manifests)
    queued = {row.id for row in read_many(services.ledger.manifests.get_many, made) if row is not None}
    datasets: dict[str, list[ManifestRow]] = {}
    for manifest in division.manifests:
        if manifest.id not in queued:
            datasets.setdefault(manifest.partition.dataset, []).append(manifest)

    def queue(some: tuple[list[ManifestRow], ...]) -> None:
        missing = (row for rows in some for row in rows)
        for rows in batches_of(missing, MAX_LISTED):
            pace.take(2 * len(rows))
            if not ledger.manifests.enqueue_listed(rows, now):
                # Another process carries out the same division and was faster.
                for row in rows:
                    ledger.partitions.list_manifest(row.partition, row.id, now)
                    ledger.manifests.enqueue(row)

    transactions = cut(datasets.values(), lambda rows: (len(rows), 1), (MAX_LISTED, MAX_LISTED))
    in_parallel(queue, transactions, PARALLEL_TRANSACTIONS)
    in_parallel(lambda part: _set_apart(services, hour, part, now), division.apart, PARALLEL_TRANSACTIONS)
    ledger.collections.finish(division.collection)
    logger.info(
        "collection divided",
        collection=str(division.collection),
        parts=len(division.parts),
        manifests=len(division.manifests),
        apart=len(division.apart),
    )


def _set_apart(services: Services, hour: str, part: Part, now: datetime) -> None:
    """List the part itself for the hours of its datasets, which stay open until its document is restored."""
    for dataset in part.datasets:
        services.ledger.partitions.list_manifest(Partition.parse(f"{dataset}#{hour}"), part.id, now)
    services.ledger.collections.set_apart(hour, part, now)


MAX_INDEX_WRITES_PER_SECOND = 800
"""A partition key takes 1,000 write units a second, and a throttled index throttles its table (Amazon DynamoDB
Developer Guide, "Best practices for partition keys", "Global secondary indexes"). The rest is left to ``route``."""


class WritePace:
    """Lets all threads of an invocation together write at most ``per_second`` items on average. Thread-safe."""

    def __init__(self, per_second: float = MAX_INDEX_WRITES_PER_SECOND) -> None:
        self._per_second = per_second
        self._lock = threading.Lock()
        self._next = time.monotonic()

    def take(self, writes: int) -> None:
        """Wait until the caller may send ``writes`` writes of one item each."""
        with self._lock:
            start = max(time.monotonic(), self._next)
            self._next = start + writes / self._per_second
        time.sleep(max(start - time.monotonic(), 0))
