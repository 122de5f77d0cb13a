"""What became of the day: every row of every file once in the lake, every rejected line once in the quarantine.

DuckDB reads the Parquet files of the lake and the Iceberg tables, the quarantine is JSON: nothing of the product is
asked. ``verify`` proves the same afterwards, and every file is explained by what became of it.
"""

import base64
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from io import BytesIO
from typing import Any, cast

from cli.deployed_stack import DeployedStack
from cli.inspect.explain import explain_file
from lake.documents import to_json
from lake.layout import S3Uri
from tests.night.cloud import BUCKET, Night, NightFailedError
from tests.night.files import Day, DayFile, Part
from tests.oracle.lake_proof import differences


@dataclass(frozen=True, slots=True)
class Count:
    """Rows and rejected lines that were found, and the differences from what was sent, as sentences."""

    rows: int
    rejected: int
    differences: list[str]


def count_lines(night: Night, day: Day) -> Count:
    """Copy the lake to the folder of the night, and compare each line, also of the quarantine, with what was sent."""
    rows: Counter[str] = Counter()
    found: list[str] = []
    for dataset in day.datasets:
        own = night.scenario.lake_rows(dataset, night.folder / "lake")
        rows += own
        if dataset in day.tables:
            found += differences(f"the Iceberg table of {dataset}", own, night.scenario.table_rows(dataset))
    rejected = read_records(_quarantine(night))
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


def _quarantine(night: Night) -> Iterator[str]:
    s3, bucket = night.stack.s3, night.stack.resources.quarantine_bucket
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        for item in page.get("Contents", []):
            yield from s3.get_object(Bucket=bucket, Key=item["Key"])["Body"].read().decode().splitlines()


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
"""The lane that has converted the files of a part, and what the reason of their first lane has to say."""


def explain_all(night: Night, day: Day) -> Counter[str]:
    """Explain every file, and a sample of them by the command; the number of files by the lane that converted them.

    Raises ``NightFailedError``: the outcome, the counts, the lane or the reason of a file are not those of its lines.
    """
    # Each document is read once: nothing changes them any more.
    stack, now = replace(night.stack, s3=cast("Any", _RememberingS3(night.stack.s3))), datetime.now(UTC)
    wrong, lanes = [], Counter[str]()
    for file in day.files:
        version = _explained(stack, file, now)
        lanes[version["lane"] if version else "none"] += 1
        wrong += [f"{file.key}: {text}" for text in _wrong(file, version)]
    if wrong:
        raise NightFailedError("not explained by what became of it: " + "; ".join(wrong[:SAMPLE]))
    sample = day.files[:: max(len(day.files) // SAMPLE, 1)]
    for file in sample:
        night.command("explain", f"s3://{BUCKET}/{file.key}")
    return lanes


def _explained(stack: DeployedStack, file: DayFile, now: datetime) -> dict[str, Any] | None:
    """What ``explain`` says of the newest version of the file."""
    document = explain_file(stack, S3Uri(BUCKET, file.key), 3, now)
    versions: Sequence[dict[str, Any]] = to_json(document)["versions"]
    return versions[-1] if len(versions) == (2 if file.part == Part.DAMAGED else 1) else None


def _wrong(file: DayFile, version: dict[str, Any] | None) -> list[str]:
    """Why the explanation is not what became of the file."""
    if version is None:
        return ["the ledger has none or several arrivals of it"]
    source = (version["result"] or {}).get("source", {})
    lane, reason = LANES.get(file.part, (version["lane"], ""))
    counts = (source.get("rows"), sum(source.get("rejects", {}).values()))
    checks = {
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
