"""``python -m bench.iceberg``: processor time, memory and size of the metadata of Iceberg tables, with limits.

It leaves out requests to ledger, S3 and Glue.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from sizing.peak_memory import peak_bytes

# Set before fastavro is imported: the functions do not have its compiled files.
COMPILED = ("read", "write", "schema", "validation", "logical_readers")
sys.modules.update(dict.fromkeys(f"fastavro._{name}" for name in COMPILED))  # type: ignore[arg-type]

from router.iceberg.commit import Batch, commit_batch, manifests_of  # noqa: E402
from router.iceberg.metadata import DataFile, new_metadata  # noqa: E402

MINUTE = 60_000
DAY = 1440 * MINUTE
TABLE = "9c12d441-03fe-4693-9a96-a0705ddf69c1"
HOUR = "date = DATE '2026-11-21' AND hour = 5"
Figures = dict[str, float]


class Memory(dict[str, bytes]):
    """The files of a table's metadata."""

    read = dict.__getitem__
    write = dict.__setitem__


def commit_all(batches: int, manifests: int) -> Figures:
    """Commit a batch each minute to a table in memory that keeps the snapshots of a day."""
    metadata, files = new_metadata("s3://lake-of-the-stage/_tables/orders", TABLE, 0, 0), Memory()
    for number in range(batches):
        folder, now = "s3://lake-of-the-stage/orders/date=2026-11-20", number * MINUTE
        names = (f"20261120T09{number:06d}{item:06d}-g1-00000.parquet" for item in range(manifests))
        add = [DataFile(f"{folder}/hour={n % 24:02d}/{name}", 1, 1, (20777, n % 24)) for n, name in enumerate(names)]
        metadata = commit_batch(metadata, files, Batch(number + 1, add), now, now - DAY)
        if number % 1440 == 0:
            lists = [item["manifest-list"] for item in metadata["snapshots"]]
            current = [item["manifest_path"] for item in manifests_of(metadata, files)]
            files = Memory({name: files[name] for name in (*lists, *current)})
    return {"document KiB": len(json.dumps(metadata, separators=(",", ":"))) / 1024}


def plan_queries() -> Figures:
    """Count an hour of a table of 20,000 files in 1,000 batches with DuckDB and Spark; only its files exist."""
    # The other figures measure the memory of a process without these modules.
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    from local.duckdb_iceberg import duckdb_with_iceberg  # noqa: PLC0415
    from local.spark_iceberg import spark_with_iceberg  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "a.parquet"
        pq.write_table(pa.table({"a": ["1"]}), file)
        metadata, files = new_metadata(f"{folder}/table", TABLE, 0, 0), Memory()
        for number in range(1000):
            add = [DataFile(str(file), file.stat().st_size, 1, (20777 + number // 24, number % 24)) for _ in range(20)]
            metadata = commit_batch(metadata, files, Batch(number + 1, add, columns=["a"]), number * MINUTE, 0)
        document = folder / "table" / "metadata" / "v1.metadata.json"
        document.parent.mkdir(parents=True)
        for path, body in {**files, str(document): json.dumps(metadata).encode()}.items():
            Path(path).write_bytes(body)
        with duckdb_with_iceberg() as connection:
            started = time.process_time()
            query = f"SELECT count(*) FROM iceberg_scan('{document}') WHERE {HOUR}"  # noqa: S608
            assert connection.execute(query).fetchone() == (20,)
            seconds = time.process_time() - started
        with spark_with_iceberg(folder) as spark:
            spark(f"CALL local.system.register_table('lake.a', '{document}')")
            times = []
            for _ in range(5):
                started = time.perf_counter()
                assert spark(f"SELECT count(*) AS rows FROM local.lake.a WHERE {HOUR}") == [{"rows": 20}]  # noqa: S608
                times.append(time.perf_counter() - started)
    # Spark's first queries load its classes.
    return {"seconds in DuckDB": seconds, "seconds in Spark by the clock": min(times)}


FIGURES: dict[str, tuple[Callable[[], Figures], Figures]] = {
    "1,000 manifests in a batch": (lambda: commit_all(1, 1000), {"seconds": 2, "MiB": 64}),
    "20,000 manifests in 20 batches": (lambda: commit_all(20, 1000), {"seconds": 180, "MiB": 512}),
    "two manifests each minute, three days": (lambda: commit_all(3 * 1440, 2), {"document KiB": 1024, "MiB": 512}),
    "an hour of 20,000 files": (plan_queries, {"seconds in DuckDB": 1, "seconds in Spark by the clock": 1}),
}
"""Measurements, each in its own process, with limits; ``seconds`` is processor time."""


def measure(name: str) -> Figures:
    started = time.process_time()
    found = FIGURES[name][0]()
    return {"seconds": time.process_time() - started, "MiB": peak_bytes() / (1 << 20), **found}


def main() -> int:
    """Print each figure; return 1 if a limit is exceeded."""
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, Python {sys.version.split()[0]}")
    exceeded = False
    for name, (_, limits) in FIGURES.items():
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            found = pool.submit(measure, name).result()
        over = [figure for figure, limit in limits.items() if found[figure] > limit]
        exceeded |= bool(over)
        texts = ", ".join(f"{value:,.2f} {figure}" for figure, value in found.items())
        print(f"{name}: {texts}{'; EXCEEDED: ' + ', '.join(over) if over else ''}", flush=True)
    return int(exceeded)


if __name__ == "__main__":
    sys.exit(main())
