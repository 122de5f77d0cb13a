"""An archive of Spark's classes (class-data sharing), with which a JVM starts in half the time.

It is made once, at set-up. A JVM that cannot use it (another Java, another Spark) starts without it.
https://docs.oracle.com/en/java/javase/17/vm/class-data-sharing.html
"""

import fcntl
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pyspark

from local.errors import LocalCloudError
from local.isolation import kept_environment

CACHE = Path(__file__).resolve().parents[1] / ".cache" / "spark-classes"
JVM_OPTIONS = "-XX:+UseParallelGC -XX:TieredStopAtLevel=1"
"""In a short run the second compiler costs more than it saves: a demo took 137 s of processor with it, 104 without."""
LOCAL_SPARK = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""Properties of every Spark on this machine: it listens on loopback only."""
_MAX_SECONDS = 900
_TRAINING = """
from pyspark import SparkContext
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
spark.sparkContext.parallelize(range(2), 2).mapPartitions(lambda numbers: [sum(numbers)]).collect()
rows = spark.readStream.format("rate").load()
query = rows.writeStream.foreachBatch(lambda batch, _: batch.count()).trigger(availableNow=True).start()
query.awaitTermination()
spark.stop()
java = SparkContext._gateway.proc
java.stdin.close()
java.wait()
"""
"""As in the jobs: a Spark job with Python workers, and a micro-batch. The archive is written when the JVM ends."""


def archive_file() -> Path:
    """Return the path of the archive of the installed Java and Spark, made or not."""
    version = subprocess.run([java_command(), "-version"], capture_output=True, check=True).stderr
    spark = f"{pyspark.__version__} {Path(pyspark.__file__).parent} {JVM_OPTIONS} {_TRAINING}"
    return CACHE / f"{hashlib.sha256(version + spark.encode()).hexdigest()[:16]}.jsa"


def make_archive() -> Path:
    """Write the archive (about 100 MB, some seconds) if it is missing; several processes may call it at once.

    Raises ``subprocess.CalledProcessError`` or ``subprocess.TimeoutExpired`` if Spark does not run on this machine.
    """
    file = archive_file()
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.is_file():
            with tempfile.TemporaryDirectory(dir=CACHE) as folder:
                _train(Path(folder), file, new := Path(folder) / "classes.jsa")
                new.rename(file)
    return file


def java_command() -> str:
    """Return the Java that Spark uses: from JAVA_HOME, else from PATH. Raises ``LocalCloudError`` if there is none."""
    home = os.environ.get("JAVA_HOME")
    folders = [*([f"{home}/bin"] if home else []), os.environ.get("PATH", "")]
    java = shutil.which("java", path=os.pathsep.join(folders))
    if java is None:
        raise LocalCloudError("Java is missing: install a JRE of version 17 or newer and try again.")
    return java


def java_options(archive: Path) -> str:
    """Return options of a JVM that uses the archive, quoted for Spark; it is silent if it cannot use it."""
    return f'{JVM_OPTIONS} -XX:SharedArchiveFile="{archive}" -Xshare:auto -Xlog:disable -Xlog:all=off'


def spark_environment(properties: Mapping[str, str], file: Path, archive: Path) -> dict[str, str]:
    """Return the environment that gives Spark these properties, which are written to ``file``.

    Java uses an archive only with the class path of its creation, and refuses folders with files on it. Spark's
    configuration folder is on the class path, so it is always the same empty folder.
    """
    empty = archive.parent / "empty"
    empty.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{key} {value}\n" for key, value in properties.items()))
    arguments = ("--properties-file", str(file), "pyspark-shell")
    return {"SPARK_CONF_DIR": str(empty), "PYSPARK_SUBMIT_ARGS": shlex.join(arguments)}


def _train(folder: Path, archive: Path, new: Path) -> None:
    properties = {
        **LOCAL_SPARK,
        "spark.master": "local[2]",
        "spark.local.dir": str(folder),
        "spark.sql.streaming.checkpointLocation": str(folder / "checkpoint"),
        "spark.driver.extraJavaOptions": f'{JVM_OPTIONS} -XX:ArchiveClassesAtExit="{new}" -Xlog:disable -Xlog:all=off',
    }
    spark = spark_environment(properties, folder / "spark.conf", archive)
    environment = {**kept_environment(), **spark, "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, "-c", _TRAINING]
    subprocess.run(command, env=environment, cwd=folder, timeout=_MAX_SECONDS, check=True, capture_output=True)


if __name__ == "__main__":
    try:
        make_archive()
    except subprocess.CalledProcessError as error:
        sys.exit(error.stderr.decode().strip())
    except subprocess.TimeoutExpired:
        sys.exit(f"Spark has not ended after {_MAX_SECONDS} seconds")
