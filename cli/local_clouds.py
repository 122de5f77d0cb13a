"""Runs a local cloud, and lists the running clouds of this machine and the remains of killed ones.

Each has a lock, a file and a folder. The process of ``local up`` holds the lock of its stage as long as it lives, so
the lock cannot be stale; its file stays. The file is a configuration of the AWS command line, with which programs reach
the cloud; the folder has its buckets, ledger and logs.
"""

import fcntl
import os
import re
import shlex
import shutil
import signal
import socket
import time
from collections.abc import Iterator, Mapping
from configparser import ConfigParser
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from cli.commands import Answer, SettingsFile
from cli.errors import NotReachableError
from cli.terminal import ended_by_signal
from lake.errors import InvalidInputError, TerminalError
from lake.settings import Settings, load_settings
from lake.settings.model import STAGE_NAME
from local.isolation import REGION, AccessKey

LOCAL_PROFILE = "hybrid-router-local"
KEPT = "-kept"
"""Suffix of a folder that ``local up --keep`` has left."""


def local_state() -> Path:
    """Return the folder of all local clouds of a user (XDG Base Directory Specification)."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base).absolute() / "hybrid-router" / "local"


@dataclass(frozen=True, slots=True)
class LocalStage:
    folder: Path
    stage: str

    @property
    def aws_config(self) -> Path:
        return self.folder / f"{self.stage}.aws"

    @property
    def lock_file(self) -> Path:
        """Held while a cloud of the stage runs; it contains the id of the process."""
        return self.folder / f"{self.stage}.lock"

    def cloud_folder(self, pid: int) -> Path:
        return self.folder / f"{self.stage}-{pid}"

    def owner(self) -> int | None:
        """The id of the process that runs the stage's cloud; 0 if it has just started; None without such a process."""
        try:
            with self.lock_file.open() as lock:
                # A shared lock, so that two readers do not mistake each other for an owner.
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return None
        except BlockingIOError:
            return int(self.lock_file.read_text() or 0)
        return None

    @contextmanager
    def claimed(self, *, wait: bool = False) -> Iterator[None]:
        """Be the only process that runs a cloud of this stage, and first remove what earlier ones left.

        ``wait``: wait until a running cloud has ended; otherwise ``TerminalError`` is raised.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        self.lock_file.touch()
        with self.lock_file.open("r+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                raise TerminalError(
                    f"a local cloud of stage {self.stage} is running already (process {self.owner()}): use it with "
                    f"--local --stage {self.stage}, or end it with 'hybrid-router local down --stage {self.stage}'"
                ) from None
            # One write of fixed length, which a reader sees as a whole.
            lock.write(f"{os.getpid():<20}")
            lock.flush()
            self.aws_config.unlink(missing_ok=True)
            for folder in self.folders():
                shutil.rmtree(folder, ignore_errors=True)
            try:
                yield
            finally:
                # Otherwise the next owner would be mistaken for this process until it has written its own id.
                lock.truncate(0)

    def profile(self) -> Mapping[str, str]:
        """Return the profile of ``local_config``. Raises ``FileNotFoundError``."""
        parser = ConfigParser(interpolation=None)
        parser.read_string(self.aws_config.read_text(encoding="utf-8"))
        return parser[f"profile {LOCAL_PROFILE}"]

    def folders(self) -> list[Path]:
        """Return the folders of the stage's clouds, without kept folders."""
        found = self.folder.glob(f"{self.stage}-*")
        return [path for path in found if re.fullmatch(rf"{re.escape(self.stage)}-\d+", path.name)]


def stages(folder: Path) -> list[LocalStage]:
    """Return the stages that run, or of which a killed process has left something."""
    names = {re.split(r"[-.]", path.name)[0] for path in folder.glob("*") if not path.name.endswith(KEPT)}
    found = [LocalStage(folder, name) for name in sorted(names)]
    return [item for item in found if item.owner() is not None or item.aws_config.exists() or item.folders()]


def aws_on_local_cloud(config: Path) -> str:
    """Return the command with the file of ``local_config``, which keeps the key out of the terminal's history."""
    return f"AWS_CONFIG_FILE={shlex.quote(str(config.absolute()))} aws --profile {LOCAL_PROFILE}"


def local_config(endpoint: str, key: AccessKey, logs: Path) -> str:
    """Return a configuration file with one profile (AWS CLI User Guide, "Configuration and credential file settings"):
    endpoint, region and key of a local cloud, and for our commands the folder of its logs.
    """
    lines = {
        "region": REGION,
        "endpoint_url": endpoint,
        "aws_access_key_id": key.id,
        "aws_secret_access_key": key.secret,
        "hybrid_router_logs": str(logs),
        "s3": "\n  addressing_style = path",
    }
    return f"[profile {LOCAL_PROFILE}]\n" + "".join(f"{name} = {value}\n" for name, value in lines.items())


