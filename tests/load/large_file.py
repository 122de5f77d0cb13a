"""One large file, read by ranges from a folder instead of S3: memory of its tasks, sizes of its output objects."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from obstore.store import LocalStore

from lake.commit import checksum_of
from lake.manifest import ObjectVersion, Partition
from lake.settings import ConvertSettings
from sizing.peak_memory import peak_bytes, reset_peak_bytes
from tests.load.lanes import bodies
from transform.plan_attempt import output_ratio, pack_tasks, split_files
from transform.run_task import run_task
from transform.source import Source
from transform.task_model import Task
from transform.upload import Uploads

if TYPE_CHECKING:
    from pathlib import Path

    from typing_extensions import Buffer

BLOCK_BYTES = 8_000_000


@dataclass(frozen=True, slots=True)
class LargeFileConversion:
    """The conversion of one file, task after task in this process: sizes, memory and speed.

    Megabytes are 10^6 bytes. Memory is peak resident memory above the value before the first task.
    """

    bytes: int
    tasks: int
    rows: int
    first_half_megabytes: float
    second_half_megabytes: float
    megabytes_per_second: float
    min_object_bytes: int
    max_object_bytes: int


class _FolderSource(Source):
    """Reads ranges of local files instead of S3 objects."""

    def __init__(self, folder: Path) -> None:
        self._folder_store = LocalStore(str(folder))

    def fetch(self, file: ObjectVersion, start: int, end: int) -> Buffer:
        return self._folder_store.get_range(file.key, start=start, end=end)


class _DiscardingS3:
    """Accepts uploads and discards them; it computes and returns their checksum, as S3 does."""

    def create_multipart_upload(self, **_: Any) -> dict[str, str]:
        return {"UploadId": "u"}

    def upload_part(self, *, Body: Any, **_: Any) -> dict[str, str]:  # noqa: N803
        return {"ETag": "e", "ChecksumCRC32": checksum_of(Body)}


def large_file_load(folder: Path, size: int) -> LargeFileConversion:
    """Convert a file of about ``size`` bytes, one task after the other in this process."""
    path = folder / "large.ndjson"
    blocks = bodies(BLOCK_BYTES)
    with path.open("wb") as file:
        for number in range(max(1, size // BLOCK_BYTES)):
            file.write(blocks[number % len(blocks)])
    version = ObjectVersion("input", path.name, "0" * 32, path.stat().st_size, "2026-01-01T00:00:00+00:00", "v")
    settings = ConvertSettings()
    reset_peak_bytes()
    source, base, peaks, rows = _FolderSource(folder), peak_bytes(), [], 0
    splits = split_files([version], set(), settings.split_bytes)
    tasks = pack_tasks(splits, settings.target_file_bytes, output_ratio(source, splits, settings))
    objects: list[int] = []
    started = time.monotonic()
    for number, part in enumerate(tasks):
        reset_peak_bytes()
        task = Task(
            "m",
            1,
            Partition("orders", "2026-01-01", 0),
            number,
            part,
            (),
            "lake",
            "quarantine",
            "eu-central-1",
            settings,
        )
        scratch = folder / f"task-{number}"
        scratch.mkdir()
        with Uploads(_DiscardingS3()) as uploads:  # type: ignore[arg-type]
            result = run_task(task, source, uploads, scratch)
        rows += sum(item.rows for item in result.splits)
        objects += [item.size for item in result.objects]
        peaks.append((peak_bytes() - base) / 1e6)
    seconds = time.monotonic() - started
    middle = max(1, len(peaks) // 2)
    path.unlink()
    return LargeFileConversion(
        version.size,
        len(tasks),
        rows,
        max(peaks[:middle]),
        max(peaks[middle:] or peaks),
        version.size / 1e6 / seconds,
        min(objects),
        max(objects),
    )
