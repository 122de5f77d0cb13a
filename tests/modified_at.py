"""An S3 in which all objects were last modified at the same time, independent of the machine's clock."""

from datetime import datetime
from typing import Any


class ModifiedAt:
    """The client, whose listings of versions have this time."""

    def __init__(self, s3: Any, time: datetime) -> None:
        self._s3, self._time = s3, time

    def __getattr__(self, name: str) -> Any:
        return getattr(self._s3, name)

    def list_object_versions(self, **request: Any) -> dict[str, Any]:
        page = self._s3.list_object_versions(**request)
        return {**page, "Versions": [{**item, "LastModified": self._time} for item in page.get("Versions", [])]}
