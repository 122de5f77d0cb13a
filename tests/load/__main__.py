"""``python -m tests.load [name ...]``: each load test prints its figures; the exit code is 1 if a limit is exceeded.

Both lanes under load, with real Glue runs on the local cloud; urgent files among a backlog of peak files; a large file.
"""

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from random import Random

from bench.input_files import Recipe, generate
from lake.ledger import CostShare, State
from lake.settings import BatchSettings, ConvertSettings, DatasetRule, PeakSettings, Settings, StreamSettings
from lake.settings.routing import DAYS
from local.cloud import LocalCloud
from local.limits import Limits
from router.estimate.other_costs import estimate_shares
from sizing.calibration import measure_task, tasks_of
from sizing.peak_memory import peak_bytes, reset_peak_bytes
from tests.chaos.glue_world import MAX_WAIT_SECONDS, OVER, GlueWorld
from tests.chaos.history import connect_to
from tests.chaos.world import clients

WINDOW_MESSAGES = 1000
"""Its maximum batch."""
PUT_THREADS = 8
BODIES = 32
STREAM_FILES, STREAM_BYTES, STREAM_FILES_PER_SECOND = 20_000, 35_000, 56.0
URGENT_EVERY, URGENT_FILES = 10, 60
BACKLOG_FILES, BACKLOG_BYTES = 600, 3_500_000
MAX_AGE_GROWTH = 1.25
"""Age of the oldest file in the last quarter of the load, divided by its age in the quarter before."""
MAX_AGE_SLACK_SECONDS = 10


def peak_settings() -> Settings:
    """The production defaults with peak hours all day; the streaming run ends soon after its last file."""
    return Settings(
        "load",
        datasets=(DatasetRule("orders", "orders/"),),
        peak=PeakSettings(hours=("00:00-24:00",), days=DAYS),
        stream=StreamSettings(idle_minutes=0.5),
        batch=BatchSettings(engines=("glue",)),
    )


def bodies(size: int) -> list[bytes]:
    """Different files of about ``size`` bytes of flat records, used in turn, so that no page of a column repeats."""
    return [generate(Recipe("flat", 1, size, seed), 0) for seed in range(BODIES)]


def stream_load(cloud: LocalCloud, _: Path) -> bool:
    """Put files at a steady rate while the stream lane converts them, with the queue's windows as on AWS.

    They are peak files, and one of ``URGENT_EVERY`` is urgent. Prints the seconds from put to published; False if the
    age of the oldest unconverted file has not stopped growing.
    """
    files, size = STREAM_FILES, STREAM_BYTES
    world = GlueWorld.on(cloud, clients(), Random(0), peak_settings())
    named = named_files(bodies(size), files, urgent_every=URGENT_EVERY)
    run = world.start(world.resources.stream_job, None)
    started = time.time()
    put_at, published, manifests = put_and_convert(world, run, named, STREAM_FILES_PER_SECOND)
    assert published.keys() == put_at.keys(), f"{len(put_at)} files were put, {len(published)} are published"
    ages = _oldest_ages(started, put_at, published)
    keeps_up = ages[-1] <= ages[-2] * MAX_AGE_GROWTH + MAX_AGE_SLACK_SECONDS
    peak, urgent = (
        percentiles([published[key] - put for key, put in put_at.items() if ("/urgent/" in key) == is_urgent])
        for is_urgent in (False, True)
    )
    share = CostShare("orders", 0, files * size, files, manifests)
    print(
        f"stream: {files} files at {files / (max(put_at.values()) - min(put_at.values())):.1f}/s: "
        f"put to published p50 {peak[0]:.0f} s, p95 {peak[1]:.0f} s, "
        f"of urgent ones p50 {urgent[0]:.0f} s, p95 {urgent[1]:.0f} s; "
        f"age of the oldest unconverted file by quarter {', '.join(f'{age:.0f}' for age in ages)} s; {manifests} "
        f"manifests, whose control plane is estimated at ${estimate_shares([share]).total * 1e6 / files:.2f} for a "
        f"million files; {'keeps up' if keeps_up else 'FALLS BEHIND'}",
        flush=True,
    )
    return keeps_up


def put_and_route(world: GlueWorld, files: int, size: int) -> int:
    """Put files that are not urgent, and route all of them; returns their bytes."""
    contents = bodies(size)
    for number in range(files):
        _, name, event = world.put(f"orders/{number}.ndjson", contents[number % BODIES])
        world.queue[name] = event
    while world.queue:
        world.route(list(world.queue)[:WINDOW_MESSAGES])
    return sum(len(contents[number % BODIES]) for number in range(files))


