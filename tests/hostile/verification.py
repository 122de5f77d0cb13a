"""Reads one hostile file as ``verify`` does, in a process of its own, and compares what it counts with the conversion.

python -m tests.hostile.verification NUMBER COUNT
"""

from __future__ import annotations

import io
import json
import resource
import subprocess
import sys
import tempfile
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from lake.manifest import ObjectVersion
from lake.settings import ConvertSettings
from sizing.peak_memory import peak_bytes, reset_peak_bytes
from tests.hostile.conversion import ADDRESS_SPACE
from tests.hostile.corpus import CORPUS, MIB
from verify.rows import InputCount, InputReader

if TYPE_CHECKING:
    from tests.hostile.conversion import Cost
    from tests.hostile.corpus import HostileFile

MAX_PEAK = 600 * MIB
"""Resident memory: 24 times a line of 16 MiB, and the process itself."""


def problems_of_verify(file: HostileFile, count: int, cost: Cost) -> list[str]:
    """What is wrong with the verification of a file whose conversion has cost this."""
    command = [sys.executable, "-m", __name__, str(CORPUS.index(file)), str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return [f"verify: exit code {done.returncode}: {done.stderr[-2000:]}"]
    found = json.loads(done.stdout)
    problems = [] if found["peak"] <= MAX_PEAK else [f"verify: {found['peak']:,} bytes of memory, limit {MAX_PEAK:,}"]
    # What was refused is not verified: its manifest has no rows of it.
    if cost.refused is None and [found["lines"]] != cost.lines:
        problems.append(f"verify counts {found['lines']}, the conversion {cost.lines}")
    return problems


def _read(file: HostileFile, count: int) -> dict[str, Any]:
    with tempfile.TemporaryFile(prefix="hybrid-router-hostile-") as stream:
        file.write(stream, count)
        size = stream.tell()

        def get_object(*, Range: str, **_: str) -> dict[str, Any]:  # noqa: N803
            start, end = map(int, Range.removeprefix("bytes=").split("-"))
            stream.seek(start)
            return {"Body": io.BytesIO(stream.read(end + 1 - start))}

        s3: Any = SimpleNamespace(get_object=get_object)
        reader, counted = InputReader(s3, ConvertSettings()), InputCount()
        version = ObjectVersion("input", file.key, "e", size, "2026-11-01T00:00:00Z", "v")
        reset_peak_bytes()
        for _ in reader.read(version, provenance=False, count=counted):
            pass
        lines = [counted.lines, counted.rows, counted.blank_lines, dict(counted.rejects)]
        return {"peak": peak_bytes(), "lines": lines}


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    print(json.dumps(_read(CORPUS[int(sys.argv[1])], int(sys.argv[2]))))
