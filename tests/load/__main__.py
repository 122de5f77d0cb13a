"""``python -m tests.load [name ...]``: each load test prints its figures; the exit code is 1 if a limit is exceeded."""

import argparse
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from local.cloud import LocalCloud
from local.limits import Limits
from tests.chaos.runtime_patches import connect_to
from tests.load.lanes import stream_load, urgent_load
from tests.load.large_file import large_file_load
from tests.load.settle_night import LARGE_NIGHTS, measure_night

MAX_MEMORY_GROWTH = 1.2
"""Peak memory of the second half of a large file divided by that of the first half."""
MAX_SETTLE_SECONDS = 120
MAX_SETTLE_MIB = 512

OBJECT_BYTES = (64 << 20, 192 << 20)
"""Minimum and maximum size of every output object of a manifest that is larger than the maximum."""


def main(argv: list[str]) -> int:
    """Run the named load tests, or all; returns 1 if a limit is exceeded."""
    parser = argparse.ArgumentParser(prog="python -m tests.load")
    parser.add_argument("names", nargs="*", metavar="name", help=f"{', '.join(LOAD_TESTS)}; default: all of them")
    parser.add_argument("--stream-files", type=int, default=20_000)
    parser.add_argument("--stream-bytes", type=int, default=35_000)
    parser.add_argument("--stream-rate", type=float, default=56.0, help="files per second")
    parser.add_argument("--urgent-backlog", type=int, default=600, help="peak files of --urgent-backlog-bytes each")
    parser.add_argument("--urgent-files", type=int, default=60, help="one a second")
    parser.add_argument("--urgent-backlog-bytes", type=int, default=3_500_000)
    parser.add_argument("--large-bytes", type=int, default=4_000_000_000)
    options = parser.parse_args(argv)
    if unknown := set(options.names) - set(LOAD_TESTS):
        parser.error(f"unknown load tests: {', '.join(sorted(unknown))}; choose from {', '.join(LOAD_TESTS)}")
    with tempfile.TemporaryDirectory(prefix="load-") as folder, LocalCloud.start(Path(folder) / "cloud") as cloud:
        cloud.limit(Limits(index_lag_seconds=0))
        connect_to(cloud.environment)
        failed = [name for name in options.names or LOAD_TESTS if not LOAD_TESTS[name](options, cloud, Path(folder))]
    if failed:
        print(f"a limit is exceeded: {', '.join(failed)}")
    return 1 if failed else 0


def _stream(options: argparse.Namespace, cloud: LocalCloud, _: Path) -> bool:
    return stream_load(cloud, options.stream_files, options.stream_bytes, options.stream_rate)


def _urgent(options: argparse.Namespace, cloud: LocalCloud, _: Path) -> bool:
    return urgent_load(cloud, options.urgent_backlog, options.urgent_backlog_bytes, options.urgent_files, 1.0)


def _large(options: argparse.Namespace, _: LocalCloud, folder: Path) -> bool:
    conversion = large_file_load(folder, options.large_bytes)
    print(f"large: {conversion}", flush=True)
    flat = conversion.second_half_megabytes <= conversion.first_half_megabytes * MAX_MEMORY_GROWTH
    return flat and OBJECT_BYTES[0] <= conversion.min_object_bytes <= conversion.max_object_bytes <= OBJECT_BYTES[1]


def _settle(_: argparse.Namespace, __: LocalCloud, ___: Path) -> bool:
    # Each in a process of its own: the memory of the other load tests is not that of the function.
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
        measurements = list(pool.map(measure_night, LARGE_NIGHTS))
    for night, measurement in zip(LARGE_NIGHTS, measurements, strict=True):
        print(f"settle: {night}: {measurement}", flush=True)
    return all(
        item.seconds <= MAX_SETTLE_SECONDS and item.peak_mib <= MAX_SETTLE_MIB and item.verdict == "SUCCEEDED"
        for item in measurements
    )


LOAD_TESTS: dict[str, Callable[[argparse.Namespace, LocalCloud, Path], bool]] = {
    "stream": _stream,
    "urgent": _urgent,
    "large": _large,
    "settle": _settle,
}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
