"""Conversions on this machine, each of twice as much input, until one takes long enough; and the resulting settings."""

import itertools
import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from lake.engines.description import MIB
from lake.errors import InvalidInputError
from lake.manifest import Lane, Manifest, Partition, has_compressed_name, new_manifest_id
from lake.settings import ConvertSettings, PriceSettings
from lake.texts import format_count
from offline.conversion import plan_tasks
from offline.input_files import InputFiles, LocalFile
from offline.output_folder import stage_file
from sizing.peak_memory import peak_bytes, reset_peak_bytes
from transform.run_task import run_task
from transform.spark_job import WORKER_ENVIRONMENT
from transform.task_model import Task, TaskResult

MEGABYTE = 1_000_000
FIRST_BYTES = 16 * MIB
"""Input of the first conversion, as stored; at least one file."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One conversion, of files of one kind."""

    compressed: bool
    """Whether the names are names of compressed files."""
    files: int
    stored_bytes: int
    inflated_bytes: int
    """NDJSON, decompressed."""
    seconds: float
    """Seconds from its first task to the end of its last one."""
    core_seconds: float
    """Sum over all tasks, each on one core."""
    output_bytes: int
    peak_bytes: int
    """Highest resident memory of a task's process."""
    rows: int
    columns: int
    rejects: dict[str, int]

    @property
    def speed(self) -> float:
        """Bytes, as stored, per second and core."""
        return self.stored_bytes / self.core_seconds

    @property
    def output_ratio(self) -> float:
        return self.output_bytes / max(self.inflated_bytes, 1)


def measure(
    files: Sequence[Path], goal_seconds: float, settings: ConvertSettings, cores: int, log: Callable[[str], object]
) -> list[Measurement]:
    """Convert, doubling the amount, until a conversion takes half of the goal; the last one takes about the goal.

    Plain and compressed files are converted separately, because their time for a stored byte differs. Files are
    repeated if there are too few. A short first conversion is not measured: it starts processes and loads their
    libraries. Raises ``InvalidInputError`` if a file cannot be converted at all, or a process was killed.
    """
    found: list[Measurement] = []
    os.environ.update(WORKER_ENVIRONMENT)
    with (
        tempfile.TemporaryDirectory(prefix="calibrate-") as folder,
        ProcessPoolExecutor(cores, get_context("spawn")) as pool,
    ):
        try:
            _convert(pool, files[:1], settings, cores, Path(folder))
            for packed in (False, True):
                kind = [path for path in files if has_compressed_name(path.name) is packed]
                size, seconds = FIRST_BYTES, 0.0
                while kind and seconds < goal_seconds / 2:
                    found.append(_convert(pool, files_of(kind, size), settings, cores, Path(folder)))
                    stored, seconds = found[-1].stored_bytes, found[-1].seconds
                    log(f"{stored / MEGABYTE:,.0f} MB: {seconds:.1f} s")
                    size = 2 * max(size, stored)
        except BrokenProcessPool as error:
            raise InvalidInputError("a process was killed, perhaps for its memory: pass fewer --cores") from error
    return found


def files_of(files: Sequence[Path], size: int) -> list[Path]:
    """Yield files in turn, until they have at least this size together."""
    taken, total = [], 0
    for path in itertools.cycle(files):
        taken.append(path)
        total += path.stat().st_size
        if total >= size:
            break
    return taken


def _convert(pool: Executor, files: Sequence[Path], settings: ConvertSettings, cores: int, folder: Path) -> Measurement:
    tasks = tasks_of(files, settings, cores)
    output = folder / "output"
    output.mkdir()
    started = time.monotonic()
    answers = list(pool.map(partial(measure_task, output), tasks))
    seconds = time.monotonic() - started
    shutil.rmtree(output)
    return summarise(files, seconds, answers)


def tasks_of(files: Sequence[Path], settings: ConvertSettings, cores: int) -> tuple[Task, ...]:
    found = tuple(LocalFile.found(os.path.realpath(path)) for path in files)
    manifest = Manifest(
        new_manifest_id(datetime.now(UTC)), Lane.BATCH, Partition("calibrate", "2026-01-01", 0), "", found
    )
    return plan_tasks(manifest, found, settings, cores)


