"""``make bench``: generate the input, measure all competitors, write the tables."""

import argparse
import json
import os
import shutil
import sys
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.input_files import Recipe, prepare
from bench.lake_queries import QUERY_KEYS, WRITERS
from bench.results import LAKES_MARKERS, MARKERS, Results, check_lakes, check_targets
from bench.runner import BenchmarkRunner, Figure
from bench.shapes import SHAPES
from scripts.markdown_page import replace_between

CHECKOUT = Path(__file__).resolve().parents[1]
STARTED = time.monotonic()
CORES = 2
FULL_RECIPES = (
    Recipe("flat", 12, 80_000_000),
    Recipe("nested", 12, 80_000_000),
    Recipe("weblog", 8, 40_000_000),
    Recipe("webhook", 4, 40_000_000),
    Recipe("cloudtrail", 4, 40_000_000),
    Recipe("clickstream", 4, 40_000_000),
    Recipe("random_order", 8, 24_000_000),
    Recipe("sparse", 8, 12_000_000),
    Recipe("wide", 8, 16_000_000),
    Recipe("tiny", 5000, 3500),
    Recipe("gzip", 8, 24_000_000),
)
LAKE_RECIPES = tuple(Recipe(shape, 4, 40_000_000) for shape in QUERY_KEYS)
"""Recipes whose sizes and queries are measured."""
DOCUMENT = CHECKOUT / "docs" / "performance.md"
CACHE = CHECKOUT / ".cache" / "bench"
OUTPUT = CHECKOUT / "build" / "bench"


def main() -> None:
    """The command line: results go to the output folder and to the standard output, progress to stderr."""
    parser = argparse.ArgumentParser(
        prog="bench", description="Measure the speed of the conversion and compare it with other tools."
    )
    parser.add_argument(
        "--quick", action="store_true", help="small inputs, a minute or two: shows that it works, not how fast it is"
    )
    parser.add_argument("--rounds", type=int, help="measurements per figure, which is their median (3; quick: 1)")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=tuple(SHAPES), help="only these shapes of data")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="folder for results.json and scratch")
    parser.add_argument("--document", action="store_true", help="write the tables into docs/performance.md")
    options = parser.parse_args()
    recipes, lakes = (
        [_quick(recipe) if options.quick else recipe for recipe in kind if recipe.shape in options.shapes]
        for kind in (FULL_RECIPES, LAKE_RECIPES)
    )
    rounds = options.rounds or (1 if options.quick else 3)
    results = run_benchmark(recipes, lakes, rounds, options.output)
    (options.output / "results.json").write_text(json.dumps(results.as_json(), indent=1) + "\n")
    text, lakes_text = results.as_markdown(), results.lakes_as_markdown()
    print(f"{text}\n\n{lakes_text}")
    if options.document:
        document = replace_between(DOCUMENT.read_text(), lakes_text, *LAKES_MARKERS)
        DOCUMENT.write_text(replace_between(document, text, *MARKERS))
    targets = [*check_targets(results.figures), *check_lakes(results.lakes)]
    missed = [target.metric for target in targets if not target.met]
    if missed and not options.quick:
        sys.exit(f"missed: {'; '.join(missed)}")


def _quick(recipe: Recipe) -> Recipe:
    return Recipe(recipe.shape, min(recipe.files, 40), min(recipe.file_bytes, 300_000))


def run_benchmark(recipes: list[Recipe], lake_recipes: list[Recipe], rounds: int, output: Path) -> Results:
    """Generate the input, then measure speed with ``recipes``, and sizes and queries with ``lake_recipes``.

    ``output`` holds the scratch folder meanwhile.
    """
    started, load = datetime.now(UTC), os.getloadavg()[0]
    figures: list[Figure] = []
    lakes: dict[str, dict[str, Any]] = {}
    inputs = []
    for recipe in recipes:
        inputs.append(prepare(recipe, CACHE, CORES))
        log(f"{recipe.shape}: {inputs[-1].bytes / 1e6:.0f} MB in {len(inputs[-1].names)} files")
    scratch = output / "scratch"
    shutil.rmtree(scratch, ignore_errors=True)
    with ExitStack() as stack:
        runner = BenchmarkRunner(scratch, stack, log)
        for files in inputs:
            figures += runner.measure_shape(files, rounds)
        for recipe in lake_recipes:
            lakes[recipe.shape] = runner.measure_lakes(prepare(recipe, CACHE, CORES), rounds)
            log(f"{recipe.shape}: lakes of {len(WRITERS)} writers")
    # An ending JVM removes its own files meanwhile.
    shutil.rmtree(scratch, ignore_errors=True)
    return Results(figures, lakes, {files.shape: files.bytes for files in inputs}, rounds, started, load, CORES)


def log(message: str) -> None:
    print(f"[bench {time.monotonic() - STARTED:4.0f} s] {message}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
