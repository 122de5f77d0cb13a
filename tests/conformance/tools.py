"""The result of a second implementation; and its programs, by locks with SHA-256, in .cache and on loopback."""

import contextlib
import hashlib
import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.unit.lake.world import REGION, SECRET

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
CACHE = REPOSITORY / ".cache"
COPY_JARS = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"


@dataclass(frozen=True)
class Opinion:
    """The answers of one implementation to the questions that the everyday one answers as well."""

    name: str
    topic: str
    """The questions, as a sentence without its full stop."""
    questions: int
    known: Mapping[str, str]
    """Question on which the two are known to differ -> the reason."""
    different: Mapping[str, str] = field(default_factory=dict)
    """Question on which they differ -> how."""

    @property
    def agreed(self) -> int:
        return self.questions - len(self.different)

    def surprises(self) -> list[str]:
        """Findings to be explained: each new difference, and each known one that has disappeared."""
        new = [f"{self.name}: {name}: {how}" for name, how in self.different.items() if name not in self.known]
        gone = [f"{self.name}: {name}: now they agree" for name in self.known if name not in self.different]
        return new + gone


class ToolError(Exception):
    """A program is missing, or its download failed or had other bytes than the lock states."""


def dynamodb_local() -> Path:
    """The folder with DynamoDB Local's jars (51 MB, by Maven)."""
    return _installed("dynamodb-local", ["java/pom.xml", "java/dynamodb_local.sha256"], _download_dynamodb_local)


def go_programs() -> Path:
    """The folder with ``minio`` and two readers of Parquet, built by Go: about four minutes of processor time."""
    sources = [f"{folder}/{name}" for folder in ("go", "go_2019") for name in ("go.mod", "go.sum", "read_parquet.go")]
    return _installed("go-programs", sources, _build_go_programs)


def older_python() -> Path:
    """The site-packages with Spark 3.5 and an old botocore (320 MB, by uv)."""
    # It uses this interpreter: a cache that outlives an update of Python is not complete.
    name = f"older-python-{platform.python_version()}"
    folder = _installed(name, ["python/pyproject.toml", "python/uv.lock"], _install_older_python)
    return next(folder.glob("lib/python3*/site-packages"))


def _installed(name: str, locks: Sequence[str], install: Callable[[Path], None]) -> Path:
    """The folder that ``install`` has filled; a folder with this name is always complete."""
    content = hashlib.sha256(b"".join((HERE / lock).read_bytes() for lock in locks)).hexdigest()[:12]
    folder = CACHE / f"conformance-{name}-{content}"
    if not folder.is_dir():
        CACHE.mkdir(exist_ok=True)
        print(f"installing {name} into {folder.relative_to(REPOSITORY)}", flush=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as workspace:
            unfinished = Path(workspace) / "unfinished"
            install(unfinished)
            unfinished.rename(folder)
    return folder


def _download_dynamodb_local(folder: Path) -> None:
    hashes = (HERE / "java" / "dynamodb_local.sha256").read_text(encoding="utf-8")
    expected = {name: digest for digest, name in (line.split() for line in hashes.splitlines())}
    _run(["mvn", "-q", "-B", "-f", str(HERE / "java" / "pom.xml"), COPY_JARS, f"-DoutputDirectory={folder}"])
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
    if found != expected:
        different = sorted(name for name in found.keys() | expected if found.get(name) != expected.get(name))
        raise ToolError(f"DynamoDB Local: other files than java/dynamodb_local.sha256 states: {different}")


def _build_go_programs(folder: Path) -> None:
    # go.sum has the hash of each module: Go compares them.
    for sources, package, name in (
        ("go", "github.com/minio/minio", "minio"),
        ("go", ".", "read_parquet"),
        ("go_2019", ".", "read_parquet_2019"),
    ):
        _run(["go", "build", "-mod=readonly", "-trimpath", "-o", str(folder / name), package], cwd=HERE / sources)


def _install_older_python(folder: Path) -> None:
    uv = CACHE / "uv" / "bin" / "uv"
    environment = {**os.environ, "UV_PROJECT_ENVIRONMENT": str(folder), "UV_SYSTEM_CERTS": "true"}
    command = [str(uv) if uv.exists() else "uv", "sync", "--locked", "--quiet", "--project", str(HERE / "python")]
    _run([*command, "--python", sys.executable], environment=environment)


def _run(command: Sequence[str], *, cwd: Path = HERE, environment: dict[str, str] | None = None) -> None:
    if shutil.which(command[0]) is None:
        raise ToolError(f"{command[0]} is not on the PATH: install it (Maven, Go 1.24 or newer, uv by `make setup`)")
    try:
        subprocess.run(command, cwd=cwd, env=environment, check=True)
    except subprocess.CalledProcessError as error:
        raise ToolError(f"{error}: the reason is above") from error


MAX_START_SECONDS = 60


@contextlib.contextmanager
def dynamodb(folder: Path) -> Iterator[str]:
    """The endpoint of a DynamoDB Local; ``folder`` gets its log."""
    jars, port = dynamodb_local(), _free_port()
    main = "com.amazonaws.services.dynamodbv2.local.main.ServerRunner"
    command = ["java", f"-Djava.library.path={jars}", "-cp", f"{jars}/*", main]
    quiet = {"DDB_LOCAL_TELEMETRY": "0"}
    with _server([*command, "-inMemory", "-sharedDb", "-port", str(port)], port, folder / "dynamodb.log", quiet):
        yield f"http://127.0.0.1:{port}"


@contextlib.contextmanager
def minio(folder: Path) -> Iterator[str]:
    """The endpoint of a MinIO whose objects and log are in ``folder``."""
    port, console = _free_port(), _free_port()
    addresses = ["--address", f"127.0.0.1:{port}", "--console-address", f"127.0.0.1:{console}"]
    command = [str(go_programs() / "minio"), "server", *addresses, str(folder / "objects")]
    variables = {"MINIO_ROOT_USER": SECRET, "MINIO_ROOT_PASSWORD": SECRET, "MINIO_REGION": REGION}
    with _server(command, port, folder / "minio.log", variables):
        yield f"http://127.0.0.1:{port}"


@contextlib.contextmanager
def _server(command: Sequence[str], port: int, log: Path, variables: dict[str, str]) -> Iterator[None]:
    with log.open("wb") as output:
        environment = {**os.environ, **variables}
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment, cwd=log.parent)
    try:
        deadline = time.monotonic() + MAX_START_SECONDS
        while not _answers(port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise ToolError(f"{command[0]} does not answer: {log.read_text(encoding='utf-8')[-2000:]}")
            time.sleep(0.1)
        yield
    finally:
        process.kill()
        process.wait()


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def _free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])
