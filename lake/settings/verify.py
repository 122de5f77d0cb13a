"""Settings of the scheduled verification: ``verify``."""

from __future__ import annotations

from dataclasses import dataclass

from lake.settings.checks import check_range
from lake.settings.schedule_expression import check_schedule


@dataclass(frozen=True, slots=True)
class VerifySettings:
    """A share of what was published, proven from its input files every day."""

    share: float = 0.0
    """Share of the manifests that are compared, chosen by their ids, 0 to 1; 0: nothing is scheduled."""
    start: str = "cron(0 13 * * ? *)"
    """Start of the verification, after the night: an EventBridge Scheduler expression, in ``time_zone``."""

    def __post_init__(self) -> None:
        check_range("verify.share", self.share, 0, 1)
        check_schedule("verify.start", self.start)
