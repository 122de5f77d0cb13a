"""The stub of the compiled module, which type checkers and readers use instead of it."""

import subprocess
import sys
from pathlib import Path


def test_the_stub_has_the_names_and_signatures_of_the_compiled_module(tmp_path: Path) -> None:
    # When
    command = [sys.executable, "-m", "mypy.stubtest", "ndjson_arrow"]
    stubtest = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    # Then
    assert stubtest.returncode == 0, stubtest.stdout + stubtest.stderr
