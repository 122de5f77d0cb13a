"""What a conversion needs from outside, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

    from lake.ledger import Ledger
    from lake.resource_names import ResourceNames
    from lake.settings import Settings

HELD = "HELD"
UNKNOWN = "UNKNOWN"
TERMINAL = frozenset({"DONE", "FAILED", "SUPERSEDED", "ABANDONED"})


@dataclass(frozen=True, slots=True)
class Services:
    """Clients and configuration of one deployment."""

    s3: S3Client
    ledger: Ledger
    resources: ResourceNames
    settings: Settings


@dataclass(frozen=True, slots=True)
class ConversionOutcome:
    """What became of one manifest."""

    manifest: str
    state: str
    """A terminal state of the ledger; HELD: another run has it; UNKNOWN: the ledger has no such manifest."""
    rows: int = 0
    """Rows published by this call; 0 when it was done before."""
    rejects: int = 0
    reason: str | None = None
    successors: tuple[str, ...] = ()
    """Manifests of the batch lane that replaced it: whoever was to convert it converts them as well."""

    @property
    def terminal(self) -> bool:
        """Nothing is left to do for it."""
        return self.state in TERMINAL
