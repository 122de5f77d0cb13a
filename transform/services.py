"""What a conversion needs from outside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

    from lake.ledger import Ledger
    from lake.resource_names import ResourceNames
    from lake.settings import Settings


@dataclass(frozen=True, slots=True)
class Services:
    """Clients and configuration of one deployment."""

    s3: S3Client
    ledger: Ledger
    resources: ResourceNames
    settings: Settings
