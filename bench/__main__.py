"""``make bench``: generate, measure, tell what was reached."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from bench.input_files import Recipe, prepare
from bench.markdown_tables import put_between
from bench.measuring_process import CHECKOUT
from bench.results import Results
from bench.runner import Figure, Rounds

STARTED = time.monotonic()
CORES = 2
FULL = (
    Recipe("flat", 12, 80_000_000),
    Recipe("nested", 12, 80_000_000),
    Recipe("random_order", 8, 24_000_000),
    Recipe("sparse", 8, 12_000_000),
    Recipe("wide", 8, 16_000_000),
    Recipe("tiny", 5000, 3500),
    Recipe("gzip", 8, 24_000_000),
)
QUICK = tuple(Recipe(recipe.shape, min(recipe.files, 40), min(recipe.file_bytes, 300_000)) for recipe in FULL)
DOCUMENT = CHECKOUT / "docs" / "performance.md"
CACHE = CHECKOUT / ".cache" / "bench"
OUTPUT = CHECKOUT / "build" / "bench"


def main() -> None:
    """Parse the arguments and do it."""
    parser = argparse.ArgumentParser(prog="bench", description="how fast the conversion is, beside other ways")
    parser.add_argument(
        "--quick", action="store_true", help="a minute on small data: shows that it works, not how fast"
    )
    parser.add_argument("--rounds", type=int, help="measurements of which the median is taken (3; quick: 1)")
    parser.add_argument(
        "--shapes",
        nargs="*",
        choices=[recipe.shape for recipe in FULL],
        help="only these",
    )
    parser.add_argument("--output", type=Path, default=OUTPUT, help="folder for results.json, results.md and scratch")
    parser.add_argument("--document", action="store_true", help="write the tables into docs/performance.md")
    options = parser.parse_args()
    recipes = [r for r in (QUICK if options.quick else FULL) if not options.shapes or r.shape in options.shapes]
    rounds = options.rounds or (1 if options.quick else 3)
    results = measure(recipes, rounds, options.output)
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "results.json").write_text(json.dumps(results.as_json(), indent=1) + "\n")
    text = results.as_text()
    (options.output / "results.md").write_text(text + "\n")
    print(text)
    if options.document:
        DOCUMENT.write_text(put_between(DOCUMENT.read_text(), text))


def measure(recipes: list[Recipe], rounds: int, output: Path) -> Results:
    """Make the data, then run all rounds."""
    started, load = datetime.now(UTC), os.getloadavg()[0]
    figures: list[Figure] = []
    parts: dict[str, dict[str, float]] = {}
    sizes: dict[str, int] = {}
    data = []
    for recipe in recipes:
        data.append(prepare(recipe, CACHE, CORES))
        say(f"{recipe.shape}: {data[-1].bytes / 1e6:.0f} MB in {len(data[-1].names)} files")
    with Rounds(output / "scratch", say) as measuring:
        for item in data:
            found, parts[item.shape] = measuring.shape(item, rounds)
            figures += found
            sizes[item.shape] = item.bytes
    shutil.rmtree(output / "scratch")
    return Results(figures, parts, sizes, rounds, started, load, CORES)


def say(words: str) -> None:
    """Progress."""
    print(f"[bench {time.monotonic() - STARTED:4.0f} s] {words}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
