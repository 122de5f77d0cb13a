"""The command after ``make install``: on a machine without the checkout's development packages."""

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
from packaging.markers import Marker

from cli.doctor.checks import MODULES
from cli.errors import ExitCode

CHECKOUT = Path(__file__).parents[3]
PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))
Command = Callable[..., subprocess.CompletedProcess[str]]
RUN = "import sys; sys.path.insert(0, sys.argv.pop(1)); from cli.main import run; run()"


def runtime_distributions() -> set[str]:
    """Everything that ``make install`` installs: the closure of the project's dependencies in uv.lock."""
    lock = tomllib.loads((CHECKOUT / "uv.lock").read_text(encoding="utf-8"))
    dependencies: dict[str, list[dict[str, Any]]] = {
        package["name"]: package.get("dependencies", []) for package in lock["package"]
    }
    found, waiting = set(), [PROJECT["project"]["name"]]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [
                item["name"] for item in dependencies[name] if "marker" not in item or Marker(item["marker"]).evaluate()
            ]
    return found


@pytest.fixture(scope="module")
def site_packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the installed files of the runtime distributions and with the packages of the project's wheel."""
    folder = tmp_path_factory.mktemp("site-packages")
    sources = [CHECKOUT / name for name in PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]]
    sources.append(CHECKOUT / "native" / "python" / "ndjson_arrow")
    for name in runtime_distributions():
        installed = distribution(name)
        tops = {file.parts[0] for file in installed.files or [] if file.parts[0] not in ("..", "__pycache__")}
        sources += [Path(str(installed.locate_file(top))) for top in tops if not top.endswith(".pth")]
    for source in sources:
        (folder / source.name).symlink_to(source)
    return folder


@pytest.fixture
def command(site_packages: Path, tmp_path: Path) -> Command:
    """Runs ``hybrid-router`` without any other importable package, without AWS credentials, in an empty folder."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "AWS_EC2_METADATA_DISABLED": "true"}

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            # Neither the site packages of this environment (-S) nor the working folder (-I).
            [sys.executable, "-I", "-S", "-c", RUN, str(site_packages), *arguments],
            env=environment | variables,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_it_has_the_version_of_the_native_reader(command: Command) -> None:
    cargo = tomllib.loads((CHECKOUT / "native" / "Cargo.toml").read_text(encoding="utf-8"))
    assert command("--version").stdout.strip() == cargo["package"]["version"]


def test_it_lists_its_commands_and_checks_settings(command: Command) -> None:
    help_text = command("--help")
    assert help_text.returncode == 0, help_text.stderr
    assert "promote" in help_text.stdout
    checked = command("settings", "check", str(CHECKOUT / "settings" / "dev.toml"))
    assert checked.returncode == 0, checked.stderr


def test_the_doctor_checks_what_exists(command: Command) -> None:
    answer = command("doctor", "--json", AWS_DEFAULT_REGION="eu-central-1")
    assert (answer.returncode, answer.stderr) == (ExitCode.NOT_REACHABLE, "")
    found = {item["name"]: item["state"] for item in json.loads(answer.stdout)["findings"]}
    assert (found["python"], found["uv"], found["wheels"]) == ("ok", "skipped", "skipped")
    assert (found["credentials"], found["region"], found["stack"]) == ("not reachable", "ok", "skipped")
    assert command("settings", "explain", "stage").returncode == ExitCode.OK
    assert command("local", "ls").returncode == ExitCode.OK


@pytest.mark.parametrize("region", [{"AWS_REGION": "eu-central-1"}, {"AWS_DEFAULT_REGION": "eu-central-1"}])
def test_a_command_for_aws_asks_for_credentials_in_one_line(command: Command, region: dict[str, str]) -> None:
    status = command("status", **region)
    assert status.returncode == ExitCode.NOT_REACHABLE
    assert "Unable to locate credentials" in status.stderr
    assert len(status.stderr.splitlines()) == 1


@pytest.mark.parametrize("arguments", [("local", "up"), ("demo",)])
def test_a_command_for_the_local_cloud_explains_how_to_install_it(
    command: Command, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    result = command(*arguments)
    assert result.returncode == ExitCode.NOT_REACHABLE
    assert f"packages that are not installed ({', '.join(MODULES)}): run 'make setup'" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []
