"""A job run: its script and modules as deployed, its arguments, its Spark configuration, its processes, its end.

Each run is its own session of processes, led by ``local.job_child``; the error message of a failed run comes from its
log.
"""

import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from local.class_archive import LOCAL_SPARK, java_options, spark_environment
from local.isolation import AccessKey, environment_without_region
from local.processes import end_session, kill_session

_CHECKOUT = Path(__file__).resolve().parents[1]
# An editable install puts the checkout on the sys.path of every Python process; on Glue there is no checkout.
_HIDE_CHECKOUT_SCRIPT = "import sys\nsys.path[:] = [entry for entry in sys.path if entry != {checkout!r}]\n"
_LOG4J_PROPERTIES = """rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{yy/MM/dd HH:mm:ss} %p %c{1}: %m%n%ex
"""


AssumeRole = Callable[[str, str, str], AccessKey]
"""``assume_role(role_arn, service, session)`` gives temporary credentials of a role."""
Fetch = Callable[[AccessKey, str, str, Path], None]
"""``fetch(access_key, bucket, key, target)`` downloads one object to a file as the identity of the access key."""


@dataclass(frozen=True, slots=True)
class JobSettings:
    endpoint: str
    """URL of the emulator."""
    state: Path
    """Folder of the cloud: its ``Limits``, ``runs/<run id>/`` and ``logs/<job or application>/<run id>.log``."""
    classes: Path
    """The archive of Spark's classes (``local.class_archive``)."""
    minute_seconds: float = 60.0
    """Seconds that a minute of a job's timeout lasts; tests make it shorter."""


@dataclass(frozen=True, slots=True)
class JobLaunch:
    """A job run that a service was asked to start."""

    script: str
    modules: tuple[str, ...]
    """S3 URIs of Python files and zips that the script can import."""
    spark: Mapping[str, str]
    """Properties of Spark, which override the local cloud's properties."""
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    """Variables that the service sets in addition."""


def prepare(settings: JobSettings, folder: Path, launch: JobLaunch, key: AccessKey, fetch: Fetch) -> Path:
    """Fill the existing, empty ``folder`` with the run's files, and return the launch file for ``local.job_child``.

    ``key``: the key of the run's role, with which the run reads its script and works. Raises whatever ``fetch`` raises,
    for example because the script does not exist, or the role may not read it.
    """
    script = _fetch_uri(launch.script, folder / "script", key, fetch)
    modules = [_fetch_uri(uri, folder / "modules" / str(index), key, fetch) for index, uri in enumerate(launch.modules)]
    # Python runs a module of this name at its start.
    start_module = folder / "start" / "sitecustomize.py"
    start_module.parent.mkdir(parents=True)
    start_module.write_text(_HIDE_CHECKOUT_SCRIPT.format(checkout=str(_CHECKOUT)))
    spark = _write_spark_conf(settings, folder, launch.spark)
    python_path = [start_module.parent, *(module.parent if module.suffix == ".py" else module for module in modules)]
    environment = environment_without_region(settings.endpoint, key) | {
        **launch.environment,
        "PYTHONPATH": ":".join(str(entry) for entry in python_path),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        **spark,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder / "scratch"),
        "TMPDIR": str(folder / "scratch"),
    }
    (folder / "scratch").mkdir()
    body = {
        "command": [sys.executable, str(script), *launch.arguments],
        "environment": environment,
        "folder": str(folder),
    }
    launch_file = folder / "launch.json"
    launch_file.write_text(json.dumps(body, indent=1))
    return launch_file


def _fetch_uri(uri: str, folder: Path, key: AccessKey, fetch: Fetch) -> Path:
    parts = urlsplit(uri, allow_fragments=False)
    folder.mkdir(parents=True)
    target = folder / Path(parts.path).name
    fetch(key, parts.netloc, parts.path.lstrip("/"), target)
    return target


def _write_spark_conf(settings: JobSettings, folder: Path, own: Mapping[str, str]) -> dict[str, str]:
    log_settings = folder / "log4j2.properties"
    log_settings.write_text(_LOG4J_PROPERTIES)
    java = f"{java_options(settings.classes)} -Dlog4j2.configurationFile={log_settings.as_uri()} -Duser.timezone=UTC"
    properties = {
        **LOCAL_SPARK,
        "spark.master": "local[2]",
        "spark.driver.memory": "1500m",
        "spark.driver.extraJavaOptions": java,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "scratch" / "warehouse"),
    }
    return spark_environment({**properties, **own}, folder / "spark.conf", settings.classes)


_MAX_TAIL_BYTES = 256 * 1024
_MAX_MESSAGE_CHARACTERS = 2000
_NOISE = re.compile(r"^(\d\d/\d\d/\d\d \d\d:\d\d:\d\d |\s|at |Caused by: |\.\.\. \d+ more|SLF4J|WARNING: )")


