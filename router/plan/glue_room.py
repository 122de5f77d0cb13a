"""The Glue quotas that a night may use now, after the stream's reserve and the runs of other nights."""

from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from lake.aws_types import JobRunTypeDef
from lake.engines.glue import dpus_of, live_runs
from lake.settings import Settings
from lake.texts import format_count
from router.services import Services
from router.telemetry import logger

DPU_QUOTA = "L-08F3B322"
"""Service Quotas, AWS Glue: "Max task DPUs per account"."""
RUN_QUOTA = "L-5E4153CA"
"""Service Quotas, AWS Glue: "Max concurrent job runs per account"."""
MAX_LISTED_RUNS = 200
"""Number of newest runs of the batch job that are listed, by one request; older runs have ended."""


@dataclass(frozen=True, slots=True)
class GlueRoom:
    """Room for a night's runs next to the streaming jobs, a scheduled verification and runs that are live now."""

    dpus: float
    runs: int
    source: str
    """Where the quotas come from, as a sentence for people."""


def read_glue_room(services: Services, service_quotas: Any, *, at_once: bool) -> GlueRoom:  # noqa: ANN401
    """The account's quotas, limited by those of the settings; only the settings if the account's cannot be read.

    ``service_quotas`` is a client of Service Quotas. ``at_once``: the night begins now, so live runs take room.
    """
    quota, source = services.settings.quota, "quota.* of the settings"
    dpus: float = quota.dpus
    runs = quota.job_runs
    try:
        account = [read_quota(service_quotas, "glue", code) for code in (DPU_QUOTA, RUN_QUOTA)]
        if account[0] is None or account[1] is None:
            source = f"{source}; Service Quotas lists no such quotas of Glue here"
        else:
            dpus, runs = min(dpus, account[0]), min(runs, int(account[1]))
            quotas = f"{account[0]:g} DPU, {format_count(int(account[1]), 'job run')}"
            source = f"the account ({quotas}) and {source}, whichever is smaller"
    except (BotoCoreError, ClientError) as error:
        logger.warning("quotas not read", error=str(error))
        source = f"{source}; the account's could not be read: {error}"
    alive: list[JobRunTypeDef] = []
    try:
        if at_once:
            alive = live_runs(services.glue, services.resources.batch_job, MAX_LISTED_RUNS)
    except (BotoCoreError, ClientError) as error:
        logger.warning("runs not listed", error=str(error))
        source = f"{source}; runs that are alive could not be counted: {error}"
    if alive:
        count = format_count(len(alive), "run of the batch job is", "runs of the batch job are")
        source = f"{source}; {count} alive"
    # A run may have more workers than batch.workers, because its plan chose the number.
    dpus = dpus - sum(map(dpus_of, alive))
    # The job's own maximum of concurrent runs, from the settings, holds in any account.
    runs = min(runs, services.settings.batch.max_runs + _other_runs(services.settings)) - len(alive)
    return _without_reserves(services.settings, dpus, runs, source)


def configured_room(settings: Settings) -> GlueRoom:
    """The room that the settings' quotas leave while nothing runs."""
    return _without_reserves(settings, settings.quota.dpus, settings.quota.job_runs, "quota.* of the settings")


def _without_reserves(settings: Settings, dpus: float, runs: int, source: str) -> GlueRoom:
    """Subtracts the reserves, but leaves room for one run: Glue refuses it while full, and the state machine retries.

    A live verification is counted twice, because the reserve stays free for the next one.
    """
    left = dpus - settings.stream_dpus - settings.max_verifications * settings.run_dpus
    return GlueRoom(max(left, settings.run_dpus), max(runs - _other_runs(settings), 1), source)


def _other_runs(settings: Settings) -> int:
    return len(settings.glue_shards) + settings.max_verifications


def read_quota(service_quotas: Any, service: str, code: str) -> float | None:  # noqa: ANN401
    """The account's value, otherwise AWS's default; None if the service has no such quota here.

    ``service_quotas`` is a client of Service Quotas.
    """
    for request in (service_quotas.get_service_quota, service_quotas.get_aws_default_service_quota):
        try:
            value: float = request(ServiceCode=service, QuotaCode=code)["Quota"]["Value"]
        except service_quotas.exceptions.NoSuchResourceException:
            continue
        return value
    return None
