"""Settings of forecasts and costs: ``price``."""

from __future__ import annotations

from dataclasses import dataclass

from lake.settings.checks import check_range


@dataclass(frozen=True, slots=True)
class PriceSettings:
    """Prices in US dollars, for forecasts and for what job runs have cost; the assumed speed, for forecasts."""

    dpu_hour: float = 0.44
    """Price of one DPU hour, standard execution class (AWS Glue pricing)."""
    dpu_hour_flex: float = 0.29
    """Price of one DPU hour, flex execution class (AWS Glue pricing)."""
    emr_vcpu_hour: float = 0.052624
    """Price of one vCPU hour of EMR Serverless: Linux, x86-64, us-east-1 (Amazon EMR pricing)."""
    emr_gb_hour: float = 0.0057785
    """Price of one hour of one GB of its memory (the same page)."""
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
        check_range("price.dpu_hour", self.dpu_hour, 0, 100)
        check_range("price.dpu_hour_flex", self.dpu_hour_flex, 0, 100)
        check_range("price.emr_vcpu_hour", self.emr_vcpu_hour, 0, 100)
        check_range("price.emr_gb_hour", self.emr_gb_hour, 0, 100)
        check_range("price.emr_speed_factor", self.emr_speed_factor, 0.1, 10)
        check_range("price.flex_wait_minutes", self.flex_wait_minutes, 0, 600)
        check_range("price.mb_per_second_per_core", self.mb_per_second_per_core, 0.1, 10_000)
        compressed = self.compressed_mb_per_second_per_core
        check_range("price.compressed_mb_per_second_per_core", compressed, 0.1, 10_000)
