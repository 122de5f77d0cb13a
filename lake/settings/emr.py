"""Settings of the EMR Serverless application: ``emr``."""

from __future__ import annotations

from dataclasses import dataclass

from lake.settings.checks import check_range


@dataclass(frozen=True, slots=True)
class EmrSettings:
    """The application that runs the batch job where ``batch.engines`` names emr-serverless."""

    max_vcpus: int = 400
    """Maximum number of vCPUs of all its workers together. Job runs for which there is no room wait in its queue."""

    def __post_init__(self) -> None:
        check_range("emr.max_vcpus", self.max_vcpus, 4, 1_000_000)
