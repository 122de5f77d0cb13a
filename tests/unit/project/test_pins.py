"""Set-up: builds are pinned by version and hash, and another file is refused; a wrong JAVA_HOME is named."""

import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[3]
PINNED_UV = (CHECKOUT / "scripts" / "uv.txt").read_text(encoding="utf-8")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with the set-up script and what it reads before it installs uv."""
    (tmp_path / "checkout" / "scripts").mkdir(parents=True)
    for name in ("setup.sh", "uv.txt"):
        shutil.copy(CHECKOUT / "scripts" / name, tmp_path / "checkout" / "scripts" / name)
    for name in ("pyproject.toml", "uv.lock", "native", "local"):
        (tmp_path / "checkout" / name).symlink_to(CHECKOUT / name)
    return tmp_path / "checkout"


def test_a_uv_with_another_hash_is_not_installed(checkout: Path, tmp_path: Path) -> None:
    # Given a machine with another uv, and an index whose file has the right name and other bytes.
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "uv").write_text("#!/bin/sh\necho uv 0.1.0\n")
    (tmp_path / "bin" / "uv").chmod(0o755)
    version = PINNED_UV.partition("uv==")[2].split()[0]
    with zipfile.ZipFile(tmp_path / f"uv-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"uv-{version}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: uv\nVersion: {version}\n")
    # When
    result = subprocess.run(
        [str(checkout / "scripts" / "setup.sh"), "--uv-only"],
        env={
            **os.environ,
            "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(tmp_path),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    # Then
    assert result.returncode == 1
    assert "DO NOT MATCH THE HASHES" in result.stderr
    assert f"could not install uv {version} with a hash of scripts/uv.txt" in result.stderr
    assert not (checkout / ".cache" / "uv").exists()


def test_a_java_home_that_spark_cannot_use_is_named(checkout: Path, tmp_path: Path) -> None:
    # Given a JAVA_HOME with Java 11
    programs = {"java": "echo 'openjdk version \"11.0.2\"' >&2", "apt-get": "exit 1"}
    (tmp_path / "bin").mkdir()
    for name, line in programs.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    # When
    result = subprocess.run(
        [str(checkout / "scripts" / "setup.sh")],
        env={**os.environ, "PATH": path, "JAVA_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    # Then another Java is not installed, which Spark would not take
    assert result.returncode == 1
    assert f"JAVA_HOME is {tmp_path}" in result.stderr
