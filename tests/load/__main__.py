"""``python -m tests.load [part ...]``: each part prints its numbers; the exit code is 1 when a limit was passed."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from local.cloud import LocalCloud
from tests.chaos.pool_worker import connect_to
from tests.load.control import with_old_manifests
from tests.load.lanes import batch_load, stream_load
from tests.load.large import large_file
from tests.load.night import night

PARTS = ("stream", "old", "batch", "manifest", "backlog", "large")
TARGET_MEGABYTES = 196
"""Per second: 200,000 files of 3.5 MB an hour."""
CORES_PER_WORKER = 4
SLOWER = 1.25
"""A micro-batch beside old manifests may take so much longer: what two measurements of the same thing may differ by."""
MEMORY_GROWTH = 1.2
"""The second half of a large file may take so much more memory than the first."""

OBJECT_BYTES = (64 << 20, 192 << 20)
"""Every object of a manifest with that much lies between these."""


def main(argv: list[str]) -> int:
    """1 when a limit was passed."""
    parser = argparse.ArgumentParser(prog="python -m tests.load")
    parser.add_argument("parts", nargs="*", metavar="part", help=f"{', '.join(PARTS)}; without any: all of them")
    parser.add_argument("--stream-files", type=int, default=20_000)
    parser.add_argument("--stream-bytes", type=int, default=35_000)
    parser.add_argument("--stream-rate", type=float, default=56.0, help="files per second")
    parser.add_argument("--old-manifests", type=int, default=100_000)
    parser.add_argument("--batch-files", type=int, default=1_000)
    parser.add_argument("--batch-bytes", type=int, default=3_500_000)
    parser.add_argument("--manifest-files", type=int, default=500)
    parser.add_argument("--backlog", type=int, default=2_000, help="manifests")
    parser.add_argument("--large-bytes", type=int, default=4_000_000_000)
    options = parser.parse_args(argv)
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no part is called {', '.join(sorted(unknown))}: choose from {', '.join(PARTS)}")
    with tempfile.TemporaryDirectory(prefix="load-") as folder, LocalCloud.start(Path(folder) / "cloud") as cloud:
        connect_to(cloud.environment)
        passed = [_part(name, options, cloud, Path(folder)) for name in options.parts or PARTS]
    return 0 if all(passed) else 1


def _part(name: str, options: argparse.Namespace, cloud: LocalCloud, folder: Path) -> bool:
    if name == "stream":
        return _stream(options, cloud)
    if name == "old":
        return _old(options)
    if name == "batch":
        told = batch_load(cloud, options.batch_files, options.batch_bytes)
        workers = TARGET_MEGABYTES / told.megabytes_per_core / CORES_PER_WORKER
        print(
            f"batch: {told.files} files, {told.bytes / 1e6:.0f} MB: {told.megabytes_per_core:.1f} MB/s per core, "
            f"run {told.run_seconds:.0f} s; {TARGET_MEGABYTES} MB/s take {workers:.1f} G.1X workers",
            flush=True,
        )
        return True
    if name == "manifest":
        told = batch_load(cloud, options.manifest_files, options.batch_bytes // 100)
        print(
            f"manifest of {told.files} files: run {told.run_seconds:.0f} s, tasks {told.task_seconds:.1f} s", flush=True
        )
        return True
    if name == "backlog":
        told_night = night(cloud, folder, options.backlog)
        print(f"backlog: {told_night}: {told_night.manifests_per_second:.1f} manifests/s", flush=True)
        return told_night.status == "SUCCEEDED"
    large = large_file(folder, options.large_bytes)
    print(f"large: {large}", flush=True)
    flat = large.second_half_megabytes <= large.first_half_megabytes * MEMORY_GROWTH
    return flat and OBJECT_BYTES[0] <= large.smallest_object <= large.largest_object <= OBJECT_BYTES[1]


def _stream(options: argparse.Namespace, cloud: LocalCloud) -> bool:
    told = stream_load(cloud, options.stream_files, options.stream_bytes, options.stream_rate)
    oldest = ", ".join(f"{age:.0f}" for age in told.oldest)
    verdict = "keeps up" if told.keeps_up else "FALLS BEHIND"
    print(
        f"stream: {told.files} files at {told.rate:.1f}/s: "
        f"put to published p50 {told.p50:.0f} s, p95 {told.p95:.0f} s; "
        f"oldest age by quarter {oldest} s; {verdict}",
        flush=True,
    )
    return told.keeps_up


def _old(options: argparse.Namespace) -> bool:
    without, beside = with_old_manifests(options.old_manifests)
    print(f"old manifests: none: {without}; {options.old_manifests}: {beside}", flush=True)
    return beside.requests == without.requests and beside.micro_batch <= without.micro_batch * SLOWER


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
