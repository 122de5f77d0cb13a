"""What a Glue run's process gets: its script and modules as deployed, its arguments, its Spark configuration.

A job written for Glue finds here what it finds there: ``SparkSession.builder.getOrCreate()`` needs no setting, and only
the deployed script and ``--extra-py-files`` are importable beside the installed packages, never this checkout.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from local.isolation import ACCESS_KEY, REGION, SECRET_KEY, isolated_environment

_CHECKOUT = Path(__file__).resolve().parents[1]
# An editable install puts the checkout on sys.path of every Python here; on Glue there is no checkout.
_HIDE_CHECKOUT = "import sys\nsys.path[:] = [entry for entry in sys.path if entry != {checkout!r}]\n"
_LOGGING = """rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{yy/MM/dd HH:mm:ss} %p %c{1}: %m%n%ex
"""

Fetch = Callable[[str, str, Path], None]


@dataclass(frozen=True, slots=True)
class GlueSettings:
    """Where Glue runs live and what they need.

    ``minute_seconds`` is how long a minute of a job's timeout lasts (60; tests make it shorter).
    """

    endpoint: str
    runs: Path
    logs: Path
    jars: tuple[Path, ...]
    minute_seconds: float = 60.0


def merged_arguments(job: Mapping[str, Any], request: Mapping[str, Any]) -> dict[str, str]:
    """The run's arguments as Glue merges them: the job's defaults, then the run's, then what cannot be overridden."""
    layers = (job.get("DefaultArguments"), request.get("Arguments"), job.get("NonOverridableArguments"))
    return {str(key): str(value) for layer in layers for key, value in (layer or {}).items()}


def prepare(settings: GlueSettings, folder: Path, job: Mapping[str, Any], run: Mapping[str, Any], fetch: Fetch) -> Path:
    """Fill ``folder`` with everything the run needs and return the launch file for ``local.glue_child``.

    ``fetch(bucket, key, target)`` downloads one object; what it raises ends the run before its script starts.
    """
    arguments: dict[str, str] = run["Arguments"]
    script = _fetch_uri(job["Command"]["ScriptLocation"], folder / "script", fetch)
    modules = [
        _fetch_uri(uri.strip(), folder / "modules" / str(index), fetch)
        for index, uri in enumerate(arguments.get("--extra-py-files", "").split(","))
        if uri.strip()
    ]
    hook = folder / "start" / "sitecustomize.py"
    hook.parent.mkdir(parents=True)
    hook.write_text(_HIDE_CHECKOUT.format(checkout=str(_CHECKOUT)))
    conf = _write_spark_conf(settings, folder, arguments.get("--conf", ""))
    python_path = [hook.parent, *(module.parent if module.suffix == ".py" else module for module in modules)]
    environment = isolated_environment(settings.endpoint) | {
        "PYTHONPATH": ":".join(str(entry) for entry in python_path),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_CONF_DIR": str(conf),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder / "scratch"),
        "TMPDIR": str(folder / "scratch"),
    }
    (folder / "scratch").mkdir()
    argv = ["--JOB_NAME", str(run["JobName"]), "--JOB_RUN_ID", str(run["Id"])]
    argv += [part for pair in arguments.items() for part in pair]
    launch = {"command": [sys.executable, str(script), *argv], "environment": environment, "folder": str(folder)}
    launch_file = folder / "launch.json"
    launch_file.write_text(json.dumps(launch, indent=1))
    return launch_file


def _fetch_uri(uri: str, folder: Path, fetch: Fetch) -> Path:
    parts = urlsplit(uri, allow_fragments=False)
    folder.mkdir(parents=True)
    target = folder / Path(parts.path).name
    fetch(parts.netloc, parts.path.lstrip("/"), target)
    return target


def _write_spark_conf(settings: GlueSettings, folder: Path, from_job: str) -> Path:
    conf = folder / "conf"
    conf.mkdir()
    lines = {
        "spark.master": "local[2]",
        "spark.jars": ",".join(str(jar) for jar in settings.jars),
        "spark.driver.memory": "1500m",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-XX:+UseParallelGC -Duser.timezone=UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "scratch" / "warehouse"),
        "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "spark.hadoop.fs.s3a.endpoint": settings.endpoint,
        "spark.hadoop.fs.s3a.endpoint.region": REGION,
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        "spark.hadoop.fs.s3a.access.key": ACCESS_KEY,
        "spark.hadoop.fs.s3a.secret.key": SECRET_KEY,
        "spark.hadoop.fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
    }
    # Glue's one --conf argument holds several settings as "a=1 --conf b=2".
    settings_of_job = (part.strip().partition("=") for part in from_job.split("--conf") if "=" in part)
    lines |= {key: value for key, _, value in settings_of_job}
    (conf / "spark-defaults.conf").write_text("".join(f"{key} {value}\n" for key, value in lines.items()))
    (conf / "log4j2.properties").write_text(_LOGGING)
    return conf
