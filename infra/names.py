"""Names of a stage's resources that must be known before they exist: a job's arguments name both jobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lake.settings import Settings


@dataclass(frozen=True, slots=True)
class Names:
    """Fixed names of one stage; two stages can live in one account and region."""

    stack: str
    stream_job: str
    batch_job: str
    overnight: str
    backfill: str
    stream_window: str
    database: str

    @classmethod
    def of(cls, settings: Settings) -> Names:
        """The names of the settings' stage."""
        base = f"hybrid-router-{settings.stage.replace('_', '-')}"
        return cls(
            stack=base,
            stream_job=f"{base}-stream",
            batch_job=f"{base}-batch",
            overnight=f"{base}-overnight",
            backfill=f"{base}-backfill",
            stream_window=f"{base}-stream-window",
            database=base.replace("-", "_"),
        )
