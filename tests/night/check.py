"""The independent count: every row of every file once in the lake, every rejected line once in the quarantine.

DuckDB reads the Parquet files of the lake and the Iceberg tables, the quarantine is JSON: nothing of the product is
asked. ``verify`` proves the same afterwards.
"""

import base64
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.night.cloud import BUCKET, Night
from tests.night.files import Day, Part
from tests.oracle.lake_proof import differences


@dataclass(frozen=True, slots=True)
class Count:
    """Rows and rejected lines that were found, and the differences from what was sent, as sentences."""

    rows: int
    rejected: int
    differences: list[str]


def count_lines(night: Night, day: Day) -> Count:
    """Copy lake and quarantine to the folder of the night, and compare each line with what was sent."""
    rows: Counter[str] = Counter()
    found: list[str] = []
    for dataset in day.datasets:
        own = night.scenario.lake_rows(dataset, night.folder / "lake")
        rows += own
        if dataset in day.tables:
            found += differences(f"the Iceberg table of {dataset}", own, night.scenario.table_rows(dataset))
    rejected = read_records(_quarantine(night, night.folder / "quarantine"))
    found += differences("the lake", expected_rows(day), rows)
    found += differences("the quarantine", expected_rejected(day), rejected)
    return Count(rows.total(), rejected.total(), found)


def verify_all(night: Night, day: Day) -> None:
    """The product's own proof of every dataset."""
    now = datetime.now(UTC)
    hours = ("--from", f"{now - timedelta(days=1):%Y-%m-%dT%H}", "--to", f"{now:%Y-%m-%dT%H}")
    for dataset in day.datasets:
        night.command("verify", "--dataset", dataset, *hours)


def expected_rows(day: Day) -> Counter[str]:
    """The rows of all files, and those of the repaired lines."""
    return Counter(row for file in day.files for row in (*file.rows, *file.repaired))


def expected_rejected(day: Day) -> Counter[str]:
    """The rejected lines, which stay after their repair, and the damaged version of a file."""
    lines = [f"{file.key}: {line.decode()}" for file in day.files for line in file.rejected]
    return Counter([*lines, *(f"{file.key}: the whole file" for file in day.of(Part.DAMAGED))])


def read_records(records: Iterable[str]) -> Counter[str]:
    """The records of the quarantine: file and line."""
    found: Counter[str] = Counter()
    for text in records:
        record: dict[str, Any] = json.loads(text)
        key = record["source"].removeprefix(f"s3://{BUCKET}/")
        if record["kind"] == "file":
            found[f"{key}: the whole file"] += 1
        elif "line_base64" in record:
            found[f"{key}: {base64.b64decode(record['line_base64'])!r}"] += 1
        else:
            found[f"{key}: {record.get('line', record)}"] += record.get("count", 1)
    return found


def _quarantine(night: Night, folder: Path) -> list[str]:
    s3, bucket = night.stack.s3, night.stack.resources.quarantine_bucket
    lines = []
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        for item in page.get("Contents", []):
            path = folder / item["Key"]
            path.parent.mkdir(parents=True, exist_ok=True)
            s3.download_file(bucket, item["Key"], str(path))
            lines += path.read_text(encoding="utf-8").splitlines()
    return lines
