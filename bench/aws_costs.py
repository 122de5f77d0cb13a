"""What a measured speed costs on AWS. Everything here is calculated; no AWS run stands behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lake.settings import PriceSettings

TERABYTE = 10**12
MEGABYTE = 10**6
SECONDS_PER_HOUR = 3600
VCPUS_PER_DPU = 4
"""G.1X, 1 DPU: 4 vCPU, 16 GB (AWS Glue documentation, worker types)."""
DAY_BYTES = 338_000 * 4 * 10**9
"""The largest day the system is made for."""
WORKERS = 10
"""One of them is the driver: it is paid for and converts nothing."""

EMR_VCPU_HOUR = 0.052624
EMR_GB_HOUR = 0.0057785
"""US dollars, Linux x86, us-east-1: aws.amazon.com/emr/pricing, EMR Serverless; to be checked before it is quoted."""
EMR_GB_PER_VCPU = 4


@dataclass(frozen=True, slots=True)
class Service:
    """A way to buy cores."""

    name: str
    vcpu_hour: float
    """US dollars."""


@dataclass(frozen=True, slots=True)
class Cost:
    """US dollars by the bound that holds."""

    cpu: float
    network: float

    @property
    def forecast(self) -> float:
        """The dearer of both: the machine waits for the slower one."""
        return max(self.cpu, self.network)


def services(price: PriceSettings) -> tuple[Service, ...]:
    """Glue by the project's own price settings, EMR Serverless by the constants above."""
    return (
        Service("Glue standard", price.dpu_hour / VCPUS_PER_DPU),
        Service("Glue Flex", price.dpu_hour_flex / VCPUS_PER_DPU),
        Service("EMR Serverless", EMR_VCPU_HOUR + EMR_GB_PER_VCPU * EMR_GB_HOUR),
    )


def cost(size: int, cpu_mb_per_second: float, network_mb_per_second: float, service: Service) -> Cost:
    """Of ``size`` bytes of NDJSON, at so many megabytes per second and vCPU by CPU and by network."""
    return Cost(
        _dollars(size, cpu_mb_per_second, service.vcpu_hour), _dollars(size, network_mb_per_second, service.vcpu_hour)
    )


def _dollars(size: int, mb_per_second: float, vcpu_hour: float) -> float:
    return size / (mb_per_second * MEGABYTE) / SECONDS_PER_HOUR * vcpu_hour * WORKERS / (WORKERS - 1)
