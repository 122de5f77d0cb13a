"""Plans one attempt at a manifest: which tasks read which parts of which files, in which Spark job."""

import math
import tempfile
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC
from itertools import islice, pairwise
from pathlib import Path

from ndjson_arrow import Batch, Reader, can_split

from lake.commit import CommitDocument, SourceCount, read_commit
from lake.errors import ForeignBucketError
from lake.ledger import DatasetMeasurement, ManifestRow, SpeedSample
from lake.ledger.datasets import NOT_MEASURED, DatasetRow, is_full
from lake.manifest import Lane, Manifest, ObjectVersion
from lake.manifest_documents import read_exclusions, read_manifest
from lake.settings import ConvertSettings
from lake.texts import format_count
from lake.time import iso_utc
from transform.chunk_sample import ChunkSample, Sampling
from transform.clients import Fetch
from transform.parquet_writer import OpenFile
from transform.source import DeniedFileError, Source, UnreadableFileError, ranges_of
from transform.task_model import ConversionContext, Split, Task, TaskResult, stream_seconds

HEAD_BYTES = 4096
"""Bytes of a large file that show whether it can be split. If they are all blank, the file counts as an array."""
PARALLEL_READS = 32
STAYS = "its published rows stay"


@dataclass(frozen=True, slots=True)
class KeptGeneration:
    """The published generation, which the next attempt keeps: it converts only files that are not in it."""

    document: CommitDocument
    sources: dict[ObjectVersion, SourceCount]
    to_convert: tuple[ObjectVersion, ...]
    """Files that the published generation could not read, and that were not found unreadable since."""
    reason: str


def find_kept_generation(context: ConversionContext, row: ManifestRow) -> KeptGeneration | None:
    """The generation that the next attempt keeps, because a file of it is unreadable now; None: it converts all files.

    Nothing is left to convert if the input was in another bucket, which this deployment does not read.

    Raises ``UnusableDocumentError`` if a document is gone, was changed, or cannot be read by this version;
    ``ClientError`` or ``BotoCoreError`` if a document could not be read now.
    """
    if row.published is None:
        return None
    resources, s3 = context.resources, context.s3
    try:
        manifest = read_manifest(s3, resources.control_bucket, row, resources.file_buckets)
    except ForeignBucketError as error:
        published = read_commit(s3, resources.control_bucket, row.published.document)
        return KeptGeneration(published, {}, (), f"{error}; {STAYS}")
    if row.exclusions is None:
        return None
    excluded = read_exclusions(s3, resources.control_bucket, row.exclusions, manifest)
    published = read_commit(s3, resources.control_bucket, row.published.document)
    counts = {(source.uri, source.version): source for source in published.sources if source.failed is None}
    sources = {file: counts[name] for file in manifest.files if (name := (file.uri, file.version)) in counts}
    lost = [(file.uri, reason) for file, reason in excluded.items() if file in sources]
    if not lost:
        return None
    uri, reason = lost[0]
    return KeptGeneration(
        published,
        sources,
        tuple(file for file in manifest.files if file not in sources and file not in excluded),
        f"{format_count(len(lost), 'file')} of its published generation {row.published.generation} can no longer be "
        f"read (first: {uri}: {reason}); {STAYS}",
    )


@dataclass(frozen=True, slots=True)
class Attempt:
    claim: ManifestRow
    """The row right after the claim."""
    manifest: Manifest
    excluded: dict[ObjectVersion, str]
    """Files that an earlier attempt could not read to their end, with the reason."""
    tasks: tuple[Task, ...]
    started_at: str
    columns_full: bool
    """Whether the dataset gets no other column, so that further keys of this attempt go to ``_rescued``."""
    kept: KeptGeneration | None = None
    """The generation that is published with its own objects; None if it converts the whole manifest."""


