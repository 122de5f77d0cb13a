"""One large file, read by ranges from a folder instead of S3: memory of its tasks, sizes of its objects."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from obstore.store import LocalStore

from lake.manifest import ObjectVersion
from lake.partition import Partition
from lake.settings import ConvertSettings
from tests.load.lanes import bodies
from transform.output_ratio import output_ratio
from transform.run_task import run_task
from transform.source import Source
from transform.splits import pack_tasks, split_files
from transform.task_model import Task
from transform.upload import Uploads

if TYPE_CHECKING:
    from typing_extensions import Buffer

BLOCK_BYTES = 8_000_000


@dataclass(frozen=True, slots=True)
class Large:
    """What the conversion of one file, task after task in this process, took and gave.

    Peaks are resident megabytes above the start of the process.
    """

    bytes: int
    tasks: int
    rows: int
    first_half_megabytes: float
    second_half_megabytes: float
    megabytes_per_second: float
    smallest_object: int
    largest_object: int


class _FolderSource(Source):
    """Ranges of a local file under the version of its event."""

    def __init__(self, folder: Path) -> None:
        self._store_of_folder = LocalStore(str(folder))
        super().__init__()

    def fetch(self, file: ObjectVersion, start: int, end: int) -> Buffer:
        return self._store_of_folder.get_range(file.key, start=start, end=end)


class _NoS3:
    """Takes uploads and keeps nothing but their hashes."""

    def create_multipart_upload(self, **_: Any) -> dict[str, str]:
        return {"UploadId": "u"}

    def upload_part(self, *, Body: Any, **_: Any) -> dict[str, str]:  # noqa: N803
        import hashlib

        return {"ETag": hashlib.file_digest(Body, "md5").hexdigest()}


def large_file(folder: Path, size: int) -> Large:
    """Convert a file of about ``size`` bytes, one task after the other in this process."""
    path = folder / "large.ndjson"
    blocks = [body.data for body in bodies(BLOCK_BYTES)]
    with path.open("wb") as file:
        for number in range(max(1, size // BLOCK_BYTES)):
            file.write(blocks[number % len(blocks)])
    version = ObjectVersion("input", path.name, "0" * 32, path.stat().st_size, "2026-01-01T00:00:00+00:00", "v")
    settings = ConvertSettings()
    source, base, peaks, rows = _FolderSource(folder), _peak_after_reset(), [], 0
    splits = split_files([version], set(), settings.split_bytes)
    tasks = pack_tasks(splits, settings.target_file_bytes, output_ratio(source, splits, settings))
    objects: list[int] = []
    started = time.monotonic()
    for number, part in enumerate(tasks):
        _peak_after_reset()
        task = Task("m", 1, Partition("orders", "2026-01-01", 0), number, part, (), "lake", "quarantine", settings)
        scratch = folder / f"task-{number}"
        scratch.mkdir()
        with Uploads(_NoS3()) as uploads:  # type: ignore[arg-type]
            result = run_task(task, source, uploads, scratch)
        rows += sum(item.rows for item in result.splits)
        objects += [item.size for item in result.objects]
        peaks.append((_peak() - base) / 1e6)
    seconds = time.monotonic() - started
    middle = max(1, len(peaks) // 2)
    path.unlink()
    return Large(
        version.size,
        len(tasks),
        rows,
        max(peaks[:middle]),
        max(peaks[middle:] or peaks),
        version.size / 1e6 / seconds,
        min(objects),
        max(objects),
    )


def _peak_after_reset() -> int:
    """Forget the peak so far (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")
    return _peak()


def _peak() -> int:
    status = Path(f"/proc/{os.getpid()}/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))
