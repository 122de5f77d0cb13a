"""The benchmark: its data, targets and tables."""

import json
import subprocess
import sys
from contextlib import nullcontext
from datetime import UTC, datetime

import pytest

import bench.__main__ as main_module
from bench.competitors import COMPETITORS
from bench.input_files import Recipe, generate
from bench.results import Results, check_lakes, check_targets
from bench.runner import Figure
from bench.shapes import SHAPES


def rows_of(text: bytes) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_has_its_size_and_members_and_the_same_bytes_each_time(name):
    # Given two equal recipes for half a megabyte, and one with another seed
    first, equal, reseeded = (Recipe(name, 2, 500_000, seed) for seed in (1, 1, 2))
    # When a file of each is generated
    text = generate(first, 0)
    # Then its row size, its members and their names are the declared ones
    rows = rows_of(text)
    assert len(text) / len(rows) == pytest.approx(SHAPES[name].row_bytes, rel=0.05)
    keys = set(SHAPES[name].keys)
    assert {len(row) for row in rows} == {20 if name == "sparse" else len(keys)}
    assert {key for row in rows for key in row} <= keys
    # And only the seed and the file's number make a difference
    assert text == generate(equal, 0)
    assert text not in (generate(reseeded, 0), generate(first, 1))


def figure(competitor: str, shape: str, speed: float, peak: int | None = None) -> Figure:
    return Figure(competitor, shape, 1.0, speed, speed / 2, 1, peak)


def figures(product_speed: float, other_speed: float) -> list[Figure]:
    shapes = ("flat", "nested", "random_order", "sparse", "wide", "tiny")
    speeds = {item.name: product_speed if item.name == "hybrid_router" else other_speed for item in COMPETITORS}
    speeds["convert"] = other_speed - 1
    return [figure(competitor, shape, speed, 10**8) for shape in shapes for competitor, speed in speeds.items()]


def test_targets_are_met_or_not_met():
    # Given a conversion that is two and a half times as fast as every competitor
    # When its figures are compared with the targets
    met = {(target.metric, target.target): target.met for target in check_targets(figures(500, 200))}

    # Then it misses the targets above that ratio
    assert met["flat: hybrid_router / spark_one_pass", ">= 2.0"]
    assert not met["flat: hybrid_router / spark_naive", ">= 4.0"]
    assert met["wide: hybrid_router / spark_one_pass", ">= 1.5"]
    assert met["flat: hybrid_router / hybrid_router_1_core", ">= 1.7"]
    assert not met["tiny: convert / polars", ">= 1.0"]
    assert met["flat: memory of a task", "<= 300 MB"]


@pytest.mark.parametrize(("peak", "ends"), [(299 * 10**6, None), (301 * 10**6, "gzip: memory of a task")])
def test_a_benchmark_that_misses_a_target_ends_with_an_error(monkeypatch, tmp_path, peak, ends):
    # Given a run whose figures meet every target, or miss one
    found = Results([figure("hybrid_router", "gzip", 1.0, peak)], {}, {"gzip": 10**8}, 1, datetime.now(UTC), 0.0, 2)
    monkeypatch.setattr(main_module, "run_benchmark", lambda *_: found)
    monkeypatch.setattr(sys, "argv", ["bench", "--output", str(tmp_path)])
    # When
    with pytest.raises(SystemExit) if ends else nullcontext() as ended:
        main_module.main()
    # Then
    assert (ended.value.code if ended else None) == (ends and f"missed: {ends}")


def test_a_lake_may_be_little_larger_and_slower_than_the_best_of_the_others():
    # Given a lake that is a twentieth larger than the smallest, and as fast as the faster of two
    lake = {
        "bytes": {"convert": 105, "duckdb": 100, "polars": 120, "spark": 110},
        "seconds": {"DuckDB": {"point": {"convert": 2.1, "duckdb": 2.0, "polars": 1.0, "spark": 3.0}}},
    }
    # Then only its size misses its target
    assert [target.met for target in check_lakes({"weblog": lake})] == [False, True]


@pytest.mark.long  # make bench
def test_a_quick_run_measures_every_competitor_and_writes_the_tables(tmp_path):
    # Given only the checkout
    # When the benchmark runs on small data
    options = ("--quick", "--shapes", "nested", "gzip", "weblog", "--output", str(tmp_path))
    command = [sys.executable, "-m", "bench", *options]
    done = subprocess.run(command, cwd=main_module.CHECKOUT, capture_output=True, text=True, timeout=900, check=False)

    # Then it succeeds, with a figure for each competitor and a table for people
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "results.json").read_text())
    assert {(item["competitor"], item["shape"]) for item in results["figures"]} == {
        (competitor.name, shape) for competitor in COMPETITORS for shape in ("nested", "gzip", "weblog")
    }
    assert set(results["lakes"]["weblog"]["seconds"]) == {"DuckDB", "Polars", "Spark"}
    assert all(item["mb_per_second"] > 0 and item["output_bytes"] > 0 for item in results["figures"])
    assert "| MB/s per core |" in done.stdout
