"""Spark with Iceberg's runtime, in its own process, because it changes the SQL parser."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from local import isolation, spark_jars
from local.class_archive import LOCAL_SPARK

HASHES = (
    "3123c3798af642dd537230923548e013ef41cc28b6626e5225808cf5670a0f82  org/apache/iceberg/"
    "iceberg-spark-runtime-4.1_2.13/1.12.0/iceberg-spark-runtime-4.1_2.13-1.12.0.jar\n"
)
"""Hashes of 48 MB of jars, which only the demo and tests need."""
SparkSql = Callable[[str], list[dict[str, Any]]]
"""Runs a statement on the catalog ``local``; returns the rows, with dates as text. Raises ``RuntimeError`` with Spark's
message."""


@contextmanager
def spark_with_iceberg(
    folder: Path, endpoint: str | None = None, key: isolation.AccessKey | None = None
) -> Iterator[SparkSql]:
    """Spark on one core, while the block runs; ``folder`` is the warehouse, whose folders are the catalog's tables.

    With ``endpoint`` (URL) and ``key`` of a local cloud it reads its S3: ``system.register_table`` takes a table there.
    """
    jars = spark_jars.resolve(HASHES)
    options = {
        **LOCAL_SPARK,
        "spark.driver.memory": "1500m",
        "spark.sql.catalog.local": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.local.cache-enabled": "false",
        "spark.sql.catalog.local.type": "hadoop",
        "spark.sql.catalog.local.warehouse": str(folder),
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
    }
    if endpoint is not None and key is not None:
        jars += spark_jars.resolve()
        options |= {
            "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
            "spark.hadoop.fs.s3a.endpoint": endpoint,
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
            "spark.hadoop.fs.s3a.access.key": key.id,
            "spark.hadoop.fs.s3a.secret.key": key.secret,
            "spark.hadoop.fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
        }
    options["spark.jars"] = ",".join(map(str, jars))
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        started = process.submit(_start, folder, options)

        def run(statement: str) -> list[dict[str, Any]]:
            started.result()
            return process.submit(_rows, statement).result()

        yield run


def _start(folder: Path, options: Mapping[str, str]) -> None:
    """Start the session of this process, without the variables of its environment, and write its output to a file."""
    from pyspark.sql import SparkSession  # noqa: PLC0415

    nowhere = isolation.isolated_environment("http://127.0.0.1:9", isolation.AccessKey.random())
    os.environ.clear()
    os.environ.update({**nowhere, "SPARK_LOCAL_IP": "127.0.0.1"})
    os.chdir(folder)
    with Path("spark.log").open("w") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    SparkSession.builder.master("local[1]").config(map={**options}).getOrCreate()


def _rows(statement: str) -> list[dict[str, Any]]:
    from pyspark.sql import SparkSession  # noqa: PLC0415

    try:
        found = [row.asDict() for row in SparkSession.active().sql(statement).collect()]
    except Exception as error:
        raise RuntimeError(str(error)) from None
    rows: list[dict[str, Any]] = json.loads(json.dumps(found, default=str))
    return rows
