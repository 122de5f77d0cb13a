"""The competitors of the benchmark: hybrid-router's conversion, and Spark, DuckDB and Polars without it.

All except hybrid-router know every key, and DuckDB and Polars may change the order of rows, which is faster.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.input_files import InputFiles
from lake.manifest import Partition
from lake.settings import ConvertSettings, parse_settings
from local.class_archive import LOCAL_SPARK
from offline.conversion import Conversion
from offline.input_files import LocalFile, Search, groups
from offline.output_folder import OutputFolder
from sizing.calibration import measure_task
from sizing.peak_memory import peak_bytes
from transform.plan_attempt import pack_tasks, split_files
from transform.run_task import tidy_worker
from transform.spark_job import WORKER_ENVIRONMENT
from transform.task_model import Task, TaskResult

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TASKS = 2
"""One task for each of two cores: in production a task reads 600 MB of such data, more than half of a large shape."""
OUTPUT_FILES = 4
"""Two files for each core, so that no core waits long for the last file."""
ZSTD = {"compression": "zstd", "parquet.compression.codec.zstd.level": "1"}
Convert = Callable[[InputFiles, Path, int], int | None]
"""Converts files into Parquet under a folder with a number of cores.

Returns its peak resident memory in bytes, of a task's Python worker if there are tasks; None if not measured.
"""


def spark_session(cores: int, scratch: Path) -> SparkSession:
    """The session of this process. Its garbage collector and heap suit Spark: hybrid-router hardly uses the JVM."""
    from pyspark.sql import SparkSession  # noqa: PLC0415

    if (session := SparkSession.getActiveSession()) is not None:
        return session
    options: dict[str, Any] = {
        **LOCAL_SPARK,
        "spark.driver.memory": "2500m",
        "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.caseSensitive": "true",
    }
    session = SparkSession.builder.master(f"local[{cores}]").appName("bench").config(map=options).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def hybrid_router(files: InputFiles, output: Path, cores: int) -> int:
    """The product's splits, tasks, reader and writer inside Spark, over local files.

    Raises ``ValueError`` if a task failed or rejected a line: every generated line is valid.
    """
    context, settings = spark_session(cores, output.parent).sparkContext, ConvertSettings()
    found = [LocalFile.found(os.path.realpath(path)) for path in files.paths]
    splits = split_files(found, found if files.shape == "gzip" else (), settings.split_bytes)
    partition = Partition("bench", "2026-01-01", 0)
    tasks = [
        Task("bench", 1, partition, number, of_task, (), "lake", "quarantine", "eu-central-1", settings)
        for number, of_task in enumerate(pack_tasks(splits, settings.target_file_bytes, None, TASKS))
    ]
    context.environment.update(WORKER_ENVIRONMENT)
    answers = context.parallelize(tasks, len(tasks)).mapPartitions(partial(_measure_tasks, output)).collect()
    if any(result.failures or any(split.rejects for split in result.splits) for result, _ in answers):
        raise ValueError("a task failed or rejected lines: every generated line is valid")
    return max(peak for _, peak in answers)


def _measure_tasks(output: Path, tasks: Iterable[Task]) -> Iterator[tuple[TaskResult, int]]:
    yield from (measure_task(output, task) for task in tasks)
    tidy_worker()


def spark_naive(files: InputFiles, output: Path, cores: int) -> None:
    """Infer the schema, cast every column to string, count, coalesce, write: three passes over the input."""
    frame = spark_session(cores, output.parent).read.json(files.location)
    frame = frame.select([frame[f"`{name}`"].cast("string").alias(name) for name in frame.columns])
    frame.count()
    frame.coalesce(OUTPUT_FILES).write.options(**ZSTD).parquet(str(output / "out"))


def spark_one_pass(files: InputFiles, output: Path, cores: int, *, dictionary: bool = False) -> None:
    """A given schema of strings, without Spark's dictionary: the fastest job with Spark's own functions."""
    from pyspark.sql.types import StringType, StructField, StructType  # noqa: PLC0415

    schema = StructType([StructField(key, StringType()) for key in files.keys])
    frame = spark_session(cores, output.parent).read.schema(schema).json(files.location)
    frame.write.options(**ZSTD, **{"parquet.enable.dictionary": str(dictionary).lower()}).parquet(str(output / "out"))


def convert(files: InputFiles, output: Path, cores: int) -> None:
    """Do what ``hybrid-router convert`` does, from the search for the files to the last publish."""
    settings = parse_settings({"stage": "bench"})
    with OutputFolder(output) as folder:
        found = Search([files.location], settings, "bench").find(folder, _refuse, lambda _: None)
        for outcome in Conversion(folder, settings.convert, cores, lambda _: None).run(groups(found)):
            if outcome.refused or any(source.failed or any(source.rejects.values()) for source in outcome.sources):
                raise ValueError("a file or a line was rejected: every generated line is valid")


def _refuse(path: str, reason: str) -> None:
    raise ValueError(f"{path}: {reason}")


def duckdb(files: InputFiles, output: Path, cores: int) -> int:
    """All columns VARCHAR, one output file for each thread."""
    from duckdb import connect  # noqa: PLC0415

    columns = ", ".join(f"'{key}': 'VARCHAR'" for key in files.keys)
    with connect() as connection:
        connection.execute(f"SET threads = {cores}")
        connection.execute("SET preserve_insertion_order = false")
        connection.execute(
            f"COPY (SELECT * FROM read_json('{_glob(files)}', format = 'newline_delimited', columns = {{{columns}}})) "  # noqa: S608
            f"TO '{output / 'out'}' (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1, PER_THREAD_OUTPUT true)"
        )
    return peak_bytes()


def polars(files: InputFiles, output: Path, cores: int) -> int:
    """The streaming engine, all columns String."""
    import polars as pl  # noqa: PLC0415

    if pl.thread_pool_size() != cores:
        raise ValueError(f"POLARS_MAX_THREADS is not {cores}")
    frame = pl.scan_ndjson(_glob(files), schema=dict.fromkeys(files.keys, pl.String))
    frame.sink_parquet(output / "out.parquet", compression="zstd", compression_level=1, maintain_order=False)
    return peak_bytes()


def _glob(files: InputFiles) -> str:
    return f"{files.location}/*" if Path(files.location).is_dir() else files.location


@dataclass(frozen=True, slots=True)
class Competitor:
    """One tool with its configuration."""

    name: str
    convert: Convert
    cores: int
    description: str
    in_spark: bool = False
    """Whether it has one process for the whole run, as a job has; otherwise each measurement has a new process."""


COMPETITORS = (
    Competitor("hybrid_router", hybrid_router, 2, "hybrid-router, Spark local[2]", in_spark=True),
    Competitor("hybrid_router_1_core", hybrid_router, 1, "hybrid-router, Spark local[1]", in_spark=True),
    Competitor(
        "spark_one_pass", spark_one_pass, 2, "Spark, one pass, all-string schema given, dictionary off", in_spark=True
    ),
    Competitor("spark_naive", spark_naive, 2, "Spark, naive job: infer, cast, count, coalesce, write", in_spark=True),
    Competitor("duckdb", duckdb, 2, "DuckDB, 2 threads, columns given"),
    Competitor("convert", convert, 2, "hybrid-router convert, 2 threads"),
    Competitor("polars", polars, 2, "Polars, 2 threads, columns given"),
)
PRODUCT = "hybrid_router"
MAIN_SHAPES = ("flat", "nested")
"""Shapes on which hybrid-router is compared with every competitor."""
SLOWEST = "spark_naive"
"""It takes as long as all others together: only the first round measures it, except on the main shapes."""
