"""``python -m bench.value_encodings``: whole tasks with plain pages and with delta-encoded lengths, in turn."""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bench.__main__ import CACHE
from bench.input_files import Recipe, prepare
from bench.product_competitor import convert_tasks, plan_tasks
from lake.settings import ConvertSettings

if TYPE_CHECKING:
    from bench.input_files import InputFiles

SHAPES = ("flat", "nested", "sparse", "wide")
ENCODINGS = ("plain", "delta_length")
FILES = 4
FILE_BYTES = 40_000_000
"""One task of 160 MB."""


def main() -> int:
    """Print, for each shape, MB of NDJSON per second of processor time and MB of output with both encodings."""
    parser = argparse.ArgumentParser(prog="bench.value_encodings", description=__doc__)
    parser.add_argument("--rounds", type=int, default=6, help="measurements of each encoding")
    options = parser.parse_args()
    for shape in SHAPES:
        files = prepare(Recipe(shape, FILES, FILE_BYTES), CACHE, 1)
        convert(files, "plain")
        seconds: dict[str, list[float]] = {encoding: [] for encoding in ENCODINGS}
        output = {}
        for number in range(options.rounds):
            # The order changes with each round.
            for encoding in ENCODINGS if number % 2 else reversed(ENCODINGS):
                taken, output[encoding] = convert(files, encoding)
                seconds[encoding].append(taken)
        megabytes = files.bytes / 1e6
        plain, delta = (megabytes / statistics.median(seconds[encoding]) for encoding in ENCODINGS)
        smaller = 1 - output["delta_length"] / output["plain"]
        sizes = " and ".join(f"{output[encoding] / 1e6:.1f} MB {encoding}" for encoding in ENCODINGS)
        sys.stdout.write(
            f"{shape}, {megabytes:.0f} MB: {plain:.0f} MB/s plain, {delta:.0f} MB/s delta_length, "
            f"{delta / plain:.2f} times as fast; output {sizes} ({smaller:.1%} smaller)\n"
        )
    return 0


def convert(files: InputFiles, encoding: str) -> tuple[float, int]:
    """Run the tasks of these files in this process: seconds of processor time of all threads, bytes of output."""
    settings = ConvertSettings(encoding=encoding)
    with tempfile.TemporaryDirectory() as output:
        started = time.process_time()
        list(convert_tasks(output, plan_tasks(files, settings)))
        taken = time.process_time() - started
        return taken, sum(path.stat().st_size for path in Path(output).rglob("*") if path.is_file())


if __name__ == "__main__":
    sys.exit(main())
