"""The speed and memory targets of the conversion, and whether a run of the benchmark met them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.competitors import MAIN_SHAPES, PRODUCT
from bench.runner import Figure

PRODUCT_ONE_CORE = "hybrid_router_1_core"
BASELINE = "spark_one_pass"
"""The one competitor of the difficult shapes."""
MIN_RATIOS = {"spark_one_pass": 2.0, "spark_naive": 4.0, "duckdb": 1.4}
"""hybrid-router's speed divided by the competitor's, on the main shapes."""
DIFFICULT_SHAPES = ("weblog", "random_order", "sparse", "wide")
MIN_RATIO_DIFFICULT = 1.5
SMALL_FILES = "tiny"
MIN_RATIO_SMALL_FILES = 1.0
MIN_SCALING = 1.7
"""Speed on two cores divided by speed on one."""
MAX_TASK_BYTES = 300 * 10**6
MAX_SIZE_RATIO = 1.03
MAX_QUERY_RATIO = 1.1


@dataclass(frozen=True, slots=True)
class Target:
    metric: str
    measured: str
    target: str
    met: bool


def check_targets(figures: Sequence[Figure]) -> list[Target]:
    by_name = {(figure.competitor, figure.shape): figure for figure in figures}
    measured = {figure.shape for figure in figures}
    targets = []
    for shape in (shape for shape in MAIN_SHAPES if shape in measured):
        product = by_name[(PRODUCT, shape)]
        for competitor, min_ratio in MIN_RATIOS.items():
            ratio = _ratio(product, by_name[(competitor, shape)])
            targets.append(_min_ratio(f"{shape}: {PRODUCT} / {competitor}", ratio, min_ratio))
        scaling = _ratio(product, by_name[(PRODUCT_ONE_CORE, shape)])
        targets.append(_min_ratio(f"{shape}: 2 cores / 1 core", scaling, MIN_SCALING))
    for shape in (shape for shape in DIFFICULT_SHAPES if shape in measured):
        ratio = _ratio(by_name[(PRODUCT, shape)], by_name[(BASELINE, shape)])
        targets.append(_min_ratio(f"{shape}: {PRODUCT} / {BASELINE}", ratio, MIN_RATIO_DIFFICULT))
    if SMALL_FILES in measured:
        ratio = _ratio(by_name[("convert", SMALL_FILES)], by_name[("polars", SMALL_FILES)])
        targets.append(_min_ratio(f"{SMALL_FILES}: convert / polars", ratio, MIN_RATIO_SMALL_FILES))
    targets += [
        _max_task_memory(figure.shape, figure.peak_bytes)
        for figure in figures
        if figure.competitor == PRODUCT and figure.peak_bytes is not None
    ]
    return targets


def check_lakes(lakes: Mapping[str, Mapping[str, Any]]) -> list[Target]:
    targets = []
    for shape, lake in lakes.items():
        smallest = min(size for writer, size in lake["bytes"].items() if writer != "convert")
        targets.append(
            _max_ratio(f"{shape}: size / smallest lake", lake["bytes"]["convert"] / smallest, MAX_SIZE_RATIO)
        )
        for engine, seconds in lake["seconds"].items():
            times = {writer: sum(of_query[writer] for of_query in seconds.values()) for writer in lake["bytes"]}
            metric = f"{shape}: five queries in {engine} / the quicker of DuckDB's and Spark's lakes"
            ratio = times["convert"] / min(times["duckdb"], times["spark"])
            targets.append(_max_ratio(metric, ratio, MAX_QUERY_RATIO))
    return targets


def _ratio(numerator: Figure, denominator: Figure) -> float:
    return numerator.mb_per_second / denominator.mb_per_second


def _min_ratio(metric: str, ratio: float, minimum: float) -> Target:
    return Target(metric, f"{ratio:.2f}", f">= {minimum}", ratio >= minimum)


def _max_ratio(metric: str, ratio: float, maximum: float) -> Target:
    return Target(metric, f"{ratio:.2f}", f"<= {maximum}", ratio <= maximum)


def _max_task_memory(shape: str, peak_bytes: int) -> Target:
    measured, maximum = (f"{size / 1e6:.0f} MB" for size in (peak_bytes, MAX_TASK_BYTES))
    return Target(f"{shape}: memory of a task", measured, f"<= {maximum}", peak_bytes <= MAX_TASK_BYTES)
