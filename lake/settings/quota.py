"""Settings of the account's quotas: ``quota``."""

from __future__ import annotations

from dataclasses import dataclass

from lake.settings.checks import check_range


@dataclass(frozen=True, slots=True)
class QuotaSettings:
    """What this stage may use of the account's quotas of AWS Glue, which ``hybrid-router quotas`` shows."""

    dpus: int = 500
    """DPUs of all job runs together; those of the streaming jobs on Glue are kept free for urgent files."""
    job_runs: int = 50
    """Job runs at the same time; one of them is kept free for each streaming job on Glue."""

    def __post_init__(self) -> None:
        check_range("quota.dpus", self.dpus, 1, 1_000_000)
        check_range("quota.job_runs", self.job_runs, 2, 100_000)
