"""Settings of the EMR Serverless application: ``emr``."""

from __future__ import annotations

from dataclasses import dataclass

from lake.settings.checks import check_choice, check_range

X86, ARM = "x86_64", "arm64"
ARCHITECTURES = (X86, ARM)


@dataclass(frozen=True, slots=True)
class EmrSettings:
    """The application that runs the batch job where ``batch.engines`` names emr-serverless, and what it has in common
    with that of the streaming jobs.
    """

    max_vcpus: int = 400
    """Maximum number of vCPUs of all workers of the batch lane together. Job runs for which there is no room wait in
    the queue."""

    architecture: str = X86
    """Processor of the workers in both lanes: x86_64 or arm64, which is cheaper; each has a build of the libraries."""

    def __post_init__(self) -> None:
        check_choice("emr.architecture", self.architecture, ARCHITECTURES)
        check_range("emr.max_vcpus", self.max_vcpus, 4, 1_000_000)
