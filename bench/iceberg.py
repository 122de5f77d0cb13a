"""``python -m bench.iceberg``: processor time, memory and size of the metadata of Iceberg tables, with limits.

fastavro has no compiled files here, as in the function. The requests to ledger, S3 and Glue are not part of it.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import bench.pure_fastavro  # noqa: F401
from router.iceberg.commit import Batch, commit_batch, manifests_of
from router.iceberg.metadata import DataFile, Metadata, new_metadata
from sizing.peak_memory import peak_bytes

MIB, KIB = 1 << 20, 1 << 10
MINUTE = 60_000
DAY = 1440 * MINUTE
BATCHES = 3 * 1440
SPARK = "seconds in Spark by the clock, the fastest of 5"
HOUR = "date = DATE '2026-11-21' AND hour = 5"


class Memory:
    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def read(self, path: str) -> bytes:
        return self.files[path]

    def write(self, path: str, body: bytes) -> None:
        self.files[path] = body


def data_files(number: int, batch: int = 0) -> list[DataFile]:
    """Files of all hours of a day."""
    names = (f"20261120T09{batch:06d}{item:06d}-g1-00000.parquet" for item in range(number))
    return [
        DataFile(f"s3://lake-of-the-stage/orders/date=2026-11-20/hour={item % 24:02d}/{name}", 1, 1, (20777, item % 24))
        for item, name in enumerate(names)
    ]


def empty() -> Metadata:
    return new_metadata("s3://lake-of-the-stage/_tables/orders", "9c12d441-03fe-4693-9a96-a0705ddf69c1", 0, 0)


def commit(
    metadata: Metadata, files: Memory, number: int, add: int, remove: tuple[DataFile, ...] = (), keep: int = 0
) -> Metadata:
    batch = Batch(number, data_files(add, number), remove)
    return commit_batch(metadata, files, batch, number * MINUTE, keep)


def one_commit(manifests: int) -> dict[str, float]:
    commit(empty(), files := Memory(), 1, manifests)
    return {"metadata KiB": sum(map(len, files.files.values())) / KIB}


def catch_up() -> dict[str, float]:
    """20 batches of 1,000 manifests."""
    metadata, files = empty(), Memory()
    for number in range(20):
        metadata = commit(metadata, files, number + 1, 1000)
    return {}


def replacement() -> dict[str, float]:
    """100 files of 20,000 are replaced."""
    metadata = commit(empty(), files := Memory(), 1, 20_000)
    started = time.process_time()
    commit(metadata, files, 2, 100, tuple(data_files(100, 1)))
    return {"seconds of the replacement": time.process_time() - started}


def minutes() -> dict[str, float]:
    """A batch of two files each minute for three days; the document stops growing when the first day is over."""
    metadata, files = empty(), Memory()
    for number in range(BATCHES):
        metadata = commit(metadata, files, number + 1, 2, keep=number * MINUTE - DAY)
        if number % 1440 == 0:
            forget(metadata, files)
    size = len(json.dumps(metadata, separators=(",", ":")))
    return {"document KiB": size / KIB, "milliseconds of a batch": time.process_time() * 1000 / BATCHES}


def forget(metadata: Metadata, files: Memory) -> None:
    lists = [item["manifest-list"] for item in metadata["snapshots"]]
    current = [item["manifest_path"] for item in manifests_of(metadata, files)]
    files.files = {name: files.files[name] for name in (*lists, *current)}


def planning() -> dict[str, float]:
    """DuckDB and Spark count an hour of a table of 20,000 files in 1,000 batches; the files of the hour exist."""
    # The others measure the memory of a process without these.
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    from local.duckdb_iceberg import duckdb_with_iceberg  # noqa: PLC0415
    from local.spark_iceberg import spark_with_iceberg  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "a.parquet"
        pq.write_table(pa.table({"a": ["1"]}), file)
        metadata, files = new_metadata(f"{folder}/table", "9c12d441-03fe-4693-9a96-a0705ddf69c1", 0, 0), Disk()
        (folder / "table" / "metadata").mkdir(parents=True)
        for number in range(1000):
            add = [DataFile(str(file), file.stat().st_size, 1, (20777 + number // 24, number % 24)) for _ in range(20)]
            metadata = commit_batch(metadata, files, Batch(number + 1, add, columns=["a"]), number * MINUTE, 0)
        document = folder / "table" / "metadata" / "v1.metadata.json"
        document.write_text(json.dumps(metadata))
        with duckdb_with_iceberg() as connection:
            started = time.process_time()
            query = f"SELECT count(*) FROM iceberg_scan('{document}') WHERE {HOUR}"  # noqa: S608
            (rows,) = connection.execute(query).fetchone() or (0,)
            seconds = time.process_time() - started
        assert rows == 20, rows
        with spark_with_iceberg(folder) as spark:
            spark(f"CALL local.system.register_table('lake.a', '{document}')")
            query = f"SELECT count(*) AS rows FROM local.lake.a WHERE {HOUR}"  # noqa: S608
            times = []
            for _ in range(5):
                started = time.perf_counter()
                assert spark(query) == [{"rows": 20}]
                times.append(time.perf_counter() - started)
    # Spark's first queries load its classes.
    return {"seconds in DuckDB": seconds, SPARK: min(times)}


class Disk:
    def read(self, path: str) -> bytes:
        return Path(path).read_bytes()

    def write(self, path: str, body: bytes) -> None:
        Path(path).write_bytes(body)


@dataclass(frozen=True, slots=True)
class Figure:
    """A measurement in a process of its own, with its limits."""

    name: str
    call: Callable[[], dict[str, float]]
    max_seconds: float
    """Maximum processor time of the whole call."""
    max_mib: float = 512
    limits: tuple[tuple[str, float], ...] = ()
    """Maximum values of further figures."""


FIGURES = (
    Figure("1,000 manifests in a batch", lambda: one_commit(1000), 2, 64),
    Figure("20,000 manifests in 20 batches", catch_up, 180),
    Figure("20,000 manifests in one batch", lambda: one_commit(20_000), 30),
    Figure("100 of 20,000 files replaced", replacement, 30),
    Figure(
        "an hour of 20,000 files",
        planning,
        600,
        1024,
        (("seconds in DuckDB", 1.0), (SPARK, 1.0)),
    ),
    Figure("three days at 60 s, a day kept", minutes, 3600, 512, (("document KiB", 1024),)),
)


def measure(number: int) -> dict[str, float]:
    started = time.process_time()
    found = FIGURES[number].call()
    return {"seconds": time.process_time() - started, "MiB": peak_bytes() / MIB, **found}


def main() -> int:
    """Print each figure; returns 1 if a limit is exceeded."""
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, Python {sys.version.split()[0]}")
    exceeded = False
    for number, figure in enumerate(FIGURES):
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            found = pool.submit(measure, number).result()
        limits = {"seconds": figure.max_seconds, "MiB": figure.max_mib, **dict(figure.limits)}
        over = [name for name, limit in limits.items() if found[name] > limit]
        exceeded |= bool(over)
        texts = ", ".join(f"{value:,.2f} {name}" for name, value in found.items())
        print(f"{figure.name}: {texts}{'; EXCEEDED: ' + ', '.join(over) if over else ''}", flush=True)
    return int(exceeded)


if __name__ == "__main__":
    sys.exit(main())
