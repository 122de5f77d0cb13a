"""The archive of Spark's classes: made once, used by a JVM of the same class path, silently left by any other."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from local.class_archive import java_command, java_options, make_archive, spark_environment

SCRIPT = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
print("conf", spark.conf.get("spark.own"))
pid = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
print("mapped", ".jsa" in open(f"/proc/{pid}/maps").read())
"""


def spark_run(folder: Path, archive: Path) -> str:
    properties = {
        "spark.own": "a b",
        "spark.master": "local[1]",
        "spark.ui.enabled": "false",
        "spark.local.dir": str(folder),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": java_options(archive),
    }
    environment = spark_environment(properties, folder / "spark.conf", archive)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=os.environ | environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_session_uses_the_archive_that_set_up_made_and_has_its_properties(tmp_path: Path) -> None:
    # Given the archive of this environment, and a folder whose name has a space
    archive, folder = make_archive(), tmp_path / "a run"
    folder.mkdir()
    # When, Then
    assert re.sub(r"\s+", " ", spark_run(folder, archive)).strip() == "conf a b mapped True"


def test_an_archive_that_is_missing_or_damaged_is_no_error_and_says_nothing(tmp_path: Path) -> None:
    damaged = tmp_path / "a damaged one.jsa"
    damaged.write_bytes(b"\0" * 5000)
    for archive in (tmp_path / "a missing one.jsa", damaged):
        command = [java_command(), *shlex.split(java_options(archive)), "-version"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, "")
        assert "rror" not in done.stderr
        assert "arning" not in done.stderr
