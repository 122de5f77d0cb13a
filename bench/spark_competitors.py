"""Spark without hybrid-router: the job that most people write, and the fastest one with Spark's own functions."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from bench.input_files import InputFiles

OUTPUT_FILES = 4
"""Two for each core, so that no core waits long for the last one."""
ZSTD = {"compression": "zstd", "parquet.compression.codec.zstd.level": "1"}


def open_session(cores: int, scratch: Path) -> SparkSession:
    """A local session. The garbage collector and the heap suit these competitors: hybrid-router hardly uses the JVM."""
    options = {
        "spark.driver.memory": "2500m",
        "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.caseSensitive": "true",
    }
    builder = SparkSession.builder.master(f"local[{cores}]").appName("bench")
    for key, value in options.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def naive(spark: SparkSession, files: InputFiles, output: Path) -> None:
    """Infer the schema, cast every column to string, count, coalesce, write: three passes over the input."""
    frame = spark.read.json(files.location)
    frame = frame.select([frame[f"`{name}`"].cast("string").alias(name) for name in frame.columns])
    frame.count()
    frame.coalesce(OUTPUT_FILES).write.options(**ZSTD).parquet(str(output / "out"))


def one_pass(spark: SparkSession, files: InputFiles, output: Path) -> None:
    """A given schema of strings and no dictionary in the writer: the fastest job with Spark's own functions."""
    all_strings(spark, files, output, dictionary=False)


def all_strings(spark: SparkSession, files: InputFiles, output: Path, *, dictionary: bool) -> None:
    """A given schema of strings, with Spark's default of a dictionary or without."""
    schema = StructType([StructField(key, StringType()) for key in files.keys])
    frame = spark.read.schema(schema).json(files.location)
    frame.write.options(**ZSTD, **{"parquet.enable.dictionary": str(dictionary).lower()}).parquet(str(output / "out"))