def put_and_convert(
    world: GlueWorld, run: str, files: Sequence[tuple[str, bytes]], rate: float, patience_seconds: float = 0
) -> tuple[dict[str, float], dict[str, float], int]:
    """Put files, route the events of each window, and wait for the end of the streaming run and of its backlog.

    Returns when each file was put and when each was published, in seconds since the epoch, and the number of manifests.
    """
    put_at: dict[str, float] = {}
    putting = threading.Thread(target=put_at_rate, args=(world, files, rate, put_at))
    putting.start()
    while putting.is_alive() or world.queue:
        putting.join(world.settings.input.event_window_seconds)
        window = list(world.queue)
        for first in range(0, len(window), WINDOW_MESSAGES):
            world.route(window[first : first + WINDOW_MESSAGES])
    world.wait("the backlog to be empty", lambda: not world.open_rows(), MAX_WAIT_SECONDS + patience_seconds)
    published, manifests = published_files(world)
    world.wait("the end of the streaming run", lambda: world.state(world.resources.stream_job, run) in OVER)
    return put_at, published, manifests


def named_files(contents: list[bytes], files: int, *, urgent_every: int) -> list[tuple[str, bytes]]:
    """Keys with a body each; one of ``urgent_every`` is urgent."""
    folders = ["urgent/" if number % urgent_every == 0 else "" for number in range(files)]
    return [(f"orders/{folder}{n}.ndjson", contents[n % BODIES]) for n, folder in enumerate(folders)]


def put_at_rate(world: GlueWorld, files: Sequence[tuple[str, bytes]], rate: float, put_at: dict[str, float]) -> None:
    """Put files, and their events into the queue; ``put_at`` gets the put time of each key, in seconds since the epoch.

    The name of a message ends with a hyphen and the number of its file.
    """
    start = time.monotonic()
    pause = threading.Event()

    def put(number: int) -> None:
        pause.wait(max(0.0, start + number / rate - time.monotonic()))
        key, body = files[number]
        put_at[key] = time.time()
        _, name, event = world.put(key, body)
        world.queue[f"{name}-{number}"] = {**event, "messageId": f"{name}-{number}"}

    with ThreadPoolExecutor(PUT_THREADS) as pool:
        list(pool.map(put, range(len(files))))


def published_files(world: GlueWorld) -> tuple[dict[str, float], int]:
    """Seconds since the epoch at which each published file was published, by key; and the number of manifests."""
    s3, bucket = world.clients.s3, world.resources.control_bucket
    published, manifests = dict[str, float](), 0
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix="results/"):
        for item in page.get("Contents", []):
            result = json.loads(s3.get_object(Bucket=bucket, Key=item["Key"])["Body"].read())
            keys = [source["uri"].removeprefix("s3://").partition("/")[2] for source in result["sources"]]
            published |= dict.fromkeys(keys, datetime.fromisoformat(result["published_at"]).timestamp())
            manifests += 1
    return published, manifests


def _oldest_ages(started: float, put_at: dict[str, float], published: dict[str, float]) -> list[float]:
    """Age of the oldest unconverted file in seconds, the median of each quarter of the load."""
    last = max(put_at.values())
    medians = []
    for quarter in range(4):
        moments = [started + (last - started) * (quarter + step / 10) / 4 for step in range(1, 11)]
        ages = [
            max((now - put_at[key] for key in put_at if put_at[key] <= now < published[key]), default=0.0)
            for now in moments
        ]
        medians.append(statistics.median(ages))
    return medians


def percentiles(seconds: list[float]) -> tuple[float, float]:
    """Median and 95th percentile."""
    return statistics.median(seconds), sorted(seconds)[int(len(seconds) * 0.95) - 1]


MIN_BYTES_PER_SECOND = 5e6
"""A slower stream is considered stopped."""


