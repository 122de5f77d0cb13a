"""``python -m tests.night``: ends with 1, and keeps everything, if a line is lost, duplicated or not explained.

Every row of every file is once in the lake, every rejected line once in the quarantine. DuckDB reads the Parquet files
and the Iceberg tables, the quarantine is JSON: no code of the product is used. ``verify`` proves the same afterwards,
and ``explain`` explains every file.
"""

import argparse
import json
import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any, cast

from cli.inspect.explain import explain_file
from lake.documents import to_json
from lake.layout import S3Uri
from tests.night.cloud import BUCKET, Night, NightFailedError, running_night
from tests.night.files import MIN_DATASETS, Day, DayFile, Part, make_day
from tests.night.nights import run_day, run_nights
from tests.oracle.lake_proof import differences


def count_lines(night: Night, day: Day) -> tuple[int, int]:
    """Copy the lake to the folder of the night, and compare each line, also of the quarantine, with the sent lines.

    Returns the numbers of rows and of rejected lines. Raises ``NightFailedError`` with each difference as a sentence.
    """
    rows: Counter[str] = Counter()
    found: list[str] = []
    for dataset in day.datasets:
        own = night.scenario.lake_rows(dataset, night.folder / "lake")
        rows += own
        if dataset in day.tables:
            found += differences(f"the Iceberg table of {dataset}", own, night.scenario.table_rows(dataset))
    # Repaired lines stay in the quarantine as they were rejected.
    expected = Counter(row for file in day.files for row in (*file.rows, *file.repaired))
    lines = [f"{file.key}: {line.decode()}" for file in day.files for line in file.rejected]
    lines += [f"{file.key}: the whole file" for file in day.of(Part.DAMAGED)]
    rejected = _quarantined(night)
    found += differences("the lake", expected, rows)
    found += differences("the quarantine", Counter(lines), rejected)
    if found:
        raise NightFailedError("\n".join(["lines differ from what was sent", *found]))
    return rows.total(), rejected.total()


def verify_all(night: Night, day: Day) -> None:
    """The product's own proof of every dataset."""
    now = datetime.now(UTC)
    hours = ("--from", f"{now - timedelta(days=1):%Y-%m-%dT%H}", "--to", f"{now:%Y-%m-%dT%H}")
    for dataset in day.datasets:
        night.command("verify", "--dataset", dataset, *hours)


def _quarantined(night: Night) -> Counter[str]:
    """The records of the quarantine: file and line."""
    s3, bucket = night.stack.s3, night.stack.resources.quarantine_bucket
    found: Counter[str] = Counter()
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        for item in page.get("Contents", []):
            body = s3.get_object(Bucket=bucket, Key=item["Key"])["Body"].read()
            for record in map(json.loads, body.decode().splitlines()):
                key = record["source"].removeprefix(f"s3://{BUCKET}/")
                what = "the whole file" if record["kind"] == "file" else record.get("line", record)
                found[f"{key}: {what}"] += record.get("count", 1)
    return found


SAMPLE = 50
"""Files that are explained by the command as well."""
LANES = {
    Part.SPILLED: ("batch", "stream.latency_goal_seconds"),
    Part.URGENT: ("stream", "urgent"),
    Part.WAITING: ("batch", "waits for the overnight run"),
    Part.DENIED: ("batch", "waits for the overnight run"),
    Part.PROMOTED: ("stream", "waits for the overnight run"),
    Part.MISSED: ("batch", "found by the sweep"),
}
"""The lane that converts the files of a part, and a text in the reason of their first lane."""


def explain_all(night: Night, day: Day) -> Counter[str]:
    """Explain every file, and a sample with the command; return the number of files by the lane that converted them.

    Raises ``NightFailedError`` if outcome, counts, lane or reason of a file do not match its lines.
    """
    # Each document is read once: nothing changes them after this point.
    stack, now = replace(night.stack, s3=cast("Any", _RememberingS3(night.stack.s3))), datetime.now(UTC)
    wrong, lanes = [], Counter[str]()
    for file in day.files:
        versions = to_json(explain_file(stack, S3Uri(BUCKET, file.key), 3, now))["versions"]
        lanes[versions[-1]["lane"]] += 1
        wrong += [f"{file.key}: {text}" for text in _wrong(file, versions)]
    if wrong:
        raise NightFailedError("not explained by what became of it: " + "; ".join(wrong[:SAMPLE]))
    for file in day.files[:: max(len(day.files) // SAMPLE, 1)]:
        night.command("explain", f"s3://{BUCKET}/{file.key}")
    return lanes


def _wrong(file: DayFile, versions: Sequence[dict[str, Any]]) -> list[str]:
    version = versions[-1]
    source = (version["result"] or {}).get("source", {})
    lane, reason = LANES.get(file.part, (version["lane"], ""))
    counts = (source.get("rows"), sum(source.get("rejects", {}).values()))
    checks = {
        "number of arrivals": (len(versions), 2 if file.part == Part.DAMAGED else 1),
        "outcome": (version["outcome"], "QUARANTINED_LINES" if file.rejected else "DONE"),
        "rows and rejected lines": (counts, (len(file.rows), len(file.rejected))),
        "lane": (version["lane"], lane),
        "reason": (reason in version["reason"], True),
    }
    return [f"its {name} is {found}, not {right}" for name, (found, right) in checks.items() if found != right]


class _RememberingS3:
    def __init__(self, s3: Any) -> None:
        self._s3 = s3
        self._body = cache(lambda *request: s3.get_object(**dict(request))["Body"].read())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._s3, name)

    def get_object(self, **request: str) -> dict[str, Any]:
        return {"Body": BytesIO(self._body(*request.items()))}


FOLDER = Path("build/e2e-night")
FILES = 5000
MIN_FILES = 1000
"""With fewer files the peak files do not make the stream spill."""


def main(argv: list[str]) -> int:
    """Run the day and the nights, and count; return the exit code."""
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
