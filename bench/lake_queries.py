"""Sizes and queries of the lakes that convert, DuckDB, Polars and Spark write from the same input.

DuckDB, Polars and Spark run five queries as the same SQL over the files of each lake. Each tool writes all columns as
text.
"""

from __future__ import annotations

import shutil
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ndjson_arrow import column_name

from bench.input_files import InputFiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
from bench import competitors

WRITERS = ("convert", "duckdb", "polars", "spark")
QUERIES = ("group by", "range", "point", "like", "distinct")
RANGE_PART = 50
"""The narrow range has one in this number of rows."""
Rows = list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class QueryKeys:
    group: tuple[str, str]
    number: str
    time: str
    text: tuple[str, str]
    """A key, and the text that the query searches for in its values."""
    distinct: str
    identifier: str


QUERY_KEYS = {
    "flat": QueryKeys(("event_type", "country"), "price", "occurred_at", ("comment", "kalo"), "user_id", "event_id"),
    "weblog": QueryKeys(("service", "status"), "duration_ms", "ts", ("message", "slow"), "user_id", "trace_id"),
    "webhook": QueryKeys(("type", "api_version"), "created", "sent_at", ("endpoint", "orders/3"), "account", "id"),
    "cloudtrail": QueryKeys(
        ("eventName", "awsRegion"),
        "recipientAccountId",
        "eventTime",
        ("userAgent", "boto"),
        "sourceIPAddress",
        "eventID",
    ),
    "clickstream": QueryKeys(("page", "device"), "duration", "seen_at", ("referrer", "search"), "visitor", "event_id"),
}


def measure_lakes(files: InputFiles, scratch: Path, threads: int, rounds: int) -> dict[str, Any]:
    """Write the four lakes below ``scratch``, query each in turn, and remove them.

    Returns a dict: ``ndjson_bytes`` of the input, ``bytes`` of each lake by its writer, and ``seconds``, medians of
    ``rounds``, by engine, query and writer.
    """
    spark = competitors.spark_session(threads, scratch)
    write: dict[str, competitors.Convert] = {
        "convert": competitors.convert,
        "duckdb": competitors.duckdb,
        "polars": competitors.polars,
        "spark": partial(competitors.spark_one_pass, dictionary=True),
    }
    lakes: dict[str, list[Path]] = {}
    for writer in WRITERS:
        output = scratch / writer
        output.mkdir(parents=True)
        write[writer](files, output, threads)
        lakes[writer] = [path for path in output.rglob("*.parquet") if path.is_file()]
    keys = QUERY_KEYS[files.shape]
    first, last, some_id = _constants(keys, lakes["duckdb"])
    seconds: dict[str, dict[str, dict[str, list[float]]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for number in range(rounds + 1):
        for engine, run in _engines(spark, threads):
            for position in range(len(QUERIES)):
                answers = []
                for writer in (*WRITERS[number % len(WRITERS) :], *WRITERS[: number % len(WRITERS)]):
                    sql = _queries(keys, column_name if writer == "convert" else str, first, last, some_id)[position]
                    started = time.perf_counter()
                    answers.append(run([str(path) for path in lakes[writer]], sql))
                    # The first round warms up caches and compilers.
                    if number:
                        seconds[engine][QUERIES[position]][writer].append(time.perf_counter() - started)
                if any(answer != answers[0] for answer in answers):
                    raise ValueError(f"{files.shape}, {engine}, {QUERIES[position]}: the lakes have different rows")
    sizes = {writer: sum(path.stat().st_size for path in paths) for writer, paths in lakes.items()}
    shutil.rmtree(scratch)
    return {
        "ndjson_bytes": files.bytes,
        "bytes": sizes,
        "seconds": {
            engine: {
                query: {writer: statistics.median(of_writer[writer]) for writer in WRITERS}
                for query, of_writer in of_query.items()
            }
            for engine, of_query in seconds.items()
        },
    }


def _queries(
    keys: QueryKeys, name: Callable[[str], str], first: str, last: str, some_id: str
) -> tuple[str, str, str, str, str]:
    group = ", ".join(name(key) for key in keys.group)
    number, when, identifier = name(keys.number), name(keys.time), name(keys.identifier)
    text, part = name(keys.text[0]), keys.text[1]
    return (
        f"SELECT {group}, count(*) AS n, round(sum(CAST({number} AS DOUBLE))) AS total FROM lake GROUP BY {group}",  # noqa: S608
        f"SELECT count({number}) AS n FROM lake WHERE {when} >= '{first}' AND {when} < '{last}'",  # noqa: S608
        f"SELECT * FROM lake WHERE {identifier} = '{some_id}'",  # noqa: S608
        f"SELECT count(*) AS n FROM lake WHERE {text} LIKE '%{part}%'",  # noqa: S608
        f"SELECT count(DISTINCT {name(keys.distinct)}) AS n FROM lake",  # noqa: S608
    )


def _constants(keys: QueryKeys, paths: list[Path]) -> tuple[str, str, str]:
    """Return the ends of a narrow range of the time, and a value of the identifier."""
    import polars as pl  # noqa: PLC0415

    frame = pl.scan_parquet(paths).select(keys.time, keys.identifier).sort(keys.time).collect()
    middle = frame.height // 2
    times = frame[keys.time]
    return times[middle], times[middle + frame.height // RANGE_PART], frame[keys.identifier][middle]


def _engines(spark: SparkSession, threads: int) -> Iterator[tuple[str, Callable[[list[str], str], Rows]]]:
    """Return for each engine a function that runs a query on a lake's files; the rows of the answer have no order."""
    import duckdb  # noqa: PLC0415
    import polars as pl  # noqa: PLC0415

    with duckdb.connect() as connection:
        connection.execute(f"SET threads = {threads}")

        def by_duckdb(paths: list[str], sql: str) -> Rows:
            connection.read_parquet(paths, hive_partitioning=False).create_view("lake", replace=True)
            return _without_order(connection.sql(sql).fetchall(), sql)

        yield "DuckDB", by_duckdb

    def by_polars(paths: list[str], sql: str) -> Rows:
        lake = pl.scan_parquet(paths, hive_partitioning=False)
        return _without_order(pl.SQLContext(lake=lake).execute(sql, eager=True).rows(), sql)

    yield "Polars", by_polars

    def by_spark(paths: list[str], sql: str) -> Rows:
        spark.read.parquet(*paths).createOrReplaceTempView("lake")
        return _without_order([tuple(row) for row in spark.sql(sql).collect()], sql)

    yield "Spark", by_spark


def _without_order(rows: Rows, sql: str) -> Rows:
    """Sort the rows; of whole rows return only the number, because convert's lake has other columns."""
    return [(len(rows),)] if sql.startswith("SELECT *") else sorted(rows, key=str)
