"""What else Spark can do: the job most people write, and the best one it allows without code of one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import SparkSession
from pyspark.sql.types import StringType, StructField, StructType

if TYPE_CHECKING:
    from pathlib import Path

    from bench.input_files import Data

FILES = 4
"""Output files: two for each core, so that nobody waits for the last one."""
ZSTD = {"compression": "zstd", "parquet.compression.codec.zstd.level": "1"}


def open_session(cores: int, scratch: Path) -> SparkSession:
    """A local session; the collector and the heap were chosen for the other ways, ours hardly uses the JVM."""
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


def obvious(spark: SparkSession, data: Data, output: Path) -> None:
    """Infer the schema, cast every column to string, count, coalesce, write: three passes over the input."""
    frame = spark.read.json(data.location)
    frame = frame.select([frame[f"`{name}`"].cast("string").alias(name) for name in frame.columns])
    frame.count()
    frame.coalesce(FILES).write.options(**ZSTD).parquet(str(output / "out"))


def one_pass(spark: SparkSession, data: Data, output: Path) -> None:
    """A schema of strings given beforehand and the writer's dictionary off, which is Spark's quickest."""
    schema = StructType([StructField(key, StringType()) for key in data.keys])
    frame = spark.read.schema(schema).json(data.location)
    frame.write.options(**ZSTD, **{"parquet.enable.dictionary": "false"}).parquet(str(output / "out"))
