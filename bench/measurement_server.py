"""A process that measures: requests are JSON lines on its input, answers on its output. What it says goes to stderr."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.input_files import Data
from bench.measurement import timed

if TYPE_CHECKING:
    from collections.abc import Callable

    Way = Callable[[Data, Path], int | None]


def spark_ways(cores: int, scratch: Path) -> dict[str, Way]:
    """Everything that runs in one Spark session of so many cores."""
    from bench.product_competitor import convert_by_spark  # noqa: PLC0415
    from bench.spark_competitors import obvious, one_pass, open_session  # noqa: PLC0415
    from lake.settings import ConvertSettings  # noqa: PLC0415

    session = open_session(cores, scratch)
    return {
        "ours": partial(convert_by_spark, session.sparkContext, ConvertSettings()),
        "one_pass": partial(one_pass, session),
        "obvious": partial(obvious, session),
    }


def engine_ways(threads: int) -> dict[str, Way]:
    """Engines that are one process with threads."""
    from bench.library_competitors import duckdb_way, polars_way  # noqa: PLC0415

    return {"duckdb": partial(duckdb_way, threads=threads), "polars": partial(polars_way, threads=threads)}


def answer(ways: dict[str, Way], request: dict[str, Any], scratch: Path) -> dict[str, Any]:
    """Measure what one request asks for."""
    data = Data(**{**request["data"], "names": tuple(request["data"]["names"]), "keys": tuple(request["data"]["keys"])})
    if request["way"] == "parts":
        from bench.conversion_steps import measure_parts  # noqa: PLC0415

        return dict(measure_parts(data.paths, scratch))
    return asdict(timed(ways[request["way"]], data, scratch / "output", check=request["check"]))


def main(kind: str, cores: int, scratch: Path) -> None:
    """Serve requests until the input ends."""
    # Spark's JVM and others write to the standard output: answers get a descriptor of their own.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    scratch.mkdir(parents=True, exist_ok=True)
    ways = spark_ways(cores, scratch) if kind == "spark" else engine_ways(cores)
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(ways, json.loads(line), scratch)), file=answers, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
