"""Converts one hostile file in its own process, under a memory limit, and reads it as ``verify`` does in another.

python -m tests.hostile.conversion convert NUMBER COUNT
python -m tests.hostile.conversion verify NUMBER COUNT
"""

import io
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from lake.manifest import ObjectVersion, Partition
from lake.settings import ConvertSettings
from offline.output_folder import stage_file
from sizing.peak_memory import peak_bytes, reset_peak_bytes
from tests.hostile.corpus import CORPUS, MIB, HostileFile
from tests.unit.verify.test_objects import count_lines
from transform.plan_attempt import output_ratio, split_files
from transform.run_task import run_task
from transform.task_model import GRACE_SECONDS, Task

ADDRESS_SPACE = 8 << 30
"""In bytes: a file that needs more ends its process, not the machine."""
DEADLINE = "of processor time, slower than convert.min_bytes_per_second"
MAX_SECONDS = GRACE_SECONDS + 60
"""Processor time: a slow file is refused after the grace period; the current piece is read to its end."""


MAX_PEAK = 600 * MIB
"""Resident memory of ``verify``: 24 times a line of 16 MiB, and the process itself."""


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
    """Processor time."""
    refused: str | None
    lines: list[Any]
    """For each split: the number of lines, rows and blank lines, and of rejected lines by reason."""

    def problems(self, file: HostileFile) -> list[str]:
        """Each exceeded limit of the file."""
        checks = (
            ("peak memory", self.peak, file.peak_bytes),
            ("Parquet", self.parquet, file.parquet_per_inflated * self.inflated),
            ("quarantine", self.quarantine, file.quarantine_per_stored * self.stored + MIB // 8),
            ("fetched", self.fetched, file.fetched_per_stored * self.stored + MIB),
        )
        found = [f"{name}: {value:,} bytes, limit {limit:,.0f}" for name, value, limit in checks if value > limit]
        if self.seconds > MAX_SECONDS:
            found.append(f"processor time: {self.seconds} seconds, limit {MAX_SECONDS}")
        expected = DEADLINE if file.slow and self.refused is not None else file.refused
        if (expected or "") not in (self.refused or "") or (self.refused is None) != (expected is None):
            found.append(f"refused: {self.refused}, expected {expected}")
        return found


class CountingSource:
    """One local file as every object; counts the fetched bytes."""

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
    """Convert the file in a new process; raises what ``_new_process`` does."""
    return Cost(**_new_process("convert", file, count))


def problems_of_verify(file: HostileFile, count: int, cost: Cost) -> list[str]:
    """Problems of the verification of a file with this cost of conversion; raises the same errors as ``cost_of``."""
    found = _new_process("verify", file, count)
    problems = [] if found["peak"] <= MAX_PEAK else [f"verify: {found['peak']:,} bytes of memory, limit {MAX_PEAK:,}"]
    # A rejected file is not verified: its manifest has none of its rows.
    if cost.refused is None and [found["lines"]] != cost.lines:
        problems.append(f"verify counts {found['lines']}, the conversion {cost.lines}")
    return problems


def _new_process(work: str, file: HostileFile, count: int) -> dict[str, Any]:
    """The output of the work on the file. Raises ``RuntimeError``, with the end of the output, if the process fails."""
    command = [sys.executable, "-m", __name__, work, str(CORPUS.index(file)), str(count)]
    # One heap, as in the jobs (infra/jobs.py).
    environment = {**os.environ, "MALLOC_ARENA_MAX": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{file.name}, {work}: exit code {done.returncode}: {done.stderr[-2000:]}")
    return dict(json.loads(done.stdout))


def _written(file: HostileFile, count: int, folder: Path) -> tuple[ObjectVersion, CountingSource]:
    path = folder / "input"
    with path.open("wb") as stream:
        file.write(stream, count)
    version = ObjectVersion("input", file.key, "e", path.stat().st_size, "2026-11-01T00:00:00Z", "v")
    return version, CountingSource(path)


def _convert(file: HostileFile, count: int, folder: Path) -> Cost:
    version, source = _written(file, count, folder)
    splits = tuple(split_files([version], [version] if file.compressed else (), -(-version.size // file.splits)))
    reset_peak_bytes()
    started = time.process_time()
    inflated, refused, lines = 0, None, []
    outputs = folder / "outputs"
    if file.by == "sample":
        output_ratio(source.fetch, splits, ConvertSettings())
        inflated = version.size
    else:
        known = tuple(f"known{number}" for number in range(file.known_columns))
        partition = Partition("orders", "2026-11-01", 0)
        task = Task("m", 1, partition, 0, splits, known, "lake", "quarantine", "eu-central-1", ConvertSettings())
        result = run_task(task, source.fetch, partial(stage_file, outputs), folder)
        inflated = sum(split.bytes for split in result.splits)
        refused = result.failures[0].reason if result.failures else None
        lines = [[split.lines, split.rows, split.blank_lines, split.rejects] for split in result.splits]
    seconds = time.process_time() - started
    parquet, quarantine = (
        sum(item.stat().st_size for item in outputs.rglob(pattern)) for pattern in ("*.parquet", "*.jsonl")
    )
    costs = (peak_bytes(), parquet, quarantine, source.fetched, round(seconds, 1))
    return Cost(version.size, inflated, *costs, refused, lines)


def _read(file: HostileFile, count: int, folder: Path) -> dict[str, Any]:
    """Counts of the file, and the peak memory, by the reader of ``verify``."""
    version, source = _written(file, count, folder)

    def get_object(*, Range: str, **_: str) -> dict[str, Any]:  # noqa: N803
        start, end = map(int, Range.removeprefix("bytes=").split("-"))
        return {"Body": io.BytesIO(source.fetch(version, start, end + 1))}

    s3: Any = SimpleNamespace(get_object=get_object)
    reset_peak_bytes()
    lines = count_lines(s3, version.size, max_line_bytes=ConvertSettings().max_line_bytes)
    return {"peak": peak_bytes(), "lines": lines}


def main(work: str, number: str, count: str) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    with tempfile.TemporaryDirectory(prefix="hybrid-router-hostile-") as folder:
        given = (CORPUS[int(number)], int(count), Path(folder))
        print(json.dumps(asdict(_convert(*given)) if work == "convert" else _read(*given)))


if __name__ == "__main__":
    main(*sys.argv[1:])