def plan_attempt(context: ConversionContext, claim: ManifestRow) -> Attempt:
    """Read the manifest and divide it into tasks; the dataset's known columns are frozen here.

    Raises ``InvalidDocumentError`` if the manifest or its list of excluded files is not as it was written;
    ``TransientError``, ``BotoCoreError`` or ``ClientError`` if a document, the ledger or the input is unreadable now.
    """
    resources, settings = context.resources, context.settings.convert
    started_at = iso_utc(context.clock())
    manifest = read_manifest(context.s3, resources.control_bucket, claim, resources.file_buckets)
    excluded = read_exclusions(context.s3, resources.control_bucket, claim.exclusions, manifest)
    kept = find_kept_generation(context, claim)
    if kept is None:
        files = tuple(file for file in manifest.files if file not in excluded)
    else:
        # All rows of a generation follow the same rules, by which they are verified.
        files, rules = kept.to_convert, kept.document
        settings = replace(
            settings,
            max_line_bytes=rules.max_line_bytes,
            concatenated=rules.concatenated,
            provenance=rules.provenance,
        )
    name = manifest.partition.dataset
    dataset = context.ledger.datasets.get(name) or DatasetRow(name, (), NOT_MEASURED)
    known = dataset.columns
    if settings.provenance and not dataset.provenance:
        context.ledger.datasets.note_provenance(name)
    limit = dataset.column_limit(settings.column_limit, context.clock().astimezone(UTC).date())
    full = is_full(known, limit)
    settings = replace(settings, column_limit=min(limit, len(known)) if full else limit)
    input_keys = context.settings.input_kms_keys
    source = Source(context.region, input_keys, resources.input_bucket)
    packed = divide_input(source.fetch, files, settings, dataset.measured.output_ratio)
    left_out = tuple((file, reason) for file, reason in excluded.items() if kept is None or file not in kept.sources)
    tasks = tuple(
        Task(
            manifest.id,
            claim.generation,
            manifest.partition,
            number,
            splits,
            known,
            resources.lake_bucket,
            resources.quarantine_bucket,
            context.region,
            settings,
            input_keys,
            resources.input_bucket,
            dataset.unnumbered if context.settings.has_table(name) else None,
            stream_seconds(context.settings.stream) if claim.lane == Lane.STREAM else None,
            () if splits else left_out,
        )
        for number, splits in enumerate([*packed, ()] if left_out else packed)
    )
    return Attempt(claim, manifest, excluded, tasks, started_at, full, kept)


def divide_input(
    fetch: Fetch,
    files: Sequence[ObjectVersion],
    settings: ConvertSettings,
    measured_ratio: float | None,
    min_tasks: int = 1,
) -> list[tuple[Split, ...]]:
    """The splits of each task.

    It uses the manifest's own output ratio, because earlier manifests of the dataset may have been different or small.
    Input up to the target of one output file is one task. There are at least ``min_tasks`` if the input has enough
    splits. Raises ``TransientError``, ``BotoCoreError`` or ``ClientError`` if the input could not be read now.
    """
    splits = split_files(files, _whole_files(fetch, files, settings), settings.split_bytes)
    large = sum(split.size for split in splits) > settings.target_file_bytes
    sampled_ratio = output_ratio(fetch, splits, settings) if large else None
    return pack_tasks(splits, settings.target_file_bytes, sampled_ratio or measured_ratio, min_tasks)


def _whole_files(fetch: Fetch, files: Sequence[ObjectVersion], settings: ConvertSettings) -> set[ObjectVersion]:
    """Files larger than a split that can only be read whole; smaller files are always read whole."""
    large = [file for file in files if file.size > settings.split_bytes]
    if not large or settings.concatenated:
        return set(large)

    def is_whole(file: ObjectVersion) -> bool:
        try:
            return not can_split(bytes(fetch(file, 0, min(HEAD_BYTES, file.size))))
        except UnreadableFileError:
            return False  # The task that reads the file reports the reason.
        except DeniedFileError:
            return True  # As above; if the task may read the file after all, a whole read suits any format.

    with ThreadPoolExecutor(PARALLEL_READS) as pool:
        return {file for file, whole in zip(large, pool.map(is_whole, large), strict=True) if whole}


DEFAULT_OUTPUT_RATIO = 0.2
"""Parquet bytes per input byte of an unsampled manifest in an unmeasured dataset."""
MIN_OUTPUT_RATIO = 0.01
"""Lower ratios are raised to this one, because they would put too much input into one task."""


