"""What a verification needs of a deployment; it only reads."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mypy_boto3_s3 import S3Client

    from lake.ledger import Ledger
    from lake.resource_names import ResourceNames

HOUR_FORMAT = "%Y-%m-%dT%H"


@dataclass(frozen=True, slots=True)
class Stack:
    """Clients, names and rules of one deployment."""

    s3: S3Client
    ledger: Ledger
    resources: ResourceNames
    max_line_bytes: int
    """The setting ``convert.max_line_bytes``."""
    prefixes: tuple[str, ...]
    """Prefixes in the input bucket under which all keys of the dataset are."""
    belongs: Callable[[str], bool]
    """Whether a key is a file of the dataset."""
    clock: Callable[[], datetime]
    """Returns the current time: aware, UTC."""


@dataclass(frozen=True, slots=True)
class Hours:
    """Hours of one dataset."""

    dataset: str
    first: str
    """``YYYY-MM-DDTHH``, UTC, inclusive."""
    last: str
    """``YYYY-MM-DDTHH``, UTC, inclusive."""

    def stamps(self) -> Iterator[str]:
        """All hours, in order."""
        hour, last = (datetime.strptime(text, HOUR_FORMAT) for text in (self.first, self.last))
        while hour <= last:
            yield hour.strftime(HOUR_FORMAT)
            hour += timedelta(hours=1)
