"""What Spark on this machine needs: the archive of its classes, and jars. A folder stands in for Maven."""

import hashlib
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from local.class_archive import LOCAL_SPARK, java_command, java_options, make_archive, spark_environment
from local.errors import LocalCloudError
from local.spark_jars import resolve

SCRIPT = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
print("conf", spark.conf.get("spark.own"))
pid = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
print("mapped", ".jsa" in open(f"/proc/{pid}/maps").read())
"""


def spark_run(folder: Path, archive: Path) -> str:
    properties = {
        **LOCAL_SPARK,
        "spark.own": "a b",
        "spark.master": "local[1]",
        "spark.local.dir": str(folder),
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
def test_a_session_uses_the_archive_of_set_up_and_has_its_properties(tmp_path: Path) -> None:
    # Given the archive of this environment, and a folder with a space in its name
    archive, folder = make_archive(), tmp_path / "a run"
    folder.mkdir()
    # When, Then
    assert re.sub(r"\s+", " ", spark_run(folder, archive)).strip() == "conf a b mapped True"


def test_a_missing_or_damaged_archive_is_not_an_error_and_prints_nothing(tmp_path: Path) -> None:
    damaged = tmp_path / "a damaged one.jsa"
    damaged.write_bytes(b"\0" * 5000)
    for archive in (tmp_path / "a missing one.jsa", damaged):
        command = [java_command(), *shlex.split(java_options(archive)), "-version"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, "")
        assert "rror" not in done.stderr
        assert "arning" not in done.stderr


JARS = ("hadoop-aws-3.4.2.jar", "s3-2.29.52.jar")
HASHES = "".join(f"{hashlib.sha256(name.encode()).hexdigest()}  org/{name}\n" for name in JARS)


@pytest.fixture
def maven(tmp_path):
    """The folder with the jars of a repository."""
    folder = tmp_path / "maven" / "org"
    folder.mkdir(parents=True)
    for name in JARS:
        (folder / name).write_text(name)
    return folder


@pytest.fixture
def jars(maven, tmp_path):
    return partial(resolve, HASHES, cache=tmp_path / "cache", repository=maven.parent.as_uri())


def test_jars_are_downloaded_once_even_by_concurrent_callers(jars):
    downloads: list[str] = []
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: jars(log=downloads.append), range(8)))
    assert {tuple(jar.name for jar in each) for each in found} == {JARS}
    assert len(downloads) == 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda jar: jar.unlink(), r"s3-2\.29\.52\.jar could not be downloaded"),
        (lambda jar: jar.write_text("other"), r"s3-2\.29\.52\.jar does not have the SHA-256"),
    ],
)
def test_nothing_is_kept_of_a_download_that_is_incomplete_or_has_other_bytes(jars, maven, tmp_path, change, reason):
    # Given
    change(maven / JARS[1])
    # When, Then
    with pytest.raises(LocalCloudError, match=reason):
        jars()
    assert list((tmp_path / "cache").rglob("*.jar")) == []
    # When the repository has the known bytes again
    (maven / JARS[1]).write_text(JARS[1])
    assert len(jars()) == 2
