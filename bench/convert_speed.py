"""``python -m bench.convert_speed``: ``hybrid-router convert`` beside DuckDB and Polars, in turn."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from bench.__main__ import CACHE, CORES, FULL_RECIPES
from bench.competitors import COMPETITORS, Competitor
from bench.figure import Figure
from bench.input_files import prepare
from bench.runner import measure_warm, start_process

COMMAND = Competitor("hybrid-router convert", "library", "convert", CORES, "with the start of its processes")
LIBRARIES = tuple(item for item in COMPETITORS if item.kind == "library")


def main() -> int:
    """Print MB of NDJSON a second of each tool for each shape, and how many times as fast the command is."""
    parser = argparse.ArgumentParser(prog="bench.convert_speed", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each tool")
    rounds = parser.parse_args().rounds
    tools = (COMMAND, *LIBRARIES)
    lines = [
        f"| MB/s on {CORES} cores | {' | '.join(tool.name for tool in tools)} | "
        f"{' | '.join(f'times {tool.name}' for tool in LIBRARIES)} |",
        f"|---|{'---:|' * (len(tools) + len(LIBRARIES))}",
    ]
    with tempfile.TemporaryDirectory() as scratch:
        for recipe in FULL_RECIPES:
            files = prepare(recipe, CACHE, CORES)
            measured: dict[str, list[dict[str, object]]] = {tool.name: [] for tool in tools}
            for number in range(rounds):
                # The order changes with each round.
                for tool in (*tools[number % len(tools) :], *tools[: number % len(tools)]):
                    for path in files.paths:
                        path.read_bytes()
                    with start_process(tool.kind, tool.cores, Path(scratch, tool.method)) as process:
                        measured[tool.name].append(measure_warm(process, tool, files))
            command, *libraries = (Figure.of(tool, files, measured[tool.name]).mb_per_second for tool in tools)
            cells = [f"{speed:.0f}" for speed in (command, *libraries)]
            cells += [f"{command / speed:.2f}" for speed in libraries]
            lines.append(f"| {recipe.shape}, {files.bytes / 1e6:.0f} MB | {' | '.join(cells)} |")
            sys.stderr.write(f"{lines[-1]}\n")
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
