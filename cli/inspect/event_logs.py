"""Spark's event logs of job runs in the control bucket: which there are, and a copy of them on this machine."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from lake.layout import SPARK_LOGS
from lake.s3_uri import list_objects

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

OF_EMR = re.compile(r"applications/[^/]+/jobs/[^/]+/(attempts/[^/]+/)?sparklogs/")
"""EMR Serverless stores what drivers and executors print next to the event logs of a job run."""
NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")
CONNECTIONS = 10
"""As many as boto3's client keeps."""


@dataclass(slots=True)
class EventLog:
    """The event log of one Spark application: a file, or a folder of files of which each continues the last."""

    name: str
    """Name of the file or folder, by which Spark recognises it."""
    keys: list[str] = field(default_factory=list)
    size: int = 0
    """Stored bytes."""
    changed_at: datetime | None = None


def newest_event_logs(s3: S3Client, control_bucket: str, limit: int) -> list[EventLog]:
    """At most ``limit`` event logs, the newest first; other objects below the prefix are left out."""
    logs: dict[str, EventLog] = {}
    for item in list_objects(s3, control_bucket, SPARK_LOGS):
        parts = _parts(item["Key"])
        if parts is None:
            continue
        log = logs.setdefault(parts[0], EventLog(parts[0]))
        log.keys.append(item["Key"])
        log.size += item["Size"]
        log.changed_at = max(log.changed_at or item["LastModified"], item["LastModified"])
    return sorted(logs.values(), key=attrgetter("changed_at"), reverse=True)[:limit]


def copy_event_logs(s3: S3Client, control_bucket: str, logs: list[EventLog], folder: Path) -> None:
    """Download event logs to ``folder``, as a history server expects them."""

    def copy(key: str) -> None:
        target = folder.joinpath(*_parts(key) or ())
        target.parent.mkdir(exist_ok=True)
        s3.download_file(control_bucket, key, str(target))

    with ThreadPoolExecutor(CONNECTIONS) as pool:
        list(pool.map(copy, [key for log in logs for key in log.keys]))


def _parts(key: str) -> tuple[str, ...] | None:
    """Name of a file of an event log below the folder of all, as one or two segments; None: it is something else."""
    path = OF_EMR.sub("", key.removeprefix(SPARK_LOGS), count=1)
    parts = tuple(path.split("/"))
    is_log = len(parts) <= 2 and all(NAME.fullmatch(part) for part in parts)
    return parts if is_log else None