def urgent_load(cloud: LocalCloud, _: Path) -> bool:
    """Put an urgent file per second, a hundredth of the size of the others, while the stream converts a backlog.

    Prints their seconds from put to published; False if less than half of the files put before the end of the backlog
    were published before it.
    """
    world = GlueWorld.on(cloud, clients(), Random(0), peak_settings())
    small = bodies(BACKLOG_BYTES // 100)
    backlog_bytes = put_and_route(world, BACKLOG_FILES, BACKLOG_BYTES)
    run = world.start(world.resources.stream_job, None)
    world.wait("the begin of the backlog", lambda: any(row["state"] == State.RUNNING for row in world.open_rows()))
    urgent = named_files(small, URGENT_FILES, urgent_every=1)
    put_at, published = put_and_convert(world, run, urgent, 1.0, backlog_bytes / MIN_BYTES_PER_SECOND)[:2]
    end = max(at for key, at in published.items() if key not in put_at)
    among = [key for key, put in put_at.items() if put < end]
    before = sum(published[key] < end for key in among)
    p50, p95 = percentiles([published[key] - put for key, put in put_at.items()])
    print(
        f"urgent: {URGENT_FILES} files, {len(among)} of them while {backlog_bytes / 1e6:.0f} MB of peak files were "
        f"converted: put to published p50 {p50:.0f} s, p95 {p95:.0f} s; {before} were published before the last peak "
        "file",
        flush=True,
    )
    return 0 < len(among) <= 2 * before


FILE_BYTES = 4_000_000_000
BLOCK_BYTES = 8_000_000
MAX_MEMORY_GROWTH = 1.2
"""Peak memory of the second half of a large file divided by that of the first half."""
MIN_OBJECT_BYTES, MAX_OBJECT_BYTES = 64 << 20, 192 << 20
"""Limits of every output object of a manifest that is larger than the maximum."""


def large_file_load(_: LocalCloud, folder: Path) -> bool:
    """Convert a file of about ``FILE_BYTES``, read by ranges from a folder, one task after the other in this process.

    Prints sizes, memory above the level before the first task, and speed; False if memory grows, or an object's size is
    wrong.
    """
    path, output, blocks = folder / "large.ndjson", folder / "output", bodies(BLOCK_BYTES)
    with path.open("wb") as file:
        for number in range(FILE_BYTES // BLOCK_BYTES):
            file.write(blocks[number % len(blocks)])
    output.mkdir()
    tasks = tasks_of([path], ConvertSettings(), 1)
    reset_peak_bytes()
    base, started = peak_bytes(), time.monotonic()
    results, peaks = zip(*(measure_task(output, task) for task in tasks), strict=True)
    size, seconds = path.stat().st_size, time.monotonic() - started
    shutil.rmtree(output)
    path.unlink()
    rows = sum(split.rows for result in results for split in result.splits)
    objects = [item.size for result in results for item in result.objects]
    middle = max(1, len(peaks) // 2)
    first, second = ((max(half) - base) / 1e6 for half in (peaks[:middle], peaks[middle:] or peaks))
    print(
        f"large: {size:,} bytes, {rows:,} rows, {len(tasks)} tasks: {size / 1e6 / seconds:.0f} MB/s; "
        f"peak {first:.0f} MB in the first half, {second:.0f} MB in the second; "
        f"objects of {min(objects):,} to {max(objects):,} bytes",
        flush=True,
    )
    in_bounds = MIN_OBJECT_BYTES <= min(objects) <= max(objects) <= MAX_OBJECT_BYTES
    return in_bounds and second <= first * MAX_MEMORY_GROWTH


LOAD_TESTS: dict[str, Callable[[LocalCloud, Path], bool]] = {
    "stream": stream_load,
    "urgent": urgent_load,
    "large": large_file_load,
}


def main(argv: list[str]) -> int:
    """Run the named load tests, or all; returns 1 if a limit is exceeded."""
    parser = argparse.ArgumentParser(prog="python -m tests.load")
    parser.add_argument("names", nargs="*", metavar="name", help=f"{', '.join(LOAD_TESTS)}; default: all of them")
    options = parser.parse_args(argv)
    if unknown := set(options.names) - set(LOAD_TESTS):
        parser.error(f"unknown load tests: {', '.join(sorted(unknown))}; choose from {', '.join(LOAD_TESTS)}")
    with tempfile.TemporaryDirectory(prefix="load-") as folder, LocalCloud.start(Path(folder) / "cloud") as cloud:
        cloud.limit(Limits(index_lag_seconds=0))
        connect_to(cloud.environment)
        failed = [name for name in options.names or LOAD_TESTS if not LOAD_TESTS[name](cloud, Path(folder))]
    if failed:
        print(f"a limit is exceeded: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