CONNECT_SECONDS = 1
"""Timeout of a connection to a server on this machine."""


def read_local_state(stage: str) -> Mapping[str, str]:
    """Return the profile that ``local up`` has written for the running cloud of this stage."""
    try:
        cloud = LocalStage(local_state(), stage).profile()
        place = urlsplit(cloud["endpoint_url"])
        # A killed cloud has left its file, but no server listens.
        with socket.create_connection((str(place.hostname), place.port or 80), CONNECT_SECONDS):
            return cloud
    except (FileNotFoundError, ConnectionError, TimeoutError) as error:
        raise NotReachableError(
            f"no local cloud of stage {stage} is running on this machine: 'hybrid-router local ls' shows those "
            "that are, and 'hybrid-router local up' starts one"
        ) from error


def local_up_command(
    settings_file: SettingsFile = Path("settings/dev.toml"),
    *,
    keep: Annotated[bool, typer.Option("--keep", help="Keep its buckets and logs when it ends.")] = False,
) -> None:
    """Run the whole cloud on this machine until Ctrl-C, which deletes it, and deploy a settings file's stack to it."""
    from cli.doctor.checks import require_local_packages

    require_local_packages()
    settings = load_settings(settings_file)
    stage = LocalStage(local_state(), settings.stage)
    folder = stage.cloud_folder(os.getpid())
    with ended_by_signal(), stage.claimed():
        try:
            _run(settings, stage, folder, keep=keep)
        finally:
            stage.aws_config.unlink(missing_ok=True)
            if keep and folder.exists():
                kept = folder.rename(f"{folder}{KEPT}")
                typer.echo(f"buckets and logs are kept in {kept}: delete it when you do not need it")
            elif folder.exists():
                shutil.rmtree(folder)


def _run(settings: Settings, stage: LocalStage, folder: Path, *, keep: bool) -> None:
    from infra.synth import synth
    from local.cloud import LocalCloud

    with LocalCloud.start(folder, log=typer.echo) as cloud:
        typer.echo("running cdk synth and deploying its template unchanged")
        outputs = cloud.deploy(synth(settings, folder / "cdk.out"))
        stage.aws_config.touch(mode=0o600)
        stage.aws_config.write_text(local_config(cloud.endpoint, cloud.access_key, cloud.logs_dir), encoding="utf-8")
        typer.echo(f"\nendpoint  {cloud.endpoint}   (its access key is in {stage.aws_config})")
        for name, value in sorted(outputs.items()):
            typer.echo(f"{name:<22} {value}")
        typer.echo(f"logs      {cloud.logs_dir}")
        typer.echo(f"AWS CLI   {aws_on_local_cloud(stage.aws_config)}")
        place = f"--local --stage {settings.stage}"
        typer.echo(f"\nPut files into the input bucket; run 'hybrid-router status {place}'.")
        kept = f"; buckets and logs are kept in {folder}{KEPT}" if keep else f" and deletes {folder}: buckets and logs"
        typer.echo(f"Ctrl-C ends everything{kept}.")
        cloud.wait()


def local_down_command(stage_name: Annotated[str, typer.Option("--stage", help="Stage of the stack.")] = "dev") -> None:
    """End the local cloud of a stage as Ctrl-C does, and delete what a killed one has left."""
    if not STAGE_NAME.fullmatch(stage_name):
        raise InvalidInputError(
            f"{stage_name!r} is not a valid name of a stage: 'hybrid-router local ls' lists the running ones"
        )
    stage = LocalStage(local_state(), stage_name)
    while (pid := stage.owner()) == 0:
        time.sleep(0.1)
    if pid:
        typer.echo(f"waiting for the end of process {pid}; if it hangs, run 'kill -9 {pid}'", err=True)
        os.kill(pid, signal.SIGTERM)
    with stage.claimed(wait=True):
        typer.echo(f"no local cloud of stage {stage_name} is running; the files of a killed one are deleted")


def local_ls_command() -> Answer:
    """List the local clouds of this machine, with what killed ones have left."""
    clouds = []
    for stage in stages(local_state()):
        pid = stage.owner()
        has_file = pid is not None and stage.aws_config.is_file()
        endpoint = stage.profile()["endpoint_url"] if has_file else None
        clouds.append({"stage": stage.stage, "running": pid is not None, "pid": pid, "endpoint": endpoint})
    return Answer({"clouds": clouds}, lambda: _print(clouds))


def _print(clouds: list[dict[str, Any]]) -> None:
    for cloud in clouds:
        place = f"process {cloud['pid']}, {cloud['endpoint'] or 'no endpoint yet'}" if cloud["running"] else ""
        left = f"not running, files are left: run 'hybrid-router local down --stage {cloud['stage']}'"
        typer.echo(f"{cloud['stage']:<20} {place or left}")
    if not clouds:
        typer.echo("no local cloud is running on this machine")
