"""Spark's event logs of a job run: Spark writes them to the run's folder, and they are stored when the run has ended.

Glue copies them to S3 every 30 seconds
(https://docs.aws.amazon.com/glue/latest/dg/monitor-spark-ui-jobs.html), with the rights of the run's role; how often
EMR Serverless does is not documented.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from botocore.exceptions import BotoCoreError, ClientError

if TYPE_CHECKING:
    from pathlib import Path

    from local.isolation import AccessKey
    from local.job_launch import JobLaunch, Store


def event_log_properties(launch: JobLaunch, folder: Path) -> dict[str, str]:
    """Spark's properties for a run with this folder; none if its event logs are not kept."""
    if not launch.event_logs:
        return {}
    logs = _folder_of_logs(folder)
    logs.mkdir()
    return {"spark.eventLog.enabled": "true", "spark.eventLog.dir": logs.as_uri()}


def store_event_logs(launch: JobLaunch, folder: Path, key: AccessKey, store: Store) -> None:
    """Store what Spark has written. A refusal is a line of the emulator's log: the run itself does not ask for it."""
    place, logs = urlsplit(launch.event_logs), _folder_of_logs(folder)
    try:
        for file in sorted(path for path in logs.rglob("*") if path.is_file() and path.suffix != ".crc"):
            store(key, file, place.netloc, f"{place.path.lstrip('/')}{file.relative_to(logs).as_posix()}")
    except (BotoCoreError, ClientError) as error:
        logging.getLogger(__name__).warning("Spark's event logs of run %s were not stored: %s", folder.name, error)


def _folder_of_logs(folder: Path) -> Path:
    return folder / "event-logs"