def last_error(log_file: Path, exit_code: int) -> str:
    """The signal that ended the run's script, else the last meaningful line: the exception, or the text of sys.exit.

    It has at most 2,000 characters. ``exit_code``: of the run's first process, 128 + the number of a signal that killed
    the script.
    """
    signal_number = exit_code - 128
    if signal_number in set(signal.Signals):
        return f"The process was ended by {signal.Signals(signal_number).name}."
    with log_file.open("rb") as log:
        log.seek(max(0, log_file.stat().st_size - _MAX_TAIL_BYTES))
        lines = log.read().decode("utf-8", errors="replace").splitlines()
    meaningful = [line for line in lines if line.strip() and not _NOISE.match(line)]
    return meaningful[-1][:_MAX_MESSAGE_CHARACTERS] if meaningful else f"SystemExit: {exit_code}"


class JobRuns:
    """Base of the job runs of a service; its methods may be called from several threads.

    A run's record is a dict like the service's own, which is updated in place until the run has ended.
    """

    _id: str
    _state: str
    """Keys of a record: its id and its state."""
    _stoppable: tuple[str, ...]
    """States in which a run can be stopped."""
    _stopping: str
    """State of a stopped run until its processes have ended."""

    def __init__(
        self, settings: JobSettings, assume_role: AssumeRole, fetch: Fetch, clock: Callable[[], float] = time.time
    ) -> None:
        self._settings = settings
        self._assume_role = assume_role
        self._fetch = fetch
        self._clock = clock
        self._lock = threading.RLock()
        self._runs: dict[str, dict[str, Any]] = {}
        """Records of all runs by their ids, the oldest first."""
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        """First processes of the runs that have not ended."""
        self._closed = False

    def stop(self, run: dict[str, Any]) -> bool:
        """Kill the run's processes, without time to end by themselves; False if it has ended or is being stopped."""
        with self._lock:
            if run[self._state] not in self._stoppable:
                return False
            run[self._state] = self._stopping
            if (process := self._processes.get(run[self._id])) is not None:
                kill_session(process.pid)
        return True

    def close(self) -> None:
        """Kill every run, wait for the end of its processes, and start no further run: the local cloud ends."""
        with self._lock:
            self._closed = True
            processes = list(self._processes.values())
        for end in (kill_session, end_session):
            for process in processes:
                end(process.pid)

    def _begin(self, record: dict[str, Any], work: Callable[[], None]) -> None:
        self._runs[record[self._id]] = record
        threading.Thread(target=work, daemon=True, name=record[self._id]).start()

    def _has_begun(self, record: dict[str, Any]) -> bool:
        """Record that the process has started; False if the run was stopped before."""
        with self._lock:
            if record[self._state] == self._stopping:
                return False
            record[self._state] = "RUNNING"
            return True

    def _execute(
        self,
        record: dict[str, Any],
        job: str,
        launch: Callable[[], JobLaunch],
        role: tuple[str, str, str],
        minutes: float,
    ) -> tuple[str, str]:
        """Run ``launch``'s process to its end; return SUCCEEDED, FAILED or TIMEOUT (killed after ``minutes``), and why.

        ``job``: the name of its job, or of its application. ``role``: ARN of the run's role, the service that assumes
        it, and the name of the session.
        """
        run = record[self._id]
        log_file = self._settings.state / "logs" / job / f"{run}.log"
        try:
            log_file.parent.mkdir(parents=True, exist_ok=True)
            folder = self._settings.state / "runs" / run
            folder.mkdir(parents=True)
            key = self._assume_role(*role)
            process = self._start(run, prepare(self._settings, folder, launch(), key, self._fetch), log_file)
            if not self._has_begun(record):
                kill_session(process.pid)
            code = self._wait(run, process, minutes * self._settings.minute_seconds)
            if code is None:
                return "TIMEOUT", f"The run was ended after {minutes} minutes."
            return ("FAILED", last_error(log_file, code)) if code else ("SUCCEEDED", "")
        except Exception as error:  # a state machine polls the run: it must reach a final state after any error
            return "FAILED", f"LAUNCH ERROR | {type(error).__name__}: {error}"

    def _start(self, run: str, launch_file: Path, log_file: Path) -> subprocess.Popen[bytes]:
        """Start the run's first process, which executes ``launch_file``; its output goes to ``log_file``."""
        with log_file.open("wb") as log, self._lock:
            if self._closed:
                raise RuntimeError("the local cloud ends")
            self._processes[run] = subprocess.Popen(
                [sys.executable, "-m", "local.job_child", str(launch_file)],
                cwd=_CHECKOUT,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            return self._processes[run]

    def _wait(self, run: str, process: subprocess.Popen[bytes], seconds: float) -> int | None:
        """Wait at most ``seconds`` for the end of a run; return its exit code, or None if it had to be killed.

        Processes that the script left behind end with it, as in the cloud, where the machines of a run are released.
        """
        try:
            with process:
                try:
                    return process.wait(timeout=seconds)
                except subprocess.TimeoutExpired:
                    return None
                finally:
                    end_session(process.pid)
        finally:
            with self._lock:
                del self._processes[run]
