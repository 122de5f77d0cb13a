"""Objects that Firehose has written about records that it could not deliver."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from cli.deployed_stack import DeployedStack
from lake.s3_uri import list_objects
from lake.settings.records import FAILED_RECORDS
from lake.time import iso_utc

MAX_LISTED = 20_000
"""Maximum number of objects that are listed."""
UNKNOWN = "unknown"
"""Name and kind of an object that is not where Firehose writes one."""


@dataclass(slots=True)
class FailedRecords:
    """The objects of one ``[[records]]`` and one kind of error."""

    prefix: str
    """Prefix of their keys, with a slash at its end."""
    name: str
    """``records.name``."""
    kind: str
    """The kind of error as Firehose names it."""
    dataset: str | None
    """None: the stage does not have these ``[[records]]`` any more."""
    oldest: datetime
    files: int = 0
    bytes: int = 0

    @property
    def since(self) -> str:
        """When the first of them was written; ISO 8601, UTC."""
        return iso_utc(self.oldest)


def list_failed_records(stack: DeployedStack, dataset: str | None) -> tuple[list[FailedRecords], bool]:
    """Failed records of one dataset or of all, and whether all objects were listed; none without ``[[records]]``.

    Raises botocore's errors.
    """
    if not stack.outputs.records:
        return [], True
    found: dict[str, FailedRecords] = {}
    objects = list(islice(_objects(stack), MAX_LISTED + 1))
    for item in objects[:MAX_LISTED]:
        folders = item["Key"].removeprefix(FAILED_RECORDS).split("/")[:-1][:2]
        prefix = FAILED_RECORDS + "".join(f"{folder}/" for folder in folders)
        name, kind = (*folders, UNKNOWN, UNKNOWN)[:2]
        written = item["LastModified"]
        group = found.setdefault(
            prefix, FailedRecords(prefix, name, kind, stack.outputs.records.get(name), oldest=written)
        )
        group.oldest = min(group.oldest, written)
        group.files += 1
        group.bytes += item["Size"]
    return [group for group in found.values() if dataset in (None, group.dataset)], len(objects) <= MAX_LISTED


def _objects(stack: DeployedStack) -> Iterator[Any]:
    found = list_objects(stack.s3, stack.resources.input_bucket, FAILED_RECORDS)
    return (item for item in found if not item["Key"].endswith("/"))
