"""The program of a measuring process: reads requests, writes responses, both as lines of JSON; logs go to stderr."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from bench.input_files import InputFiles
from bench.measurement import Convert, measure_conversion


def spark_methods(cores: int, scratch: Path) -> dict[str, Convert]:
    """The competitors that run in one Spark session with the given cores."""
    from bench.product_competitor import convert_by_spark  # noqa: PLC0415
    from bench.spark_competitors import naive, one_pass, open_session  # noqa: PLC0415
    from lake.settings import ConvertSettings  # noqa: PLC0415

    session = open_session(cores, scratch)
    return {
        "hybrid_router": partial(convert_by_spark, session.sparkContext, ConvertSettings()),
        "one_pass": partial(one_pass, session),
        "naive": partial(naive, session),
    }


def library_methods(threads: int) -> dict[str, Convert]:
    """The competitors that run in this process with the given threads, or start as many processes."""
    from bench.library_competitors import convert_by_duckdb, convert_by_polars  # noqa: PLC0415
    from bench.offline_competitor import convert_offline  # noqa: PLC0415

    return {
        "convert": partial(convert_offline, cores=threads),
        "duckdb": partial(convert_by_duckdb, threads=threads),
        "polars": partial(convert_by_polars, threads=threads),
    }


def respond(methods: dict[str, Convert], request: dict[str, Any], scratch: Path) -> dict[str, Any]:
    """Measure what one request names: a competitor's method, or ``lakes``."""
    files = InputFiles.from_dict(request["files"])
    if request["method"] == "lakes":
        from bench.lake_queries import measure_lakes  # noqa: PLC0415

        return measure_lakes(files, scratch / "lakes", request["threads"], request["rounds"])
    return asdict(measure_conversion(methods[request["method"]], files, scratch / "output", check=request["check"]))


def main(kind: str, cores: int, scratch: Path) -> None:
    """Serve requests until the end of the input."""
    # Spark's JVM and libraries write to the standard output: responses get a descriptor of their own.
    responses = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    scratch.mkdir(parents=True, exist_ok=True)
    methods = spark_methods(cores, scratch) if kind == "spark" else library_methods(cores)
    print(json.dumps({"ready": True}), file=responses, flush=True)
    for line in sys.stdin:
        print(json.dumps(respond(methods, json.loads(line), scratch)), file=responses, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
