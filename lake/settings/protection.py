"""Settings that protect stored data from people: ``protection``."""

from __future__ import annotations

from dataclasses import dataclass

from lake.settings.checks import check_range


@dataclass(frozen=True, slots=True)
class ProtectionSettings:
    """What makes a wrong deletion recoverable or impossible. The protocol needs none of it."""

    versions: bool = False
    """Lake, quarantine and control keep what was overwritten or deleted. On in a stage called ``prod``."""
    version_days: int = 30
    """After this time S3 removes such a version."""
    deletion: bool = False
    """DynamoDB refuses to delete the ledger. On in a stage called ``prod``."""

    def __post_init__(self) -> None:
        check_range("protection.version_days", self.version_days, 1, 3650)
