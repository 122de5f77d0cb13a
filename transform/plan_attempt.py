"""The plan of one attempt at one manifest: which tasks read which parts of which files."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ndjson_arrow import detect_codec

from lake.manifest import read_manifest
from lake.time import iso_utc
from transform.exclusions import read_exclusions
from transform.output_ratio import output_ratio
from transform.source import Source, UnreadableFileError
from transform.splits import pack, splits_of
from transform.task_model import Task

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lake.ledger import Claim
    from lake.manifest import Manifest, ObjectVersion
    from lake.settings import ConvertSettings
    from transform.context import ConversionContext
    from transform.task_model import Split

HEAD_BYTES = 4
PARALLEL_SNIFFS = 32


@dataclass(frozen=True, slots=True)
class Attempt:
    """A claimed manifest and the work it stands for."""

    claim: Claim
    manifest: Manifest
    excluded: dict[ObjectVersion, str]
    """Files that an earlier attempt could not read to their end, with the reason."""
    tasks: tuple[Task, ...]
    started_at: str
    """ISO 8601, UTC."""


def plan_attempt(context: ConversionContext, claim: Claim) -> Attempt:
    """Read the manifest and cut it into tasks; the dataset's known columns are frozen here.

    Raises
    ------
    InvalidDocumentError
        The manifest or its list of excluded files is not what this system wrote.
    """
    services = context.services
    resources, settings = services.resources, services.settings.convert
    started_at = iso_utc(context.clock())
    manifest = read_manifest(services.s3, resources.control_bucket, claim.row.id, {resources.input_bucket})
    excluded = read_exclusions(services.s3, resources.control_bucket, claim.row.exclusions, manifest)
    files = [file for file in manifest.files if file not in excluded]
    dataset = services.ledger.datasets.get(manifest.partition.dataset)
    source = Source()
    splits = splits_of(files, _compressed(source, files, settings.split_bytes), settings.split_bytes)
    packed = _packed(source, splits, settings, None if dataset is None else dataset.output_ratio)
    tasks = tuple(
        Task(
            manifest.id,
            claim.row.generation,
            manifest.partition,
            number,
            task_splits,
            () if dataset is None else dataset.columns,
            resources.lake_bucket,
            resources.quarantine_bucket,
            settings,
        )
        for number, task_splits in enumerate(packed)
    )
    return Attempt(claim, manifest, excluded, tasks, started_at)


def _packed(
    source: Source, splits: Sequence[Split], settings: ConvertSettings, measured: float | None
) -> list[tuple[Split, ...]]:
    """Splits to tasks by the manifest's own ratio: the dataset's earlier manifests may have been unlike it, or small.

    What is no larger than one output file should be becomes one task, whatever its ratio.
    """
    large = sum(split.size for split in splits) > settings.target_file_bytes
    sampled = output_ratio(source, splits, settings) if large else None
    return pack(splits, settings.target_file_bytes, sampled or measured)


def _compressed(source: Source, files: Sequence[ObjectVersion], split_bytes: int) -> set[ObjectVersion]:
    """Large files that begin like a compressed one; small ones are read whole whatever they are."""
    large = [file for file in files if file.size > max(split_bytes, HEAD_BYTES)]
    if not large:
        return set()

    def sniff(file: ObjectVersion) -> bool:
        try:
            return detect_codec(bytes(source.fetch(file, 0, HEAD_BYTES))) is not None
        except UnreadableFileError:
            return False  # the task that reads it says why

    with ThreadPoolExecutor(PARALLEL_SNIFFS) as pool:
        return {file for file, compressed in zip(large, pool.map(sniff, large), strict=True) if compressed}
