"""The CDK command line runs the app of cdk.json with nothing but what set-up installed."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from infra.synth import CHECKOUT, node_binary, synth
from infra.wheels import READER, JobRuntime, locked_hashes, locked_versions, write_zip
from lake.settings import dump_settings, load_settings
from tests.unit.infra.conftest import Assembly
from tests.unit.infra.npm_packages import install
from tests.unit.infra.small_wheels import write_wheel


@pytest.fixture
def cdk(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a command of CDK in a checkout, on a machine without uv on its PATH and without AWS."""
    program = install(Path(__file__).parent / "cdk_command_line", "aws-cdk/bin/cdk")
    (tmp_path / "bin").mkdir()
    environment = {
        "PATH": str(tmp_path / "bin"),
        "HOME": str(tmp_path),
        "AWS_REGION": "eu-central-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "CDK_DISABLE_CLI_TELEMETRY": "true",
        "CDK_DISABLE_VERSION_CHECK": "true",
        # CDK's libraries are unpacked below HOME, which takes most of the time of a synthesis: once is enough.
        "JSII_RUNTIME_PACKAGE_CACHE_ROOT": str(Path.home() / ".cache" / "aws" / "jsii" / "package-cache"),
    }

    def run(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(node_binary()), str(program), *arguments, "--no-notices", "--no-color"]
        command += ["--output", str(tmp_path / "cdk.out")]
        return subprocess.run(command, capture_output=True, text=True, cwd=checkout, check=False, env=environment)

    return run


def test_the_page_names_the_version_that_the_tests_run() -> None:
    page = (CHECKOUT / "docs" / "deploy.md").read_text(encoding="utf-8")
    package = json.loads((Path(__file__).parent / "cdk_command_line" / "package.json").read_text(encoding="utf-8"))
    assert re.findall(r"`npm install -g aws-cdk@([^`]+)`", page) == [package["dependencies"]["aws-cdk"]]


def test_a_wrong_stage_ends_with_the_sentence_of_the_app(cdk: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    # Given a stage without a settings file.
    result = cdk(CHECKOUT, "list", "-c", "stage=nowhere")
    # Then the app has run, and has printed which file is missing, without a stack trace.
    assert result.returncode == 1
    assert [line for line in result.stderr.splitlines() if "nowhere.toml" in line]
    assert "Traceback" not in result.stderr


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout after ``make wheels``: small wheels, and a lock that states their hash."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    for entry in CHECKOUT.iterdir():
        if entry.name not in ("dist", "uv.lock", ".git"):
            (folder / entry.name).symlink_to(entry)
    versions = locked_versions(CHECKOUT)
    pins = {name: versions[name] for name in (READER, "obstore")}
    wheels = [tmp_path / f"{name.replace('-', '_')}-{version}-py3-none-any.whl" for name, version in pins.items()]
    for wheel in wheels:
        write_wheel(wheel, {"module.py": b""})
    lock = (CHECKOUT / "uv.lock").read_text(encoding="utf-8")
    stated = min(locked_hashes(CHECKOUT)["obstore"])
    built = hashlib.sha256(wheels[1].read_bytes()).hexdigest()
    (folder / "uv.lock").write_text(lock.replace(stated, built), encoding="utf-8")
    write_zip(wheels, pins, folder, folder / JobRuntime.glue().zip)
    return folder


def test_diff_shows_nothing_for_the_stack_of_the_local_cloud(
    cdk: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    # Given the template that `local up` deploys for a settings file, on a machine without wheels
    settings = tmp_path / "day.toml"
    settings.write_text('stage = "day"\n')
    deployed = next(synth(load_settings(settings), tmp_path / "local").glob("*.template.json"))
    # When
    result = cdk(CHECKOUT, "diff", "-c", f"settings={settings}", "-c", "local=true", "--template", str(deployed))
    # Then
    printed = result.stdout + result.stderr
    assert result.returncode == 0, printed
    assert "There were no differences" in printed


def test_diff_shows_what_a_deployment_would_change(
    cdk: Callable[..., subprocess.CompletedProcess[str]], checkout: Path, tmp_path: Path, assembly: Assembly
) -> None:
    # Given a stack as the local cloud has it: with the same settings, without the wheels.
    (tmp_path / "deployed.json").write_text(json.dumps(assembly.template))
    (tmp_path / "settings.json").write_text(dump_settings(assembly.settings))
    # When a person asks what a deployment would change.
    options = ["-c", f"settings={tmp_path / 'settings.json'}", "--template", str(tmp_path / "deployed.json")]
    result = cdk(checkout, "diff", *options)
    # Then it is the wheels of the two jobs, and the hash of the settings, which were read from a file here.
    printed = result.stdout + result.stderr
    assert result.returncode == 0, printed
    changes = set(re.findall(r"^\[([-+~])\] (AWS::\S+)", printed, re.MULTILINE))
    assert changes == {("~", "AWS::Glue::Job"), ("~", "AWS::Lambda::Function")}
    assert printed.count("[+] Added: .--additional-python-modules") == 2
    assert printed.count("[+] Added: .") == 2 * 2
