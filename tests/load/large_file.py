"""One large file, read by ranges from a folder instead of S3: memory of its tasks, sizes of its output objects."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from lake.commit import checksum_of
from lake.manifest import Partition
from lake.settings import ConvertSettings
from offline.input_files import InputFiles, LocalFile
from sizing.peak_memory import peak_bytes, reset_peak_bytes
from tests.load.lanes import bodies
from transform.plan_attempt import output_ratio, pack_tasks, split_files
from transform.run_task import run_task
from transform.task_model import Task
from transform.upload import Uploads

if TYPE_CHECKING:
    from pathlib import Path

    from local.cloud import LocalCloud

FILE_BYTES = 4_000_000_000
BLOCK_BYTES = 8_000_000
MAX_MEMORY_GROWTH = 1.2
"""Peak memory of the second half of a large file divided by that of the first half."""
MIN_OBJECT_BYTES, MAX_OBJECT_BYTES = 64 << 20, 192 << 20
"""Of every output object of a manifest that is larger than the maximum."""


class _DiscardingS3:
    """Accepts uploads and discards them; it computes and returns their checksum, as S3 does."""

    def create_multipart_upload(self, **_: Any) -> dict[str, str]:
        return {"UploadId": "u"}

    def upload_part(self, *, Body: Any, **_: Any) -> dict[str, str]:  # noqa: N803
        return {"ETag": "e", "ChecksumCRC32": checksum_of(Body)}


def large_file_load(_: LocalCloud, folder: Path) -> bool:
    """Convert a file of about ``FILE_BYTES``, one task after the other in this process.

    Prints sizes, memory above that before the first task, and speed; False: memory grows, or an object has another size
    than readers want.
    """
    path = folder / "large.ndjson"
    blocks = bodies(BLOCK_BYTES)
    with path.open("wb") as file:
        for number in range(FILE_BYTES // BLOCK_BYTES):
            file.write(blocks[number % len(blocks)])
    version = LocalFile.found(str(path.resolve()))
    settings, partition = ConvertSettings(), Partition("orders", "2026-01-01", 0)
    reset_peak_bytes()
    source, base, peaks, rows = InputFiles("eu-central-1"), peak_bytes(), [], 0
    splits = split_files([version], set(), settings.split_bytes)
    tasks = pack_tasks(splits, settings.target_file_bytes, output_ratio(source, splits, settings))
    objects: list[int] = []
    started = time.monotonic()
    for number, part in enumerate(tasks):
        reset_peak_bytes()
        task = Task("m", 1, partition, number, part, (), "lake", "quarantine", "eu-central-1", settings)
        scratch = folder / f"task-{number}"
        scratch.mkdir()
        with Uploads(_DiscardingS3()) as uploads:  # type: ignore[arg-type]
            result = run_task(task, source, uploads, scratch)
        rows += sum(item.rows for item in result.splits)
        objects += [item.size for item in result.objects]
        peaks.append((peak_bytes() - base) / 1e6)
    speed = version.size / 1e6 / (time.monotonic() - started)
    path.unlink()
    middle = max(1, len(peaks) // 2)
    first, second = max(peaks[:middle]), max(peaks[middle:] or peaks)
    print(
        f"large: {version.size:,} bytes, {rows:,} rows, {len(tasks)} tasks: {speed:.0f} MB/s; "
        f"peak {first:.0f} MB in the first half, {second:.0f} MB in the second; "
        f"objects of {min(objects):,} to {max(objects):,} bytes",
        flush=True,
    )
    in_bounds = MIN_OBJECT_BYTES <= min(objects) <= max(objects) <= MAX_OBJECT_BYTES
    return in_bounds and second <= first * MAX_MEMORY_GROWTH
