"""Whether rejected lines may be given back: they are still rejected, and were not given back before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lake.counted import format_count
from lake.errors import InvalidInputError
from lake.ledger import State
from lake.resubmission import MAX_LINES, read_resubmission

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mypy_boto3_s3 import S3Client

    from lake.ledger import Ledger, ResubmissionRow
    from lake.resubmission import Resubmission
    from router.ownership import RoutedArrival
    from router.services import Services

EXPORT_AGAIN = "export the lines again with 'hybrid-router quarantine export'"


def check_resubmission(
    s3: S3Client, ledger: Ledger, control_bucket: str, resubmission: Resubmission, earlier: Sequence[ResubmissionRow]
) -> None:
    """Compare a resubmission with the ledger; ``earlier`` are all that are recorded of its hour.

    Memory holds its own lines and those of one earlier resubmission.

    Raises
    ------
    InvalidInputError
        It holds no line, too many, or one twice; a line is no longer in the quarantine; or it was given back before.
    InvalidDocumentError
        The document of an earlier one is gone or was changed.
    """
    lines = set(resubmission.identities())
    if not 0 < len(lines) <= MAX_LINES or len(lines) != resubmission.lines:
        raise InvalidInputError(
            f"a resubmission takes 1 to {MAX_LINES:,} lines, each once, not {resubmission.lines:,}: pass fewer lines"
        )
    _check_still_rejected(ledger, resubmission)
    for row in earlier:
        common = lines.intersection(read_resubmission(s3, control_bucket, row).identities())
        if common:
            source, _, offset = min(common)
            raise InvalidInputError(
                f"{format_count(len(common), 'line was', 'lines were')} given back before, by resubmission {row.name} "
                f"of {row.recorded_at}; the first is at byte {offset} of {source}: run 'hybrid-router quarantine "
                "retry' again, it leaves out what was given back"
            )


def _check_still_rejected(ledger: Ledger, resubmission: Resubmission) -> None:
    """A line counts as rejected while the generation that has rejected it is the published one, and no other begins."""
    for manifest, generation in sorted({(item.manifest, item.generation) for item in resubmission.rejected}):
        row = ledger.manifests.get(manifest)
        if row is None or row.partition != resubmission.partition:
            raise InvalidInputError(f"manifest {manifest} is not one of {resubmission.partition}: {EXPORT_AGAIN}")
        if row.state != State.DONE or row.published is None:
            raise InvalidInputError(
                f"manifest {manifest} is {row.state}, so its lines may be rejected no longer: wait until it is DONE, "
                f"then {EXPORT_AGAIN}"
            )
        if row.published.generation != generation:
            raise InvalidInputError(f"manifest {manifest} was converted again since the export: {EXPORT_AGAIN}")


def is_recorded(services: Services, arrival: RoutedArrival) -> bool:
    """Whether an arrival of an intent may be owned: lines of a resubmission only once it is recorded.

    Its function has ended when the sweep resumes an intent, so what is not recorded by then was refused or interrupted,
    and its caller was told.
    """
    if arrival.file.bucket != services.resources.control_bucket:
        return True
    recorded = services.ledger.resubmissions.of(arrival.partition)
    return any(row.file == arrival.file for row in recorded)
