"""The plan of one attempt at one manifest: which tasks read which parts of which files."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC
from typing import TYPE_CHECKING

from ndjson_arrow import can_split

from lake.exclusions import read_exclusions
from lake.ledger.datasets import is_full
from lake.manifest import Lane, Manifest, ObjectVersion
from lake.manifest_document import read_manifest
from lake.time import iso_utc
from transform.file_deadline import stream_seconds
from transform.output_ratio import output_ratio
from transform.published_files import KeptGeneration, find_kept_generation
from transform.source import DeniedFileError, Source, UnreadableFileError
from transform.splits import pack_tasks, split_files
from transform.task_model import Split, Task

if TYPE_CHECKING:
    from lake.commit import SourceCount
    from lake.ledger import Claim
    from lake.settings import ConvertSettings
    from transform.context import ConversionContext
    from transform.storage import InputRanges

HEAD_BYTES = 4096
"""Read of a large file to find out whether it can be split. A longer blank start is taken for one of an array."""
PARALLEL_READS = 32


@dataclass(frozen=True, slots=True)
class Attempt:
    """A claimed manifest and the tasks that convert it."""

    claim: Claim
    manifest: Manifest
    excluded: dict[ObjectVersion, str]
    """Files that an earlier attempt could not read to their end, with the reason."""
    tasks: tuple[Task, ...]
    started_at: str
    """ISO 8601, UTC."""
    columns_full: bool
    """The dataset gets no other column: further keys of this attempt go to ``_rescued``."""
    kept: KeptGeneration | None = None
    """What it publishes together with its own objects; None: it converts the whole manifest."""

    @property
    def kept_sources(self) -> dict[ObjectVersion, SourceCount]:
        """The counts of the files whose published rows it keeps."""
        return {} if self.kept is None else self.kept.sources

    @property
    def left_out(self) -> dict[ObjectVersion, str]:
        """Excluded files of which no rows are kept, with the reason: they are in the quarantine by reference."""
        return {file: reason for file, reason in self.excluded.items() if file not in self.kept_sources}


def plan_attempt(context: ConversionContext, claim: Claim) -> Attempt:
    """Read the manifest and divide it into tasks; the dataset's known columns are frozen here.

    Raises
    ------
    InvalidDocumentError
        The manifest or its list of excluded files is not what this system wrote.
    TransientError, BotoCoreError, ClientError
        A document, the ledger or the input could not be read now.
    """
    services = context.services
    resources, settings = services.resources, services.settings.convert
    started_at = iso_utc(context.clock())
    manifest = read_manifest(services.s3, resources.control_bucket, claim.row, resources.file_buckets)
    excluded = read_exclusions(services.s3, resources.control_bucket, claim.row.exclusions, manifest)
    kept = find_kept_generation(services, claim.row)
    files = [file for file in manifest.files if file not in excluded] if kept is None else kept.to_convert
    dataset = services.ledger.datasets.get(manifest.partition.dataset)
    known = () if dataset is None else dataset.columns
    limit = settings.column_limit
    if dataset is not None:
        limit = dataset.column_limit(limit, context.clock().astimezone(UTC).date())
    full = is_full(known, limit)
    settings = replace(settings, column_limit=min(limit, len(known)) if full else limit)
    input_keys = services.settings.input_kms_keys
    source = Source.in_region(services.region, input_keys)
    packed = divide_input(source, files, settings, None if dataset is None else dataset.output_ratio)
    tasks = tuple(
        Task(
            manifest.id,
            claim.row.generation,
            manifest.partition,
            number,
            task_splits,
            known,
            resources.lake_bucket,
            resources.quarantine_bucket,
            services.region,
            settings,
            input_keys,
            stream_seconds(services.settings.stream) if claim.row.lane == Lane.STREAM else None,
        )
        for number, task_splits in enumerate(packed)
    )
    return Attempt(claim, manifest, excluded, tasks, started_at, full, kept)


def divide_input(
    source: InputRanges,
    files: Sequence[ObjectVersion],
    settings: ConvertSettings,
    measured_ratio: float | None,
    min_tasks: int = 1,
) -> list[tuple[Split, ...]]:
    """The splits of each task.

    By the manifest's own ratio: the dataset's earlier manifests may have been different, or small. Input that is not
    larger than the target of one output file is one task, whatever its ratio. At least ``min_tasks`` where the input
    has as many splits.

    Raises
    ------
    TransientError, BotoCoreError, ClientError
        The input could not be read now.
    """
    splits = split_files(files, _whole_files(source, files, settings), settings.split_bytes)
    large = sum(split.size for split in splits) > settings.target_file_bytes
    sampled_ratio = output_ratio(source, splits, settings) if large else None
    return pack_tasks(splits, settings.target_file_bytes, sampled_ratio or measured_ratio, min_tasks)


def _whole_files(source: InputRanges, files: Sequence[ObjectVersion], settings: ConvertSettings) -> set[ObjectVersion]:
    """Files larger than a split that can only be read whole; the others are read whole whatever they are."""
    large = [file for file in files if file.size > settings.split_bytes]
    if not large or settings.concatenated:
        return set(large)

    def is_whole(file: ObjectVersion) -> bool:
        try:
            return not can_split(bytes(source.fetch(file, 0, min(HEAD_BYTES, file.size))))
        except UnreadableFileError:
            return False  # The task that reads the file reports the reason.
        except DeniedFileError:
            return True  # The same; should the task be allowed to read the file, it is right whatever its form is.

    with ThreadPoolExecutor(PARALLEL_READS) as pool:
        return {file for file, whole in zip(large, pool.map(is_whole, large), strict=True) if whole}
