"""All settings of one stage. A key's docstring is its documentation; defaults are those of production."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lake.errors import InvalidSettingsError
from lake.settings.alarms import AlarmSettings
from lake.settings.checks import DATASET_NAME, check_pattern, check_range, check_time_zone
from lake.settings.conversion import ConvertSettings
from lake.settings.emr import EmrSettings
from lake.settings.encryption import EncryptionSettings
from lake.settings.lanes import BatchSettings, StreamSettings
from lake.settings.price import PriceSettings
from lake.settings.protection import ProtectionSettings
from lake.settings.routing import FOLDER, DatasetRule, InputSettings, PeakSettings, UrgentSettings
from lake.settings.schedule import ScheduleSettings
from lake.settings.sweep import SweepSettings
from lake.settings.verify import VerifySettings
from lake.settings.workers import WORKERS, check_worker

if TYPE_CHECKING:
    from lake.engines import Engine


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of one stage; raises ``InvalidSettingsError`` for values that do not fit together."""

    stage: str
    """Name of the deployment, part of every resource name: lower case letters, digits and underscore."""
    time_zone: str = "UTC"
    """IANA time zone name of peak hours and schedules."""
    max_datasets: int = 1000
    """Maximum number of datasets that keys create by rules named ``{folder}``; files of further ones are recorded as
    IGNORED, with an alarm, and taken when it is raised. Datasets that a rule names do not count."""
    input: InputSettings = field(default_factory=InputSettings)
    datasets: tuple[DatasetRule, ...] = (DatasetRule(FOLDER),)
    """Rules in order of priority."""
    urgent: UrgentSettings = field(default_factory=UrgentSettings)
    peak: PeakSettings = field(default_factory=PeakSettings)
    stream: StreamSettings = field(default_factory=StreamSettings)
    batch: BatchSettings = field(default_factory=BatchSettings)
    emr: EmrSettings = field(default_factory=EmrSettings)
    convert: ConvertSettings = field(default_factory=ConvertSettings)
    schedule: ScheduleSettings = field(default_factory=ScheduleSettings)
    price: PriceSettings = field(default_factory=PriceSettings)
    sweep: SweepSettings = field(default_factory=SweepSettings)
    alarms: AlarmSettings = field(default_factory=AlarmSettings)
    verify: VerifySettings = field(default_factory=VerifySettings)
    protection: ProtectionSettings = field(default_factory=ProtectionSettings)
    encryption: EncryptionSettings = field(default_factory=EncryptionSettings)

    def __post_init__(self) -> None:
        check_pattern("stage", self.stage, DATASET_NAME, "lower case letters, digits and underscore")
        check_time_zone("time_zone", self.time_zone)
        check_range("max_datasets", self.max_datasets, 1, 100_000)
        check_worker("stream.worker_type", self.stream.worker_type, self.convert.row_group_bytes)
        check_worker("batch.worker_type", self.batch.worker_type, self.convert.row_group_bytes)
        if self.batch.uses_emr and self.emr.max_vcpus < self._run_vcpus:
            expected = (
                f"expected at least {self._run_vcpus}, which one job run needs: batch.workers x the vCPUs of its type"
            )
            raise InvalidSettingsError("emr.max_vcpus", self.emr.max_vcpus, expected)
        if not self.datasets:
            raise InvalidSettingsError("datasets", [], "expected at least one [[datasets]] with a name")

    def max_parallel_runs(self, engine: Engine) -> int:
        """Job runs of a night at the same time on ``engine``, each with all of its workers."""
        if engine.on_glue:
            return self.batch.max_runs
        return min(self.batch.max_runs, self.emr.max_vcpus // self._run_vcpus)

    @property
    def max_batch_runs(self) -> int:
        """Runs of Glue's batch job at the same time: those of a night, and a scheduled verification; at least one."""
        night = self.batch.max_runs if self.batch.uses_glue else 0
        return max(1, night + int(self.verify.share > 0))

    @property
    def _run_vcpus(self) -> int:
        return self.batch.workers * WORKERS[self.batch.worker_type]
