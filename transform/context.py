"""What a job run converts with: Spark, the deployment's services, its own id, the clock and the log."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from pyspark.sql import SparkSession

    from lake.ledger import Ledger
    from lake.resource_names import ResourceNames
    from lake.settings import Settings


@dataclass(frozen=True, slots=True)
class JobServices:
    """Clients and configuration of one deployment, as a job's driver uses them."""

    s3: S3Client
    """Thread-safe."""
    ledger: Ledger
    resources: ResourceNames
    settings: Settings
    region: str
    """The region of AWS of all resources."""


@dataclass(frozen=True, slots=True)
class ConversionContext:
    """Everything that the functions of one job run share."""

    spark: SparkSession
    services: JobServices
    run: str
    """Id of this job run; its leases carry it."""
    clock: Callable[[], datetime]
    """Returns aware datetimes."""
    run_is_terminal: Callable[[str], bool]
    """Whether the job run with this id has ended: what it held is taken over at once."""
    log: Callable[[str], None]
    """Takes one line of the run's log; called from several threads."""
    wait: Callable[[float], object] = time.sleep
    """Pauses for a number of seconds before something that did not succeed is tried again."""
    pool: str | None = None
    """Name of Spark's scheduler pool of its jobs; None: the default one. Pools that have work share the cores."""
