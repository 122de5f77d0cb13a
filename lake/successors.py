"""Finds the manifests that hold the files of superseded manifests and of parts."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from lake.aws_types import S3Client
from lake.errors import InvalidDocumentError, UnusableDocumentError
from lake.ledger import Ledger, ManifestRow, State
from lake.ledger.table import MAX_BATCH_KEYS, batches_of
from lake.ledger.transitions import OnDamage, raise_damage
from lake.manifest import Identity, ObjectVersion
from lake.manifest_documents import find_division, read_manifest
from lake.resource_names import ResourceNames

PARALLEL_READS = 16
"""Requests at a time. One page of rows, about 3 KiB each, is in memory at a time."""


def follow(
    ledger: Ledger,
    manifests: Iterable[str],
    *,
    follows: Callable[[ManifestRow], bool] = lambda row: row.state == State.SUPERSEDED,
    parallel: int = PARALLEL_READS,
    on_damage: OnDamage = raise_damage,
) -> Iterator[list[tuple[str, ManifestRow | None]]]:
    """Manifests with their rows by consistent reads, each once, page by page; None if the ledger has no such row.

    After the given manifests come the successors of each that ``follows`` accepts, to the end of the chain.
    ``parallel`` reads of ``MAX_BATCH_KEYS`` rows run at a time, and call ``on_damage`` in their threads. Raises
    botocore's errors.
    """
    read = partial(ledger.manifests.get_many, on_damage=on_damage)
    seen: set[str] = set()
    level = manifests
    with ThreadPoolExecutor(parallel) as pool:
        while level:
            successors: dict[str, None] = {}
            for ids in batches_of(level, parallel * MAX_BATCH_KEYS):
                new = [manifest for manifest in dict.fromkeys(ids) if manifest not in seen]
                seen.update(new)
                rows = [row for batch in pool.map(read, batches_of(new)) for row in batch]
                for row in rows:
                    if row is not None and follows(row):
                        successors.update(dict.fromkeys(row.superseded_by))
                yield list(zip(new, rows, strict=True))
            level = [manifest for manifest in successors if manifest not in seen]


def files_by_successor(
    s3: S3Client, ledger: Ledger, resources: ResourceNames, row: ManifestRow, files: Iterable[ObjectVersion]
) -> dict[str, set[ObjectVersion]]:
    """``files`` grouped by the successor of ``row`` that lists them. It reads documents until all files are found.

    The successors of a part are manifests of its collection's division; empty while the division is not carried out. If
    only one successor's document cannot be used, the files that no other successor lists are assigned to it. Raises
    ``InvalidDocumentError`` if a file is in no successor, or the error of the first document if several cannot be
    used.
    """
    remaining = {Identity.of(file): file for file in files}
    # Only the names of the files are compared, and input.bucket can have been another one.
    buckets = {*resources.file_buckets, *(identity.bucket for identity in remaining)}
    successors = row.superseded_by if row.collection is None else _of_part(s3, ledger, resources, row, remaining)
    found: dict[str, set[ObjectVersion]] = {}
    unusable: dict[str, UnusableDocumentError] = {}
    for successor in successors:
        if not remaining:
            break
        current = ledger.manifests.get(successor)
        if current is None and row.collection is not None:
            return {}
        if current is None:
            raise InvalidDocumentError(
                f"the ledger has no manifest {successor}, which superseded {row.id}: this is a defect, report it"
            )
        try:
            manifest = read_manifest(s3, resources.control_bucket, current, buckets)
        except UnusableDocumentError as error:
            unusable[successor] = error
            continue
        held = {remaining.pop(Identity.of(file)) for file in manifest.files if Identity.of(file) in remaining}
        if held:
            found[successor] = held
    if not remaining or not successors:
        return found
    if len(unusable) == 1:
        return {**found, **{successor: set(remaining.values()) for successor in unusable}}
    if unusable:
        raise next(iter(unusable.values()))
    file = next(iter(remaining.values()))
    raise InvalidDocumentError(
        f"{file.uri} is in none of the manifests that superseded {row.id}: this is a defect, report it"
    )


def _of_part(
    s3: S3Client, ledger: Ledger, resources: ResourceNames, row: ManifestRow, files: Mapping[Identity, ObjectVersion]
) -> list[str]:
    """The manifests that can have these files of a part; empty while the part is not divided."""
    division = find_division(s3, ledger, resources.control_bucket, row)
    if division is None:
        return []
    rows = [arrival for batch in batches_of(files.values()) for arrival in ledger.arrivals.get_many(batch)]
    datasets = {arrival.partition.dataset for arrival in rows if arrival is not None and arrival.partition is not None}
    return list(dict.fromkeys(name for dataset in sorted(datasets) for name in division.holders(row.id, dataset)))
