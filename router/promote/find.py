"""From what a person asks for to the manifests that are thought to hold it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lake.errors import InvalidDocumentError, InvalidInputError
from lake.ledger import State
from lake.manifest import Lane, read_manifest
from router.s3_uri import never_seen
from router.selection import open_rows

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import ThreadPoolExecutor

    from lake.ledger import ManifestRow
    from lake.manifest import Manifest, ObjectVersion
    from router.promote.report import Report
    from router.s3_uri import Name
    from router.selection import Selection
    from router.services import Services

MAX_FILES = 10_000
"""That wait in the batch lane, of a selection: each may need a stream manifest of its own."""


def named(
    services: Services, pool: ThreadPoolExecutor, names: Sequence[Name], report: Report
) -> dict[str, set[ObjectVersion]]:
    """Every version of the keys that the ledger knows, by the manifest that took it first."""
    wanted: dict[str, set[ObjectVersion]] = {}
    found = pool.map(lambda name: services.ledger.arrivals.versions(name.bucket, name.key), names)
    for name, arrivals in zip(names, found, strict=True):
        if not arrivals:
            report.add("unknown", 1, never_seen(name.uri))
        for arrival in arrivals:
            if arrival.manifest is None:
                report.add("ignored", 1, f"{name.uri} is IGNORED: {arrival.reason}")
            else:
                wanted.setdefault(arrival.manifest, set()).add(arrival.file)
    return wanted


def selected(
    services: Services, pool: ThreadPoolExecutor, selection: Selection, report: Report
) -> dict[str, set[ObjectVersion]]:
    """What is QUEUED in the partitions, as the index has it: a hint, like the documents that are read here.

    Manifests of the stream lane as well: a promote that died may have left them without a pointer.

    Raises
    ------
    InvalidInputError
        More files than one promote takes.
    """
    batch, stream = (list(open_rows(services, lane, State.QUEUED, selection)) for lane in (Lane.BATCH, Lane.STREAM))
    files = sum(row.files for row in batch)
    if files > MAX_FILES:
        raise InvalidInputError(
            f"the selection holds {files:,} files in {len(batch):,} manifests of the batch lane, one promote takes "
            f"{MAX_FILES:,}: type a smaller range, or start overnight"
        )
    rows = [*batch, *stream]
    wanted = {}
    for row, document in zip(rows, pool.map(lambda row: _document(services, row), rows), strict=True):
        if isinstance(document, str):
            report.add("notMoved", row.files, f"manifest {row.id} is left to the run that will fail it: {document}")
        else:
            wanted[row.id] = set(document.files)
    return wanted


def _document(services: Services, row: ManifestRow) -> Manifest | str:
    """The manifest, or why it cannot be read."""
    resources = services.resources
    try:
        return read_manifest(services.s3, resources.control_bucket, row.id, (resources.input_bucket,))
    except (InvalidDocumentError, services.s3.exceptions.NoSuchKey) as error:
        return str(error)
