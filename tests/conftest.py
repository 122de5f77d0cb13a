"""Fixtures that several levels of tests share: one emulator over HTTP and one Spark session for a whole test run."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from local.cloud import LocalCloud


# A shell that runs the tests in the background lets them and their children ignore Ctrl-C, which some tests send.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The same code gives the same result in every run of the tests, on a busy machine too: no example has a deadline.
# `make fuzz` searches for new examples.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("random", print_blob=True, deadline=None)
settings.load_profile("repeatable")


@pytest.fixture(scope="session", autouse=True)
def _clouds_of_this_run(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Tests neither see nor end the local clouds of the person who runs them, nor that person's profiles and Spark."""
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))
    for name in [name for name in os.environ if name.startswith(("AWS_", "HADOOP_", "PYSPARK_", "SPARK_"))]:
        del os.environ[name]
    os.environ |= {"AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}


@pytest.fixture(scope="session")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    """S3 and DynamoDB over HTTP on loopback. The environment of this process leads only to it."""
    from local.cloud import LocalCloud
    from local.limits import Limits
    from transform.clients import session

    before = dict(os.environ)
    with LocalCloud.start(tmp_path_factory.mktemp("cloud")) as cloud:
        # These tests read in the same process that wrote: `tests/e2e` has a lagging index.
        cloud.limit(Limits(index_lag_seconds=0))
        os.environ.update(cloud.environment)
        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        # A session keeps the credentials that it has found before.
        session.cache_clear()
        yield cloud
    session.cache_clear()
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(scope="session")
def spark(cloud: LocalCloud, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One session on two cores. Its workers inherit the environment, so the cloud comes first."""
    from pyspark.sql import SparkSession

    from local.class_archive import archive_file, java_options

    folder = tmp_path_factory.mktemp("spark")
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
    }
    for key, value in options.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
