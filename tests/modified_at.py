"""An S3 whose objects were all last modified at one time, whatever the clock of the machine says."""

from datetime import datetime
from types import SimpleNamespace
from typing import Any


class ModifiedAt:
    """The client, whose listings of versions have this time."""

    def __init__(self, s3: Any, time: datetime) -> None:
        self._s3, self._time = s3, time

    def __getattr__(self, name: str) -> Any:
        return getattr(self._s3, name)

    def get_paginator(self, name: str) -> Any:
        pages = self._s3.get_paginator(name)
        return SimpleNamespace(paginate=lambda **request: map(self._at_the_time, pages.paginate(**request)))

    def _at_the_time(self, page: dict[str, Any]) -> dict[str, Any]:
        return {**page, "Versions": [{**item, "LastModified": self._time} for item in page.get("Versions", [])]}
