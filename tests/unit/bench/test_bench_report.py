import json
import subprocess
import sys

import pytest

from bench.aws_costs import Service, cost
from bench.markdown_tables import BEGIN, END, parts_table, put_between
from bench.measuring_process import CHECKOUT
from bench.runner import WAYS, Figure
from bench.targets import goals
from lake.settings import PriceSettings


def figure(way: str, shape: str, speed: float, peak: int | None = None) -> Figure:
    return Figure(way, shape, 2, 1.0, (1.0,), speed, speed / 2, 1, 1, peak)


def figures(ours: float, others: float) -> list[Figure]:
    shapes = ("flat", "nested", "random_order", "sparse", "wide")
    speeds = {way.name: ours if way.name == "ours" else others for way in WAYS}
    return [figure(way, shape, speed, 10**8) for shape in shapes for way, speed in speeds.items()]


def test_goals_are_reached_or_not():
    # Given a conversion two and a half times as fast as everything else
    # When it is judged
    found = {(goal.what, goal.wanted): goal.reached for goal in goals(figures(500, 200))}

    # Then what asks for more is not reached
    assert found["flat: ours / one_pass", ">= 2.0"]
    assert not found["flat: ours / obvious", ">= 4.0"]
    assert found["wide: ours / one_pass", ">= 1.5"]
    assert found["flat: 2 cores / 1 core", ">= 1.7"]
    assert found["flat: memory of a task", "<= 300 MB"]


def test_a_task_above_its_memory_is_told():
    everything = [*figures(500, 200), figure("ours", "gzip", 1.0, 301 * 10**6)]
    told = [goal for goal in goals(everything) if goal.what == "gzip: memory of a task"]
    assert [goal.reached for goal in told] == [False]


def test_the_slower_bound_is_the_forecast():
    # Given cores at 36 cents an hour that convert 100 MB/s and read 40 MB/s
    bill = cost(10**12, 100, 40, Service("cores", 0.36))

    # Then a terabyte takes 10,000 core seconds by CPU and 25,000 by network, and every tenth worker is the driver
    assert bill.cpu == pytest.approx(1.0 * 10 / 9)
    assert bill.network == bill.forecast == pytest.approx(2.5 * 10 / 9)


def test_what_cannot_be_measured_alone_is_told_by_difference():
    # Given writing at 1000 and at 500 MB/s with compression, and parsing at 600 and at 200 MB/s with inflating
    flat = {"parse_columns": 600.0, "write_none": 1000.0, "write_zstd": 500.0}
    table = parts_table({"flat": flat, "gzip": {"inflate_parse_columns": 200.0}})

    # Then compression alone has 1000 MB/s, and inflating 300
    assert table[-2:] == ["| compress, zstd-1 (by difference) | 1000 |  |", "| inflate gzip (by difference) |  | 300 |"]


def test_figures_replace_what_stood_between_the_markers():
    assert put_between(f"a\n{BEGIN}\nold\n{END}\nz\n", "new") == f"a\n{BEGIN}\n\nnew\n\n{END}\nz\n"
    with pytest.raises(ValueError, match="lacks the lines"):
        put_between("nothing here", "new")


def test_the_document_has_a_place_for_the_figures():
    text = (CHECKOUT / "docs" / "performance.md").read_text()
    assert text.count(BEGIN) == text.count(END) == 1


def test_a_quick_run_measures_every_way_and_writes_the_tables(tmp_path):
    # Given nothing but the checkout
    # When the benchmark runs on small data
    command = [sys.executable, "-m", "bench", "--quick", "--shapes", "nested", "gzip", "--output", str(tmp_path)]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=300, check=False)

    # Then it ends well, with a figure for each way and a table for people
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "results.json").read_text())
    assert {(item["way"], item["shape"]) for item in results["figures"]} == {
        (way.name, shape) for way in WAYS for shape in ("nested", "gzip")
    }
    assert all(item["mb_per_second"] > 0 and item["output_bytes"] > 0 for item in results["figures"])
    assert "| MB/s per core |" in done.stdout
    assert f"{PriceSettings().mb_per_second_per_core:g} MB/s" in done.stdout