def measure_task(output: Path, task: Task) -> tuple[TaskResult, int]:
    """Return the result of a task, and this process's peak memory during the task, in bytes."""
    reset_peak_bytes()
    # As many requests ahead as from S3, because they take memory.
    with tempfile.TemporaryDirectory(dir=output) as folder:
        result = run_task(task, InputFiles(task.region).fetch, partial(stage_file, output), Path(folder))
    return result, peak_bytes()


def summarise(files: Sequence[Path], seconds: float, answers: Sequence[tuple[TaskResult, int]]) -> Measurement:
    """Return the figures of a conversion. Raises ``InvalidInputError`` if a file cannot be converted at all."""
    results = [result for result, _ in answers]
    for failure in (failure for result in results for failure in result.failures):
        raise InvalidInputError(f"{failure.file.key} cannot be converted: {failure.reason}")
    splits = [split for result in results for split in result.splits]
    rejects: Counter[str] = Counter()
    for split in splits:
        rejects.update(split.rejects)
    return Measurement(
        compressed=has_compressed_name(files[0].name),
        files=len(files),
        stored_bytes=sum(split.split.size for split in splits),
        inflated_bytes=sum(split.bytes for split in splits),
        seconds=seconds,
        core_seconds=max(sum(result.milliseconds for result in results), 1) / 1000,
        output_bytes=sum(item.size for result in results for item in result.objects),
        peak_bytes=max(peak for _, peak in answers),
        rows=sum(split.rows for split in splits),
        columns=len({name for result in results for name in result.new_columns}),
        rejects=dict(rejects),
    )


@dataclass(frozen=True, slots=True)
class Advice:
    """A setting of the table ``price``."""

    key: str
    value: float
    reason: str


def advise(found: Sequence[Measurement]) -> Iterator[Advice]:
    """Return settings for such files, by the last measurement of each kind, which has the most input."""
    for kind in measured_kinds(found):
        last, network = kind[-1], PriceSettings().mb_per_second_per_core
        speed = last.speed / MEGABYTE
        yield Advice(
            "compressed_mb_per_second_per_core" if last.compressed else "mb_per_second_per_core",
            round(min(speed, network), 1),
            f"the processor converts {speed:.0f} MB/s of such input per core, as stored; a vCPU is assumed to read "
            f"{network:g} MB/s from S3 and to be as fast as a core here",
        )


def measured_kinds(found: Sequence[Measurement]) -> list[list[Measurement]]:
    """Yield the measurements of plain files, then of compressed files; a kind without any is left out."""
    kinds = ([item for item in found if item.compressed is compressed] for compressed in (False, True))
    return [kind for kind in kinds if kind]


def toml_lines(advice: Sequence[Advice]) -> Iterator[str]:
    """Yield lines of a settings file with this advice, each value with its reason."""
    yield "[price]"
    for item in advice:
        yield f"# {item.reason}"
        yield f"{item.key} = {item.value}"


def report_lines(found: Sequence[Measurement]) -> Iterator[str]:
    """Yield lines for people: by kind of files a line for each measurement, and the properties of the data."""
    for kind in measured_kinds(found):
        yield "compressed files" if kind[0].compressed else "plain files"
        for item in kind:
            yield (
                f"{item.stored_bytes / MEGABYTE:>8,.0f} MB  {item.seconds:>7.1f} s  {item.speed / MEGABYTE:>6.0f} MB/s "
                f"per core  output {item.output_ratio:>5.3f} of the NDJSON  memory of a task "
                f"{item.peak_bytes / MEGABYTE:>5.0f} MB"
            )
        last = kind[-1]
        yield f"{last.inflated_bytes / max(last.stored_bytes, 1):.2f} bytes of NDJSON for each byte as stored"
        yield f"{format_count(last.rows, 'row')}, {format_count(last.columns, 'column')}"
        for reason, lines in sorted(last.rejects.items()):
            yield f"rejected: {format_count(lines, 'line')}, {reason}"
