"""Settings of ``price``."""

from __future__ import annotations

from dataclasses import dataclass

from lake.settings.checks import check_range


@dataclass(frozen=True, slots=True)
class PriceSettings:
    """US dollars and speeds that forecasts are made of, until the ledger has measured its own."""

    dpu_hour: float = 0.44
    dpu_hour_flex: float = 0.29
    mb_per_second_per_core: float = 40.0
    """Forecast speed of a dataset that was never measured: NDJSON megabytes per second and vCPU."""

    def __post_init__(self) -> None:
        check_range("price.dpu_hour", self.dpu_hour, 0, 100)
        check_range("price.dpu_hour_flex", self.dpu_hour_flex, 0, 100)
        check_range("price.mb_per_second_per_core", self.mb_per_second_per_core, 0.1, 10_000)
