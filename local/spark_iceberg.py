"""Spark with Iceberg's runtime, in its own process, because it changes the SQL parser."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local import isolation, spark_jars
from local.job_launch import s3_properties

CHECKOUT = Path(__file__).parents[1]
HASHES = (
    "3123c3798af642dd537230923548e013ef41cc28b6626e5225808cf5670a0f82  org/apache/iceberg/"
    "iceberg-spark-runtime-4.1_2.13/1.12.0/iceberg-spark-runtime-4.1_2.13-1.12.0.jar\n"
)
"""Hashes of 48 MB of jars, which only the demo and tests need."""


@dataclass(frozen=True, slots=True)
class SparkSql:
    """Runs statements on the catalog ``local``."""

    process: subprocess.Popen[str]

    def __call__(self, statement: str) -> list[dict[str, Any]]:
        """Return the rows, with dates as text; raises ``RuntimeError`` with Spark's message."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(statement) + "\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith("answer "):
                answer: dict[str, Any] = json.loads(line.removeprefix("answer "))
                if "error" in answer:
                    raise RuntimeError(answer["error"])
                rows: list[dict[str, Any]] = answer["rows"]
                return rows
        raise RuntimeError("Spark has ended")


@contextmanager
def spark_with_iceberg(
    folder: Path, endpoint: str | None = None, key: isolation.AccessKey | None = None
) -> Iterator[SparkSql]:
    """Spark on one core, while the block runs; ``folder`` is the warehouse, whose folders are the catalog's tables.

    With ``endpoint`` (URL) and ``key`` of a local cloud it reads its S3: ``system.register_table`` takes a table there.
    """
    jars = spark_jars.resolve(HASHES)
    options = {"spark.sql.catalog.local.warehouse": str(folder)}
    if endpoint is not None and key is not None:
        jars += spark_jars.resolve()
        options |= s3_properties(endpoint, key)
    options["spark.jars"] = ",".join(map(str, jars))
    nowhere = isolation.isolated_environment("http://127.0.0.1:9", isolation.AccessKey.random())
    environment = {**nowhere, "PYTHONPATH": str(CHECKOUT), "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [sys.executable, __file__, json.dumps(options)]
    with (folder / "spark.log").open("w") as log:
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": log}
        # Leaving the block closes its input, and the process ends.
        with subprocess.Popen(command, text=True, env=environment, cwd=folder, **pipes) as process:
            yield SparkSql(process)


def main(own_options: str) -> None:
    """Answer the statements of standard input."""
    from pyspark.sql import SparkSession  # noqa: PLC0415

    options = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1500m",
        "spark.sql.catalog.local": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.local.cache-enabled": "false",
        "spark.sql.catalog.local.type": "hadoop",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **json.loads(own_options),
    }
    builder = SparkSession.builder.master("local[1]")
    for name, value in options.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    for line in sys.stdin:
        try:
            answer: dict[str, Any] = {"rows": [row.asDict() for row in session.sql(json.loads(line)).collect()]}
        except Exception as error:
            answer = {"error": str(error)}
        print("answer", json.dumps(answer, default=str), flush=True)
    session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
