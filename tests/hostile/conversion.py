"""Converts one hostile file in a process of its own, under a memory limit, and reports what it cost.

python -m tests.hostile.conversion NUMBER COUNT FOLDER
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrate.local_objects import LocalSink
from calibrate.peak_memory import peak_bytes, reset_peak_bytes
from lake.manifest import ObjectVersion
from lake.partition import Partition
from lake.settings import ConvertSettings
from tests.hostile.corpus import CORPUS, MIB
from transform.output_ratio import output_ratio
from transform.run_task import run_task
from transform.splits import split_file
from transform.task_model import Task
from transform.upload import Uploads

if TYPE_CHECKING:
    from tests.hostile.corpus import HostileFile

ADDRESS_SPACE = 8 << 30
"""Bytes: a file that costs more ends its process, not the machine."""


@dataclass(frozen=True)
class Cost:
    """What the conversion of one file cost; sizes in bytes."""

    stored: int
    inflated: int
    peak: int
    parquet: int
    quarantine: int
    fetched: int
    seconds: float
    refused: str | None

    def problems(self, file: HostileFile) -> list[str]:
        """Each limit of the file that does not hold."""
        checks = (
            ("peak memory", self.peak, file.peak_bytes),
            ("Parquet", self.parquet, file.parquet_per_inflated * self.inflated),
            ("quarantine", self.quarantine, file.quarantine_per_stored * self.stored + MIB // 8),
            ("fetched", self.fetched, file.fetched_per_stored * self.stored + MIB),
        )
        found = [f"{name}: {value:,} bytes, limit {limit:,.0f}" for name, value, limit in checks if value > limit]
        if not (self.refused or "").startswith(file.refused or "") or (self.refused is None) != (file.refused is None):
            found.append(f"refused: {self.refused}, expected {file.refused}")
        return found


class CountingSource:
    """One local file as every object; counts what is fetched."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.fetched = 0

    def fetch(self, _: ObjectVersion, start: int, end: int) -> bytes:
        """The bytes [start, end)."""
        self.fetched += end - start
        with self._path.open("rb") as stream:
            stream.seek(start)
            return stream.read(end - start)


def cost_of(file: HostileFile, count: int) -> Cost:
    """Convert the file in a new process.

    Raises
    ------
    RuntimeError
        The process failed; the message has the end of its output.
    """
    with tempfile.TemporaryDirectory(prefix="hybrid-router-hostile-") as folder:
        command = [sys.executable, "-m", __name__, str(CORPUS.index(file)), str(count), folder]
        # One heap, as in the jobs (infra/jobs.py).
        environment = {**os.environ, "MALLOC_ARENA_MAX": "1"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{file.name}: exit code {done.returncode}: {done.stderr[-2000:]}")
        return Cost(**json.loads(done.stdout))


def _convert(file: HostileFile, count: int, folder: Path) -> Cost:
    path = folder / "input"
    with path.open("wb") as stream:
        file.write(stream, count)
    size = path.stat().st_size
    version = ObjectVersion("input", file.key, "e", size, "2026-11-01T00:00:00Z", "v")
    splits = tuple(split_file(version, -(-size // file.splits), compressed=file.compressed))
    source: Any = CountingSource(path)
    reset_peak_bytes()
    started = time.monotonic()
    inflated, refused = 0, None
    outputs = folder / "outputs"
    outputs.mkdir()
    if file.by == "sample":
        output_ratio(source, splits, ConvertSettings())
        inflated = size
    else:
        known = tuple(f"known{number}" for number in range(file.known_columns))
        partition = Partition("orders", "2026-11-01", 0)
        task = Task("m", 1, partition, 0, splits, known, "lake", "quarantine", "eu-central-1", ConvertSettings())
        with Uploads(LocalSink(outputs).as_client()) as uploads:
            result = run_task(task, source, uploads, folder)
        inflated = sum(split.bytes for split in result.splits)
        refused = result.failures[0].reason if result.failures else None
    seconds = time.monotonic() - started
    parquet, quarantine = (
        sum(item.stat().st_size for item in outputs.glob(pattern)) for pattern in ("*.parquet", "*.jsonl")
    )
    return Cost(size, inflated, peak_bytes(), parquet, quarantine, source.fetched, round(seconds, 1), refused)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    print(json.dumps(asdict(_convert(CORPUS[int(sys.argv[1])], int(sys.argv[2]), Path(sys.argv[3])))))
