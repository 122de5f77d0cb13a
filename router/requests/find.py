"""From a request to the manifests that it is about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from lake.errors import InvalidInputError, UnusableDocumentError
from lake.layout import MANIFESTS, manifest_day_prefix, manifest_of_key
from lake.ledger import ManifestRow, State
from lake.manifest import Lane, Manifest, ObjectVersion
from lake.manifest_documents import read_manifest
from lake.texts import format_count
from router.collect.divide import divide_selected, draft_selected
from router.requests.selection import Selection, open_rows

if TYPE_CHECKING:
    from lake.s3_uri import S3Uri
    from router.requests.report import Report, ReprocessReport
    from router.services import Services

MAX_QUEUED_FILES = 10_000
"""Maximum number of files of the batch lane per promoted selection: each may need a stream manifest of its own."""


def format_unknown_file(uri: S3Uri) -> str:
    """The message for a file that the ledger does not know."""
    return (
        f"the ledger has never seen {uri}: check the spelling; if the object exists, its event has not arrived yet: "
        "a backfill of its hour finds it"
    )


def find_files(
    services: Services, pool: ThreadPoolExecutor, uris: Sequence[S3Uri], report: Report
) -> dict[str, set[ObjectVersion]]:
    """Every version of the keys that the ledger knows, by the manifest that its arrival row names."""
    files: dict[str, set[ObjectVersion]] = {}
    versions = pool.map(lambda uri: services.ledger.arrivals.versions(uri.bucket, uri.key), uris)
    for uri, arrivals in zip(uris, versions, strict=True):
        if not arrivals:
            report.add("unknown", 1, format_unknown_file(uri))
        for arrival in arrivals:
            if arrival.manifest is None:
                report.add("ignored", 1, f"{uri} is IGNORED: {arrival.reason}")
            else:
                files.setdefault(arrival.manifest, set()).add(arrival.file)
    return files


def find_queued(
    services: Services, pool: ThreadPoolExecutor, selection: Selection, report: Report, *, dry_run: bool
) -> dict[str, set[ObjectVersion]]:
    """The files of QUEUED manifests of the selection, by manifest, from the index: a hint.

    The collections of its hours are divided; a dry run reports their files. Manifests of the stream lane are included:
    a promote that crashed may have left them without a pointer.

    Raises
    ------
    InvalidInputError
        More than ``MAX_QUEUED_FILES`` files of the batch lane.
    """
    divided = [] if dry_run else divide_selected(services, selection)
    listed, stream = (list(open_rows(services, lane, State.QUEUED, selection)) for lane in (Lane.BATCH, Lane.STREAM))
    batch = list({row.id: row for row in (*divided, *listed)}.values())
    number = sum(row.files for row in batch)
    for manifest in draft_selected(services, selection) if dry_run else ():
        number += len(manifest.files)
        moved = f"{format_count(len(manifest.files), 'file')} of {manifest.partition}"
        report.add("promoted", len(manifest.files), f"{moved} to be in the stream lane, out of the hour's collection")
    if number > MAX_QUEUED_FILES:
        raise InvalidInputError(
            f"the selection holds {format_count(number, 'file')} in {format_count(len(batch), 'manifest')} of the "
            f"batch lane, one promote takes {MAX_QUEUED_FILES:,}: pass a smaller range, or start overnight"
        )
    rows = [*batch, *stream]
    files = {}
    for row, document in zip(rows, pool.map(lambda row: _read(services, row), rows), strict=True):
        if isinstance(document, str):
            report.add("notMoved", row.files, f"manifest {row.id} is left to the run that will fail it: {document}")
        else:
            files[row.id] = set(document.files)
    return files


def _read(services: Services, row: ManifestRow) -> Manifest | str:
    """The manifest, or why it cannot be read."""
    resources = services.resources
    try:
        return read_manifest(services.s3, resources.control_bucket, row, resources.file_buckets)
    except UnusableDocumentError as error:
        return str(error)


def find_listed(
    services: Services, pool: ThreadPoolExecutor, selection: Selection, report: ReprocessReport, stop_at: datetime
) -> Iterator[list[ManifestRow]]:
    """Rows of the selection, a page of the documents' listing at a time, from ``report.after`` on until ``stop_at``.

    Keys of documents begin with the day on which the manifest was made, so the listing begins near the first hour of
    the selection. It is a hint: a document whose row does not exist never became a manifest. ``report.after`` moves on
    after the caller is done with a page, and is empty once all documents are listed.
    """
    after = report.after or _before(selection)
    while True:
        page = services.s3.list_objects_v2(Bucket=services.resources.control_bucket, Prefix=MANIFESTS, StartAfter=after)
        keys = [item["Key"] for item in page.get("Contents", [])]
        ids = [manifest for manifest in map(manifest_of_key, keys) if manifest is not None]
        rows = pool.map(services.ledger.manifests.get, ids)
        yield [row for row in rows if row is not None and selection.selects(row.partition)]
        report.after = after = keys[-1] if page["IsTruncated"] else ""
        if not after or services.clock() >= stop_at:
            return


def _before(selection: Selection) -> str:
    """A key before the first document that can belong to the selection.

    A manifest is made after its files arrive. One day more than enough, because the clocks of S3 and of the function
    that made it may differ.
    """
    if selection.first is None:
        return MANIFESTS
    return manifest_day_prefix(f"{datetime.fromisoformat(selection.first) - timedelta(days=1):%Y-%m-%d}")
