"""Files of a bucket without versions that were put again with the same bytes, after their manifest could not read them.

Such a file has the identity of the arrival that the ledger knows. It may be converted once more only if no generation
of the earlier manifest can ever publish it: the DONE manifest relinquishes the file first, then another one adopts the
arrival. What is relinquished is left out by every later generation, so the file's rows are published once.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from typing import TYPE_CHECKING

from lake.commit import read_commit
from lake.errors import InvalidDocumentError
from lake.exclusions import read_exclusions, write_exclusions
from lake.ledger import State
from lake.manifest import read_manifest
from lake.successors import files_by_successor
from router.ownership.draft import RoutedArrival
from router.ownership.outcome import UNANSWERED, ArrivalOutcome
from router.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lake.ledger import ArrivalRow, ManifestRow
    from lake.manifest import ObjectVersion
    from router.ownership.outcome import Ownership
    from router.services import Services

ReturnedFile = tuple[RoutedArrival, "ArrivalRow"]
"""An arrival that was put again, and its current row."""
RELINQUISHED = "it was put again after this manifest could not read it: another manifest converts it"


def was_put_again(arrival: RoutedArrival, row: ArrivalRow) -> bool:
    """Whether the file is in a bucket without versions and is younger than the row of its owner.

    The owner cannot have read it before ``recorded_at``. An event that is only redelivered is older than the row; if
    the clock of the process that recorded it was behind that of S3, it is not younger than the recorded event.
    """
    if arrival.file.version_id is not None or row.manifest is None:
        return False
    put_at = datetime.fromisoformat(arrival.file.arrived_at)
    return put_at > max(datetime.fromisoformat(row.recorded_at), datetime.fromisoformat(row.file.arrived_at))


def take_back(
    services: Services, owner: ManifestRow, returned: Sequence[ReturnedFile], ownership: Ownership
) -> list[RoutedArrival]:
    """The files that no generation of their manifest will ever publish, ready for adoption; the others get an outcome.

    ``owner`` is the manifest that the arrival rows name, by a consistent read.
    """
    try:
        return [
            arrival
            for row, held in _last_owners(services, owner, returned)
            for arrival in _take_back_from(services, row, held, ownership)
        ]
    except UNANSWERED as error:
        logger.warning("returned files not resolved", manifest_id=owner.id, files=len(returned), error=str(error))
        return []


def _last_owners(
    services: Services, owner: ManifestRow, returned: Sequence[ReturnedFile]
) -> list[tuple[ManifestRow, list[ReturnedFile]]]:
    """The manifests at the end of the chain of successors, each with its files."""
    by_file = {row.file: (arrival, row) for arrival, row in returned}
    pending: list[tuple[ManifestRow, set[ObjectVersion]]] = [(owner, set(by_file))]
    found = []
    while pending:
        row, files = pending.pop()
        if row.state != State.SUPERSEDED:
            found.append((row, [by_file[file] for file in sorted(files)]))
            continue
        held = files_by_successor(services.s3, services.ledger, services.resources, row, files)
        pending += [(_existing(services, successor), held[successor]) for successor in held]
    return found


def _existing(services: Services, manifest: str) -> ManifestRow:
    row = services.ledger.manifests.get(manifest)
    if row is None:
        raise InvalidDocumentError(f"the ledger has no manifest {manifest}, which superseded another one: report it")
    return row


def _take_back_from(
    services: Services, owner: ManifestRow, returned: Sequence[ReturnedFile], ownership: Ownership
) -> list[RoutedArrival]:
    outcome = _outcome_while_open(owner)
    if outcome is not None:
        ownership.set_outcome((row.file for _, row in returned), outcome)
        return []
    unread = _unread_versions(services, owner)
    lost = [(arrival, row) for arrival, row in returned if (row.file.uri, row.file.version) in unread]
    ownership.set_outcome((row.file for item, row in returned if (item, row) not in lost), ArrivalOutcome.DUPLICATE)
    if not lost or not _relinquish(services, owner, [row.file for _, row in lost]):
        return []
    return [
        RoutedArrival(
            arrival.file,
            row.partition or arrival.partition,
            arrival.lane,
            _reason(arrival, owner),
            adopted_row=row,
            urgent=arrival.urgent,
        )
        for arrival, row in lost
    ]


def _outcome_while_open(owner: ManifestRow) -> ArrivalOutcome | None:
    """The outcome of a file of a manifest that has not published; None: it is DONE.

    A QUEUED manifest without exclusions reads the file in its next attempt. An attempt that has begun may have missed
    the file. A FAILED manifest has published nothing of it: it is reprocessed as a whole.
    """
    if owner.state == State.DONE:
        return None
    will_read = owner.state == State.QUEUED and owner.exclusions is None
    if will_read or owner.state == State.FAILED:
        return ArrivalOutcome.DUPLICATE
    return ArrivalOutcome.POSTPONED


def _unread_versions(services: Services, owner: ManifestRow) -> set[tuple[str, str]]:
    """URI and version of each file that the published generation could not read."""
    assert owner.published is not None
    document = read_commit(services.s3, services.resources.control_bucket, owner.published.document)
    return {(source.uri, source.version) for source in document.sources if source.failed is not None}


def _relinquish(services: Services, owner: ManifestRow, files: Sequence[ObjectVersion]) -> bool:
    """The document first, then the row; False: the row has changed, so nothing is known about the files."""
    s3, resources = services.s3, services.resources
    before = {}
    if owner.relinquished is not None:
        manifest = read_manifest(s3, resources.control_bucket, owner, resources.file_buckets)
        before = read_exclusions(s3, resources.control_bucket, owner.relinquished, manifest)
    after = before | dict.fromkeys(files, RELINQUISHED)
    if len(after) == len(before):
        return True
    key = write_exclusions(s3, resources.control_bucket, owner, after)
    return services.ledger.manifests.relinquish(owner, key)


def _reason(arrival: RoutedArrival, owner: ManifestRow) -> str:
    return f"{arrival.reason} (put again after manifest {owner.id} could not read it)"


def by_owner(returned: Sequence[ReturnedFile]) -> dict[str, list[ReturnedFile]]:
    """The files by the manifest that their rows name."""
    groups: defaultdict[str, list[ReturnedFile]] = defaultdict(list)
    for arrival, row in returned:
        groups[row.manifest or ""].append((arrival, row))
    return groups
