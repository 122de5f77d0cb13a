"""Settings of forecasts and costs: ``price``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lake.engines import Engine
from lake.settings.checks import check_date, check_pattern, check_range
from lake.settings.emr import ARM

PRINTABLE = re.compile(r"[^\x00-\x1f\x7f]{1,200}")


@dataclass(frozen=True, slots=True)
class PriceSettings:
    """Prices in US dollars, for forecasts and for what job runs have cost; the assumed speed, for forecasts."""

    region: str = "us-east-1"
    """Region of the prices ..."""
    date: str = "2026-09-24"
    """... the day on which they were read, ``YYYY-MM-DD`` ..."""
    source: str = "AWS Price List, as others quote it"
    """... and where, for people. Set all three with prices of your own."""
    dpu_hour: float = 0.308
    """Price of one DPU hour, standard execution class and streaming jobs, Glue 6.0; before 6.0 it was 0.44."""
    dpu_hour_flex: float = 0.203
    """Price of one DPU hour, flex execution class, Glue 6.0; before 6.0 it was 0.29."""
    emr_vcpu_hour: float = 0.052624
    """Price of one vCPU hour of EMR Serverless, Linux, x86-64."""
    emr_gb_hour: float = 0.0057785
    """Price of one hour of one GB of its memory."""
    emr_arm_vcpu_hour: float = 0.042094
    """Price of one vCPU hour of EMR Serverless, Linux, Arm ..."""
    emr_arm_gb_hour: float = 0.004628
    """... and of one hour of one GB of its memory."""
    emr_speed_factor: float = 1.0
    """Speed of a vCPU of EMR Serverless, where 1 is that of Glue; assumed until a night has measured both."""
    flex_wait_minutes: float = 5.0
    """Time that a run of the class FLEX is assumed to wait for spare capacity."""
    mb_per_second_per_core: float = 40.0
    """Input megabytes per second and vCPU, for a dataset of plain files whose speed the ledger has not measured yet."""
    compressed_mb_per_second_per_core: float = 15.75
    """The same of compressed files, as stored: 126 MB/s of NDJSON measured (docs/performance.md, gzip), by 8 bytes of
    NDJSON for each stored byte (assumed)."""

    def __post_init__(self) -> None:
        for key in ("region", "source"):
            check_pattern(f"price.{key}", getattr(self, key), PRINTABLE, "a printable text")
        check_date("price.date", self.date)
        check_range("price.dpu_hour", self.dpu_hour, 0, 100)
        check_range("price.dpu_hour_flex", self.dpu_hour_flex, 0, 100)
        check_range("price.emr_vcpu_hour", self.emr_vcpu_hour, 0, 100)
        check_range("price.emr_gb_hour", self.emr_gb_hour, 0, 100)
        check_range("price.emr_arm_vcpu_hour", self.emr_arm_vcpu_hour, 0, 100)
        check_range("price.emr_arm_gb_hour", self.emr_arm_gb_hour, 0, 100)
        check_range("price.emr_speed_factor", self.emr_speed_factor, 0.1, 10)
        check_range("price.flex_wait_minutes", self.flex_wait_minutes, 0, 600)
        check_range("price.mb_per_second_per_core", self.mb_per_second_per_core, 0.1, 10_000)
        compressed = self.compressed_mb_per_second_per_core
        check_range("price.compressed_mb_per_second_per_core", compressed, 0.1, 10_000)

    def dpu_rate(self, engine: Engine) -> float:
        """Price of a DPU hour on an engine of Glue."""
        return self.dpu_hour_flex if engine is Engine.GLUE_FLEX else self.dpu_hour

    def emr_rates(self, architecture: str) -> tuple[float, float]:
        """Price of a vCPU hour and of a GB hour of EMR Serverless, for a value of ``emr.architecture``."""
        if architecture == ARM:
            return self.emr_arm_vcpu_hour, self.emr_arm_gb_hour
        return self.emr_vcpu_hour, self.emr_gb_hour

    @property
    def origin(self) -> str:
        """Where the prices come from; for people."""
        return f"{self.source}, {self.region}, {self.date}"
