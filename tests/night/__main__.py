"""``python -m tests.night``: 1, and everything is kept, if something is lost, doubled or not explained."""

import argparse
import os
import shutil
import sys
import time
from pathlib import Path

from tests.night.check import count_lines, explain_all, verify_all
from tests.night.cloud import running_night
from tests.night.day import run_day
from tests.night.files import MIN_DATASETS, make_day
from tests.night.nights import run_nights

FOLDER = Path("build/e2e-night")
FILES = 5000
MIN_FILES = 1000
"""The peak files of fewer do not make the stream spill."""


def main(argv: list[str]) -> int:
    """Run the day and the nights, and count; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.night")
    parser.add_argument("--files", type=int, default=FILES, help=f"number of files, at least {MIN_FILES}")
    parser.add_argument(
        "--datasets", type=int, default=MIN_DATASETS, help=f"number of datasets, at least {MIN_DATASETS}"
    )
    options = parser.parse_args(argv)
    files, datasets = options.files, options.datasets
    if files < MIN_FILES or datasets < MIN_DATASETS:
        parser.error(f"pass {MIN_FILES} files or more, in {MIN_DATASETS} datasets or more")
    folder = FOLDER.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    print(f"{files} files; load average {os.getloadavg()[0]:.1f}", flush=True)
    try:
        _play(folder, files, datasets)
    except Exception as error:
        print(f"FAILED: {error}", flush=True)
        print(f"kept in {folder}: objects in cloud/s3, cloud/logs, the ledger in ledger.jsonl", flush=True)
        if isinstance(error, AssertionError):
            return 1
        raise
    shutil.rmtree(folder / "cloud")
    return 0


def _play(folder: Path, files: int, datasets: int) -> None:
    started, day = time.monotonic(), make_day(files, datasets)

    def log(text: str) -> None:
        print(f"[{time.monotonic() - started:5.0f}s] {text}", flush=True)

    log("starting the cloud on this machine")
    with running_night(folder, day, log) as night:
        run_day(night, day)
        run_nights(night, day)
        log("counting every line")
        rows, rejected = count_lines(night, day)
        log(f"proving every dataset, with the tables of {len(day.tables)}")
        verify_all(night, day)
        log("explaining every file")
        converted = explain_all(night, day)
    lanes = ", ".join(f"{number:,} by the {lane} lane" for lane, number in sorted(converted.items()))
    log(f"{files:,} files converted: {lanes}")
    log(f"{rows:,} rows, {rejected:,} records in the quarantine: 0 lost, 0 doubled")
    log("every file explained")
    log(f"reports: {folder}/night-1.html, night-2.html, day.html")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