def split_files(files: Sequence[ObjectVersion], whole: Collection[ObjectVersion], split_bytes: int) -> list[Split]:
    """Splits of about equal size, at most ``split_bytes``, that tile each file; a file of ``whole`` is one split."""
    splits = []
    for file in files:
        count = 1 if file in whole else max(1, -(-file.size // split_bytes))
        borders = [file.size * number // count for number in range(count + 1)]
        splits += [Split(file, start, end) for start, end in pairwise(borders)]
    return splits


def pack_tasks(
    splits: Sequence[Split], target_file_bytes: int, output_ratio: float | None, min_tasks: int = 1
) -> list[tuple[Split, ...]]:
    """Pack consecutive splits into tasks that are each expected to write about ``target_file_bytes``.

    The number of tasks is rounded and the input shared evenly. So a task writes between two thirds and one and a half
    of the target, if the ratio is right and there is enough input. ``output_ratio`` is in Parquet bytes per input byte;
    None stands for ``DEFAULT_OUTPUT_RATIO``. ``min_tasks`` is the minimum number of tasks if there are enough splits.
    """
    ratio = max(output_ratio or DEFAULT_OUTPUT_RATIO, MIN_OUTPUT_RATIO)
    total = sum(split.size for split in splits)
    count = max(1, min(min_tasks, len(splits)), round(total * ratio / target_file_bytes))
    tasks: list[list[Split]] = []
    packed_bytes = 0
    for split in splits:
        # By the middle of the split, so that a task's error is at most half a split.
        slot = (2 * packed_bytes + split.size) * count // (2 * total) if total else 0
        if not tasks or (slot >= len(tasks) and tasks[-1]):
            tasks.append([])
        tasks[-1].append(split)
        packed_bytes += split.size
    return [tuple(task) for task in tasks]


def divide_into_portions(attempts: Sequence[Attempt], count: int) -> list[list[Attempt]]:
    """At most ``count`` non-empty portions with about the same number of tasks.

    An attempt is never divided, because its manifest is committed as a whole. In the batch lane, attempts with the
    longest task come first, as Spark gives free cores to the oldest job: a long task that began last would prolong the
    run. The stream lane keeps the order of arrival.
    """

    def max_task_bytes(attempt: Attempt) -> int:
        return max((task.ndjson_bytes for task in attempt.tasks if task.stream_seconds is None), default=0)

    attempts = sorted(attempts, key=max_task_bytes, reverse=True)
    tasks_per_portion = math.ceil(sum(len(attempt.tasks) for attempt in attempts) / count)
    portions: list[list[Attempt]] = []
    tasks = 0
    for attempt in attempts:
        if not portions or (tasks >= tasks_per_portion and attempt.tasks):
            portions.append([])
            tasks = 0
        portions[-1].append(attempt)
        tasks += len(attempt.tasks)
    return portions


SAMPLED_PLACES = 4
SAMPLE_BYTES = 8 << 20
"""Bytes read at all places together: enough for several pages of each column of a usual record."""
PIECE_BYTES = 8 << 10
"""Bytes that the reader is fed at once. Few, because a compressed file may expand a thousand times: the sample ends
with the piece that fills it."""
BATCH_BYTES = 4 << 20
"""Columns of this size are encoded and compressed, as in a task: the driver never holds more of them."""
MAX_BATCHES = 8


def output_ratio(fetch: Fetch, splits: Sequence[Split], settings: ConvertSettings) -> float | None:
    """Parquet bytes per stored input byte, from a few places of the splits; None if the sample has no row.

    Raises ``TransientError`` if the input could not be read now.
    """
    reader = Reader(
        column_limit=settings.column_limit,
        max_line_bytes=settings.max_line_bytes,
        concatenated=settings.concatenated,
        flush_bytes=BATCH_BYTES,
        reject_sample_count=0,
    )
    sampled = dict.fromkeys(splits[len(splits) * number // SAMPLED_PLACES] for number in range(SAMPLED_PLACES))
    read_bytes = 0

    def batches() -> Iterator[Batch]:
        nonlocal read_bytes
        for number, split in enumerate(sampled):
            reader.open(str(number), start=split.start)
            for piece in _pieces(fetch, split, SAMPLE_BYTES // len(sampled)):
                reader.feed(piece)
                read_bytes += len(piece)
                yield from iter(reader.read, None)
                if reader.done:
                    break
            reader.close()
        if (rest := reader.flush()) is not None:
            yield rest

    with tempfile.TemporaryDirectory(prefix="hybrid-router-") as folder:
        path = Path(folder) / "sample.parquet"
        file = OpenFile(path, settings, ChunkSample(Sampling(), 0))
        for batch in islice(batches(), MAX_BATCHES):
            file.write(batch)
        if not file.rows:
            return None
        file.close()
        return path.stat().st_size / read_bytes


def _pieces(fetch: Fetch, split: Split, max_bytes: int) -> Iterator[memoryview]:
    ranges = ranges_of(split, 0, max_bytes)
    if not ranges:
        return  # The file is empty.
    try:
        data = fetch(split.file, ranges[0].start, ranges[0].end)
    except (DeniedFileError, UnreadableFileError):
        return  # The task that reads the file reports the reason.
    with memoryview(data) as view:
        for start in range(0, len(view), PIECE_BYTES):
            yield view[start : start + PIECE_BYTES]


def measure_conversion(results: Sequence[TaskResult]) -> DatasetMeasurement:
    """The measurement of the tasks of one attempt.

    A task with both kinds of files divides its time by bytes of NDJSON: decompression is only a small part.
    """
    size = {True: 0, False: 0}
    compressed_milliseconds = 0
    for result in results:
        compressed = sum(split.bytes for split in result.splits if split.compressed)
        every = sum(split.bytes for split in result.splits) or 1
        compressed_milliseconds += round(result.milliseconds * compressed / every)
        for split in result.splits:
            size[split.compressed] += split.split.size
    plain_milliseconds = sum(result.milliseconds for result in results) - compressed_milliseconds
    return DatasetMeasurement(
        sum(item.size for result in results for item in result.objects),
        plain=SpeedSample(size[False], plain_milliseconds),
        compressed=SpeedSample(size[True], compressed_milliseconds),
    )
