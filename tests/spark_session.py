"""A Spark session on two cores whose S3 is the local cloud of this process's environment."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from local.cloud import LocalCloud


def new_session(cloud: LocalCloud, folder: Path) -> SparkSession:
    """A new session. Its workers inherit the environment of this process; ``folder`` is for its files."""
    from pyspark.sql import SparkSession

    from local import spark_jars
    from local.class_archive import archive_file, java_options

    # A second attempt per task, as on a cluster; a plain local[2] would allow one.
    builder = SparkSession.builder.master("local[2,2]").appName("tests")
    options = {
        "spark.driver.memory": "1500m",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": java_options(archive_file()),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.jars": ",".join(str(jar) for jar in spark_jars.resolve()),
        "spark.hadoop.fs.s3a.endpoint": cloud.endpoint,
        "spark.hadoop.fs.s3a.endpoint.region": os.environ["AWS_REGION"],
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        "spark.hadoop.fs.s3a.access.key": os.environ["AWS_ACCESS_KEY_ID"],
        "spark.hadoop.fs.s3a.secret.key": os.environ["AWS_SECRET_ACCESS_KEY"],
        "spark.hadoop.fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
    }
    for key, value in options.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
