"""Settings of forecasts and costs: ``price``."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated

from lake.settings.declaration import Range, Unit

LISTED = "AWS Price List, as others quote it, us-east-1, 2026-09-24"
"""Region of the default prices, the day on which they were read, and where."""
OWN = "price.* of the settings"


@dataclass(frozen=True, slots=True)
class PriceSettings:
    """Prices, for forecasts and for what job runs have cost; the assumed speed, for forecasts."""

    dpu_hour: Annotated[
        float,
        Range(0, 100),
        Unit("US dollars"),
        "Price of one DPU hour of Glue 6.0, standard execution class and streaming jobs; before 6.0 it was 0.44.",
    ] = 0.308
    dpu_hour_flex: Annotated[
        float,
        Range(0, 100),
        Unit("US dollars"),
        "Price of one DPU hour of Glue 6.0, flex execution class; before 6.0 it was 0.29.",
    ] = 0.203
    emr_vcpu_hour: Annotated[
        float,
        Range(0, 100),
        Unit("US dollars"),
        "Price of one vCPU hour of EMR Serverless, Linux, x86-64; Arm costs 20 % less.",
    ] = 0.052624
    emr_gb_hour: Annotated[
        float,
        Range(0, 100),
        Unit("US dollars"),
        "Price of one hour of one GB of its memory on x86-64; Arm costs 20 % less.",
    ] = 0.0057785
    mb_per_second_per_core: Annotated[
        float,
        Range(0.1, 10_000),
        Unit("MB per second and vCPU"),
        "Speed that a forecast assumes for plain files of a dataset whose speed the ledger has not measured yet.",
    ] = 40.0
    compressed_mb_per_second_per_core: Annotated[
        float,
        Range(0.1, 10_000),
        Unit("MB per second and vCPU"),
        "Speed that a forecast assumes for compressed files, in bytes as stored: 126 MB/s of NDJSON measured "
        "(performance.md, gzip), by 8 bytes of NDJSON for each stored byte (assumed).",
    ] = 15.75

    @property
    def source(self) -> str:
        """The origin of the prices; for people."""
        prices = (item for item in fields(self) if item.name.endswith("_hour") or item.name.endswith("_flex"))
        return LISTED if all(getattr(self, item.name) == item.default for item in prices) else OWN
