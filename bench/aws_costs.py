"""What a measured speed would cost on AWS. Every figure here is calculated; none was measured on AWS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lake.settings.workers import ARM, X86

if TYPE_CHECKING:
    from lake.settings import PriceSettings

TERABYTE = 10**12
MEGABYTE = 10**6
SECONDS_PER_HOUR = 3600
VCPUS_PER_DPU = 4
"""G.1X, 1 DPU: 4 vCPU, 16 GB (AWS Glue documentation, worker types)."""
DAY_BYTES = 338_000 * 4 * 10**9
"""The largest day that the product is designed for: 338,000 files of 4 GB."""
WORKERS = 10
"""One of them is the driver: it is billed and converts nothing."""

EMR_GB_PER_VCPU = 4


@dataclass(frozen=True, slots=True)
class ComputeService:
    """An AWS service that runs the conversion."""

    name: str
    vcpu_hour: float
    """US dollars for one vCPU and one hour, memory included."""


@dataclass(frozen=True, slots=True)
class Cost:
    """US dollars, calculated twice: as if only the CPU, and as if only the network limited the speed."""

    cpu: float
    network: float

    @property
    def forecast(self) -> float:
        """The larger of both, because a worker waits for the slower one."""
        return max(self.cpu, self.network)


def compute_services(price: PriceSettings) -> tuple[ComputeService, ...]:
    """Each at the prices of the settings."""
    return (
        ComputeService("Glue standard", price.dpu_hour / VCPUS_PER_DPU),
        ComputeService("Glue Flex", price.dpu_hour_flex / VCPUS_PER_DPU),
        ComputeService("EMR Serverless", _emr_vcpu_hour(price, X86)),
        ComputeService("EMR Serverless on Arm", _emr_vcpu_hour(price, ARM)),
    )


def _emr_vcpu_hour(price: PriceSettings, architecture: str) -> float:
    vcpu_hour, gb_hour = price.emr_rates(architecture)
    return vcpu_hour + EMR_GB_PER_VCPU * gb_hour


def calculate_cost(size: int, cpu_mb_per_second: float, network_mb_per_second: float, service: ComputeService) -> Cost:
    """The cost of ``size`` bytes of NDJSON; both speeds are in megabytes of 10^6 bytes per second and vCPU."""
    return Cost(
        _dollars(size, cpu_mb_per_second, service.vcpu_hour), _dollars(size, network_mb_per_second, service.vcpu_hour)
    )


def _dollars(size: int, mb_per_second: float, vcpu_hour: float) -> float:
    hours = size / (mb_per_second * MEGABYTE) / SECONDS_PER_HOUR
    return hours * vcpu_hour * WORKERS / (WORKERS - 1)
