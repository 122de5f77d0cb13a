"""``make check`` and the Git hooks agree, two nights play every fault, and set-up installs only pinned packages."""

import os
import re
import shutil
import ssl
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.chaos.injection import fault_space

CHECKOUT = Path(__file__).parents[3]
MAKEFILE = (CHECKOUT / "Makefile").read_text(encoding="utf-8")
NIGHTLY = (CHECKOUT / ".github" / "workflows" / "nightly.yml").read_text(encoding="utf-8")
VERSION = (CHECKOUT / "scripts" / "uv.txt").read_text(encoding="utf-8").partition("uv==")[2].split()[0]
HOOKS = (CHECKOUT / ".pre-commit-config.yaml").read_text(encoding="utf-8")


def test_every_check_is_a_hook_and_every_hook_is_a_check() -> None:
    # Given the prerequisites of `make check` and all targets that are checks.
    prerequisites = re.findall(r"^check: (.*?)(?: ##.*)?$", MAKEFILE, re.MULTILINE)
    checks = [name for line in prerequisites for name in line.split() if name != "setup"]
    targets = re.findall(r"^(check-[a-z-]+):", MAKEFILE, re.MULTILINE)
    # Then each is there once, and the hooks are the same list in the same order.
    assert checks == targets
    assert re.findall(r"^ +- id: (.*)$", HOOKS, re.MULTILINE) == checks
    entries = re.findall(r"^ +entry: (.*)$", HOOKS, re.MULTILINE)
    assert entries == [f"make --no-print-directory {name}" for name in checks]


def test_two_nights_play_every_fault() -> None:
    # Given the seeds of the nightly run: the first fault of a history is chosen by its seed.
    ((step, histories),) = re.findall(r"tests\.chaos --seed \$\(\( day \* (\d+) \)\) --histories (\d+)", NIGHTLY)
    faults = fault_space()

    def played(day: int) -> set[tuple[str, str, str]]:
        first = day * int(step)
        return {faults[seed % len(faults)] for seed in range(first, first + int(histories))}

    # Then no two consecutive nights both omit a fault, whenever they begin, and each night has every action.
    for day in range(len(faults)):
        assert played(day) | played(day + 1) == set(faults)
        assert {action for _, _, action in played(day)} == {action for _, _, action in faults}


def set_up(folder: Path, programs: dict[str, str], *options: str, **variables: str) -> str:
    """The report of the set-up script when it fails in a checkout in this folder; ``programs`` come first on PATH."""
    (folder / "checkout" / "scripts").mkdir(parents=True)
    for name in ("setup.sh", "uv.txt"):
        shutil.copy(CHECKOUT / "scripts" / name, folder / "checkout" / "scripts" / name)
    for name in ("pyproject.toml", "uv.lock", "native", "local"):
        (folder / "checkout" / name).symlink_to(CHECKOUT / name)
    (folder / "bin").mkdir()
    for name, line in programs.items():
        (folder / "bin" / name).write_text(f"#!/bin/sh\n{line}\n")
        (folder / "bin" / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}", **variables}
    script = folder / "checkout" / "scripts" / "setup.sh"
    result = subprocess.run([str(script), *options], env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    return result.stderr


def test_a_uv_with_another_hash_is_not_installed(tmp_path: Path) -> None:
    # Given a machine with another uv, and an index whose file has the right name and other bytes.
    with zipfile.ZipFile(tmp_path / f"uv-{VERSION}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"uv-{VERSION}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: uv\nVersion: {VERSION}\n")
    index = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": tmp_path.as_uri()}
    # When
    output = set_up(tmp_path, {"uv": "echo uv 0.1.0"}, "--uv-only", **index)
    # Then
    assert "DO NOT MATCH THE HASHES" in output
    assert f"could not install uv {VERSION} with a hash of scripts/uv.txt" in output
    assert not (tmp_path / "checkout" / ".cache" / "uv").exists()


def test_a_java_home_that_spark_cannot_use_is_named(tmp_path: Path) -> None:
    # Given a JAVA_HOME with Java 11, When, Then no other Java is installed, because Spark would not use it
    programs = {"java": "echo 'openjdk version \"11.0.2\"' >&2", "apt-get": "exit 1"}
    assert f"JAVA_HOME is {tmp_path}" in set_up(tmp_path, programs, JAVA_HOME=str(tmp_path))


UV = f'[ "$1" = --version ] && echo uv {VERSION} && exit; echo "trusted: $SSL_CERT_FILE" >&2; exit 1'


def test_the_download_of_rust_trusts_what_the_machine_trusts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a machine with authorities that no variable names, and the pinned uv, whose build downloads Rust
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    # When, Then
    output = set_up(tmp_path, {"uv": UV, "python3.13": f'exec "{sys.executable}" "$@"'})
    assert f"trusted: {ssl.get_default_verify_paths().cafile or ''}\n" in output


def test_a_moved_checkout_gets_its_own_environment(tmp_path: Path) -> None:
    # Given the environment of a checkout that had another name
    environment = tmp_path / "checkout" / ".venv"
    (environment / "bin").mkdir(parents=True)
    (environment / "bin" / "activate").write_text(f"VIRTUAL_ENV='{tmp_path / 'old' / '.venv'}'\n")
    # When, Then the new one does not overwrite it: its programs would still name the old path
    set_up(tmp_path, {"uv": UV})
    assert not environment.exists()
