"""Settings of the Iceberg tables: ``tables``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from lake.settings.declaration import Range, Unit


@dataclass(frozen=True, slots=True)
class TablesSettings:
    """Tables of datasets with ``table = "iceberg"``."""

    commit_seconds: Annotated[
        int,
        Range(10, 3600),
        Unit("seconds"),
        "Interval in which published files are brought into the tables: a shorter one makes more snapshots. Above a "
        "minute, whole minutes.",
    ] = 60
    keep_hours: Annotated[
        float,
        Range(0, 720),
        Unit("hours"),
        "Time for which the snapshots of a table can be read, and with them the rows that were replaced; a tag of "
        "yours keeps its snapshot for longer.",
    ] = 24
