"""All settings of one stage. A key's docstring is its documentation; defaults are those of production."""

from __future__ import annotations

from dataclasses import dataclass, field

from lake.errors import InvalidSettingsError
from lake.settings.alarms import AlarmSettings
from lake.settings.checks import STAGE_NAME, TAG, check_pattern, check_range, check_time_zone
from lake.settings.conversion import ConvertSettings
from lake.settings.emr import EmrSettings
from lake.settings.encryption import EncryptionSettings
from lake.settings.lanes import BatchSettings, StreamSettings
from lake.settings.ledger import LedgerSettings, check_keep_days
from lake.settings.price import PriceSettings
from lake.settings.protection import ProtectionSettings
from lake.settings.quota import QuotaSettings
from lake.settings.records import RecordsRule, check_records
from lake.settings.routing import (
    FOLDER,
    DatasetRule,
    InputSettings,
    PeakSettings,
    UrgentSettings,
    check_order,
    check_policy_room,
)
from lake.settings.schedule import ScheduleSettings
from lake.settings.spark import SparkSettings
from lake.settings.sweep import SweepSettings
from lake.settings.verify import VerifySettings
from lake.settings.workers import DPUS, WORKERS, check_emr_memory, check_worker
from lake.shards import Shards


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of one stage; raises ``InvalidSettingsError`` for values that do not fit together."""

    stage: str
    """Name of the deployment, part of every resource name: 1 to 43 lower case letters, digits and underscores."""
    time_zone: str = "UTC"
    """IANA time zone name of peak hours and schedules."""
    max_datasets: int = 1000
    """Maximum number of datasets that keys create by rules named ``{folder}``; files of further ones are recorded as
    IGNORED, with an alarm, and taken when it is raised. Datasets that a rule names do not count."""
    tags: tuple[str, ...] = ()
    """Tags of every resource of the stack, each as ``name=value``, besides ``hybrid-router:stage``."""
    input: InputSettings = field(default_factory=InputSettings)
    datasets: tuple[DatasetRule, ...] = (DatasetRule(FOLDER),)
    """Rules in order of priority."""
    records: tuple[RecordsRule, ...] = ()
    """Streams and topics whose records become files of the input bucket."""
    urgent: UrgentSettings = field(default_factory=UrgentSettings)
    peak: PeakSettings = field(default_factory=PeakSettings)
    stream: StreamSettings = field(default_factory=StreamSettings)
    batch: BatchSettings = field(default_factory=BatchSettings)
    emr: EmrSettings = field(default_factory=EmrSettings)
    convert: ConvertSettings = field(default_factory=ConvertSettings)
    schedule: ScheduleSettings = field(default_factory=ScheduleSettings)
    spark: SparkSettings = field(default_factory=SparkSettings)
    price: PriceSettings = field(default_factory=PriceSettings)
    quota: QuotaSettings = field(default_factory=QuotaSettings)
    sweep: SweepSettings = field(default_factory=SweepSettings)
    ledger: LedgerSettings = field(default_factory=LedgerSettings)
    alarms: AlarmSettings = field(default_factory=AlarmSettings)
    verify: VerifySettings = field(default_factory=VerifySettings)
    protection: ProtectionSettings = field(default_factory=ProtectionSettings)
    encryption: EncryptionSettings = field(default_factory=EncryptionSettings)

    def __post_init__(self) -> None:
        check_pattern("stage", self.stage, STAGE_NAME, "1 to 43 lower case letters, digits and underscores")
        check_time_zone("time_zone", self.time_zone)
        check_range("max_datasets", self.max_datasets, 1, 100_000)
        stream, row_group_bytes = self.stream, self.convert.row_group_bytes
        if stream.on_emr:
            vcpus, gigabytes = stream.emr_executor_vcpus, stream.emr_executor_gb
            check_emr_memory("stream.emr_executor_gb", vcpus, gigabytes, row_group_bytes)
        else:
            check_worker("stream.worker_type", stream.worker_type, row_group_bytes)
        check_worker("batch.worker_type", self.batch.worker_type, row_group_bytes)
        check_keep_days("ledger.keep_days", self.ledger.keep_days, self.sweep)
        check_keep_days("input.keep_days", self.input.keep_days, self.sweep)
        for tag in self.tags:
            check_pattern("tags", tag, TAG, "name=value with characters of AWS tags, such as team=data")
        if self.convert.max_core_minutes > self.batch.run_timeout_minutes / 2:
            expected = f"expected at most half of batch.run_timeout_minutes ({self.batch.run_timeout_minutes})"
            raise InvalidSettingsError("convert.max_core_minutes", self.convert.max_core_minutes, expected)
        run_vcpus = self.batch.workers * WORKERS[self.batch.worker_type]
        if self.batch.uses_emr and self.emr.max_vcpus < run_vcpus:
            expected = f"expected at least {run_vcpus}, which one job run needs: batch.workers x the vCPUs of its type"
            raise InvalidSettingsError("emr.max_vcpus", self.emr.max_vcpus, expected)
        if not self.datasets:
            raise InvalidSettingsError("datasets", [], "expected at least one [[datasets]] with a name")
        check_order(self.datasets)
        check_policy_room(self.datasets)
        check_records(self.records, self.stage, self.datasets, self.urgent, self.input)
        jobs = self.stream.jobs
        if self.max_overnight_runs < 1:
            streams = "the streaming job needs" if jobs == 1 else f"the {jobs} streaming jobs need"
            beside = "" if self.stream.on_emr else f"{streams} {self.stream_dpus:g} DPU and "
            raise InvalidSettingsError(
                "quota.dpus",
                self.quota.dpus,
                f"{beside}each run of the batch lane {'needs ' * (not beside)}{self.run_dpus:g}: take fewer or "
                "smaller workers, or raise the account's quotas and then quota.dpus and quota.job_runs",
            )

    @property
    def shards(self) -> Shards:
        """The shards of the stream lane, each with a streaming job."""
        return Shards(self.stream.jobs)

    @property
    def uses_emr(self) -> bool:
        """Whether a run of either lane may be on EMR Serverless."""
        return self.batch.uses_emr or self.stream.on_emr

    @property
    def stream_runs(self) -> int:
        """Runs of the streaming jobs at the same time."""
        return len(self.shards.names)

    @property
    def glue_shards(self) -> tuple[str, ...]:
        """The shards whose streaming jobs run on Glue: all or none."""
        return () if self.stream.on_emr else self.shards.names

    @property
    def stream_glue_runs(self) -> int:
        """Those of the streaming jobs' runs that are job runs of Glue."""
        return len(self.glue_shards)

    @property
    def stream_dpus(self) -> float:
        """DPUs of the streaming jobs on Glue with all of their workers."""
        return self.stream_glue_runs * self.stream.max_workers * DPUS[self.stream.worker_type]

    @property
    def stream_vcpus(self) -> int:
        """vCPUs of the streaming jobs on EMR Serverless with all of their workers."""
        return self.stream_runs * self.stream.emr_vcpus if self.stream.on_emr else 0

    @property
    def run_dpus(self) -> float:
        """DPUs of one run of the batch job with all of its workers."""
        return self.batch.workers * DPUS[self.batch.worker_type]

    @property
    def max_overnight_runs(self) -> int:
        """Runs of a night at the same time: at most ``batch.max_runs``.

        The quotas keep room for the streaming jobs with all of their workers, and for a scheduled verification.
        """
        verifications = self.max_verifications
        by_dpus = int((self.quota.dpus - self.stream_dpus) // self.run_dpus) - verifications
        return min(self.batch.max_runs, by_dpus, self.quota.job_runs - self.stream_glue_runs - verifications)

    @property
    def max_verifications(self) -> int:
        """Scheduled verifications at the same time."""
        return int(self.verify.share > 0)

    @property
    def input_kms_key(self) -> str:
        """ARN of the KMS key that encrypts the whole input bucket, as far as the settings name it; empty: none."""
        return self.input.kms_key if self.input.bucket else self.encryption.kms_key

    @property
    def input_kms_keys(self) -> tuple[str, ...] | None:
        """ARNs of the KMS keys under which the jobs' files can be; None if they are not known.

        A file under any other key has it by its uploader's choice. The default key of a bucket outside the stack is
        only known if ``input.kms_key`` names it. The control bucket holds resubmitted lines.
        """
        if self.input.bucket and not self.input.kms_key:
            return None
        return tuple(key for key in (self.input.kms_key, self.encryption.kms_key) if key)

    @property
    def max_emr_runs(self) -> int:
        """Runs of ``batch.workers`` workers at the same time for which the EMR Serverless application has room."""
        return min(self.batch.max_runs, self.emr.max_vcpus // (self.batch.workers * WORKERS[self.batch.worker_type]))

    @property
    def max_batch_runs(self) -> int:
        """Runs of Glue's batch job at the same time: those of a night, and a scheduled verification; at least one."""
        night = self.max_overnight_runs if self.batch.uses_glue else 0
        return max(1, night + self.max_verifications)
