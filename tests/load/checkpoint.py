"""What Spark remembers of the inbox: many pointers through the queries of the stream lane, without their conversion."""

from __future__ import annotations

import json
import os
import secrets
import statistics
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from unittest import mock

from lake.layout import INBOX, pointer_key
from streaming_job import stream
from tests.integration.conversion_world import ConversionWorld
from tests.spark_session import new_session

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from local.cloud import LocalCloud

PUT_THREADS = 16
MEBIBYTE = 1 << 20
MEASURED_BATCHES = 5
"""Every fifth micro-batch is measured: a collection of garbage takes a while."""

WITHOUT_HISTORY = {
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.ui.retainedExecutions": "10",
}
"""What Spark keeps for its pages is limited, but to far more than this load test fills, and hides what grows."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What is remembered at the begin of a micro-batch."""

    pointers: int
    """Read until now."""
    heap_mib: float
    """Of the driver's JVM, after a collection of garbage."""
    bytes: int
    """Of the checkpoint."""
    disk_files: int
    objects: int
    """In the control bucket, beside the inbox."""
    inbox: int
    """Pointers in the inbox."""

    def __str__(self) -> str:
        return (
            f"{self.pointers} pointers: heap {self.heap_mib:.0f} MiB, checkpoint {self.bytes / 1000:.0f} kB in "
            f"{self.disk_files} files and {self.objects} objects, {self.inbox} in the inbox"
        )


@dataclass(frozen=True, slots=True)
class CheckpointCosts:
    """What a number of pointers has cost, from the first one to the last one."""

    queries: int
    read_twice: int
    """Pointers that more than one micro-batch has read."""
    memories: tuple[Memory, ...]
    pauses: tuple[float, ...]
    """Seconds from the end of a conversion to the begin of the next one: deletion, listing and reading of pointers."""

    @property
    def max_bytes(self) -> int:
        """The largest checkpoint."""
        return max(memory.bytes for memory in self.memories)

    @property
    def heap_growth(self) -> float:
        """Largest heap of the second half divided by that of the first one."""
        first, second = _halves([memory.heap_mib for memory in self.memories])
        return max(second) / max(first)

    @property
    def slowdown(self) -> float:
        """Median pause of the second half divided by that of the first one."""
        first, second = _halves(self.pauses)
        return statistics.median(second) / statistics.median(first)

    def __str__(self) -> str:
        first, second = (statistics.median(half) for half in _halves(self.pauses))
        summary = (
            f"{self.queries} queries, {self.read_twice} pointers read twice; checkpoint at most "
            f"{self.max_bytes / 1000:.0f} kB; median between two micro-batches {first:.1f} s in the first half, "
            f"{second:.1f} s in the second"
        )
        pauses = " ".join(f"{pause:.1f}" for pause in self.pauses)
        return "\n".join([summary, *(f"  {memory}" for memory in self.memories), f"  each: {pauses}"])


def _halves(values: Iterable[float]) -> tuple[list[float], list[float]]:
    """Without the first value: it is that of a session that is still loading classes."""
    rest = list(values)[1:]
    return rest[: len(rest) // 2], rest[len(rest) // 2 :]


def checkpoint_load(cloud: LocalCloud, folder: Path, pointers: int) -> CheckpointCosts:
    """Let one run of the streaming job read this number of pointers, in full micro-batches."""
    os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1")
    world = ConversionWorld.create(cloud)
    world.configure("stream", trigger_seconds=1)
    world.services.ledger.stream.open_window("2999-01-01T00:00:00+00:00")
    spark = new_session(cloud, folder / "spark", WITHOUT_HISTORY)
    driver = folder / "driver"
    driver.mkdir()
    load = _Load(world, spark, pointers, driver)
    load.put_pointers()
    try:
        with (
            mock.patch.object(tempfile, "tempdir", str(driver)),
            mock.patch.object(stream, "convert_pointers", load.micro_batch),
        ):
            stream.InboxStream(world.context(spark, "run-1", lambda: datetime.now(UTC))).run()
    finally:
        spark.stop()
    return CheckpointCosts(
        1 + sum(line.startswith("a new query") for line in world.log_lines),
        sum(times > 1 for times in load.read.values()),
        tuple(load.memories),
        tuple(load.pauses),
    )


@dataclass(slots=True)
class _Load:
    """Stands in for the conversion: puts as many pointers as a micro-batch reads, and measures on the way."""

    world: ConversionWorld
    spark: SparkSession
    total: int
    driver_folder: Path
    """Where the driver has its temporary files."""
    put: int = 0
    read: Counter[str] = field(default_factory=Counter)
    memories: list[Memory] = field(default_factory=list)
    batches: int = 0
    ended: float = field(default_factory=time.monotonic)
    pauses: list[float] = field(default_factory=list)

    def micro_batch(self, _context: object, pointers: Iterable[str], *_: object, **__: object) -> list[Any]:
        self.pauses.append(time.monotonic() - self.ended)
        if self.batches % MEASURED_BATCHES == 0:
            self.memories.append(self._memory())
        self.batches += 1
        self.read.update(json.loads(pointer)["manifest"] for pointer in pointers)
        self.put_pointers()
        if len(self.read) == self.total:
            self.memories.append(self._memory())
            self.world.services.ledger.stream.request_stop(True)
        self.ended = time.monotonic()
        return []

    def put_pointers(self) -> None:
        """As many as a micro-batch reads, or what is left."""
        services = self.world.services

        def put(number: int) -> None:
            manifest = f"20260304T120000{number:020x}"
            services.s3.put_object(
                Bucket=services.resources.control_bucket,
                Key=pointer_key(manifest, secrets.token_hex(4), urgent=False),
                Body=json.dumps({"manifest": manifest}).encode(),
            )

        last = min(self.put + stream.MAX_POINTERS_PER_TRIGGER, self.total)
        with ThreadPoolExecutor(PUT_THREADS) as pool:
            list(pool.map(put, range(self.put, last)))
        self.put = last

    def _memory(self) -> Memory:
        java: Any = self.spark.sparkContext._jvm
        java.System.gc()
        runtime = java.Runtime.getRuntime()
        heap = (runtime.totalMemory() - runtime.freeMemory()) / MEBIBYTE
        keys = self.world.keys(self.world.services.resources.control_bucket)
        inbox = sum(key.startswith(INBOX) for key in keys)
        sizes = [path.stat().st_size for path in self.driver_folder.rglob("*") if path.is_file()]
        return Memory(sum(self.read.values()), heap, sum(sizes), len(sizes), len(keys) - inbox, inbox)
