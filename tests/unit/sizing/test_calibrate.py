"""hybrid-router calibrate, with processes of its own."""

import gzip
import subprocess
import sys
from pathlib import Path
from random import Random

from tests.unit.docs.pages import CHECKOUT


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "cli", *arguments], cwd=CHECKOUT, capture_output=True, text=True, check=False
    )


def test_a_person_gets_figures_and_a_settings_file(tmp_path: Path) -> None:
    # Given files of a person, one line of which is not NDJSON
    (tmp_path / "a.ndjson").write_bytes(b'{"id": 1, "name": "a"}\n' * 100_000 + b"broken\n")
    lines = (f'{{"id": {number}, "name": "{Random(number).getrandbits(512):x}"}}\n' for number in range(20_000))
    (tmp_path / "b.ndjson.gz").write_bytes(gzip.compress("".join(lines).encode()))
    written = tmp_path / "calibrated.toml"
    # When they calibrate
    options = ("--goal-seconds", "0.1", "--cores", "2", "--output", str(written))
    found = command("calibrate", str(tmp_path), *options)
    # Then the figures are there, and the settings are valid
    assert found.returncode == 0, found.stderr
    assert "MB/s per core" in found.stdout
    assert "2 columns" in found.stdout
    assert "rejected: " in found.stdout
    assert "compressed files" in found.stdout
    assert "compressed_mb_per_second_per_core" in written.read_text()
    assert command("settings", "check", str(written)).returncode == 0
