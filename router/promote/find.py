"""From the request to the manifests that were last known to list its files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lake.counted import format_count
from lake.errors import InvalidInputError, UnusableDocumentError
from lake.ledger import State
from lake.manifest import Lane
from lake.manifest_document import read_manifest
from router.s3_uri import format_unknown_file
from router.selection import open_rows

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import ThreadPoolExecutor

    from lake.ledger import ManifestRow
    from lake.manifest import Manifest, ObjectVersion
    from router.promote.report import PromotionReport
    from router.s3_uri import S3Uri
    from router.selection import Selection
    from router.services import Services

MAX_FILES = 10_000
"""Maximum number of files of the batch lane per selection: each may need a stream manifest of its own."""


def find_by_uri(
    services: Services, pool: ThreadPoolExecutor, uris: Sequence[S3Uri], report: PromotionReport
) -> dict[str, set[ObjectVersion]]:
    """Every version of the keys that the ledger knows, by the manifest that its arrival row names."""
    files: dict[str, set[ObjectVersion]] = {}
    versions = pool.map(lambda uri: services.ledger.arrivals.versions(uri.bucket, uri.key), uris)
    for uri, arrivals in zip(uris, versions, strict=True):
        if not arrivals:
            report.add("unknown", 1, format_unknown_file(str(uri)))
        for arrival in arrivals:
            if arrival.manifest is None:
                report.add("ignored", 1, f"{uri} is IGNORED: {arrival.reason}")
            else:
                files.setdefault(arrival.manifest, set()).add(arrival.file)
    return files


def find_by_selection(
    services: Services, pool: ThreadPoolExecutor, selection: Selection, report: PromotionReport
) -> dict[str, set[ObjectVersion]]:
    """The files of QUEUED manifests of the selection, by manifest, from the index: a hint.

    Manifests of the stream lane are included: a promote that crashed may have left them without a pointer.

    Raises
    ------
    InvalidInputError
        More than ``MAX_FILES`` files of the batch lane.
    """
    batch, stream = (list(open_rows(services, lane, State.QUEUED, selection)) for lane in (Lane.BATCH, Lane.STREAM))
    number = sum(row.files for row in batch)
    if number > MAX_FILES:
        raise InvalidInputError(
            f"the selection holds {format_count(number, 'file')} in {format_count(len(batch), 'manifest')} of the "
            f"batch lane, one promote takes {MAX_FILES:,}: pass a smaller range, or start overnight"
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
