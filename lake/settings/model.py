"""All settings of one stage. Each field declares its values and its documentation; defaults suit production."""

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

from lake.engines import Engine
from lake.engines.description import ARM, DPUS, WORKERS, X86
from lake.errors import InvalidSettingsError
from lake.settings.declaration import TIME_ZONE, build, like, one_of, span
from lake.settings.lanes import BatchSettings, ConvertSettings, StreamSettings
from lake.settings.operation import (
    DAYS_TO_ACT,
    AlarmSettings,
    EncryptionSettings,
    LedgerSettings,
    PriceSettings,
    ProtectionSettings,
    QuotaSettings,
    ScheduleSettings,
    SparkSettings,
    SweepSettings,
    TablesSettings,
    VerifySettings,
    min_keep_days,
)
from lake.settings.records import RecordsRule, records_conflicts
from lake.settings.routing import (
    FOLDER,
    ICEBERG,
    DatasetRule,
    InputSettings,
    PeakSettings,
    UrgentSettings,
    rule_conflicts,
)
from lake.shards import Shards

STAGE_NAME = re.compile(r"[a-z][a-z0-9_]{0,42}(?<!_tables)")
"""A valid dataset name, short enough for the longest limited name of a stage: ``hybrid-router-<stage>-stream``, the EMR
Serverless application of the streaming jobs, has at most 64 characters (CreateApplication). The suffix is refused
because the stage ``x_tables`` would share its database with the Iceberg tables of the stage ``x``."""
TAG = re.compile(r"(?!aws:)[\w .:/+@-]{1,128}=[\w .:/=+@-]{1,256}", re.IGNORECASE)
"""A tag of a resource (https://docs.aws.amazon.com/tag-editor/latest/userguide/best-practices-and-strats.html).
CloudFormation accepts no empty value for an alarm or a state machine."""
STAGE_TAG = "hybrid-router:stage"
"""Tag of every resource, by which bills can be split."""
MAX_TAGS = 50
"""Maximum number of tags of a resource, including the stage's own (the same page)."""


@dataclass(frozen=True, slots=True)
class EmrSettings:
    """The EMR Serverless application of the batch lane, and settings that the stream lane's application shares."""

    max_vcpus: Annotated[int, span(4, 1_000_000)] = 400
    """Maximum number of vCPUs of all workers of the batch lane together. Job runs that find no room wait in the
    queue."""
    architecture: Annotated[str, one_of((X86, ARM))] = X86
    """Processor of the workers in both lanes; Arm is cheaper. Each processor has its own build of the libraries."""


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of one stage."""

    stage: Annotated[str, like(STAGE_NAME, "1 to 43 lower case letters, digits and underscores, not ending in _tables")]
    """Name of the deployment, part of every resource name."""
    time_zone: Annotated[str, TIME_ZONE] = "UTC"
    """Time zone of peak hours and schedules."""
    max_datasets: Annotated[int, span(1, 100_000)] = 1000
    """Maximum number of datasets that keys create by rules named {folder}; files of further datasets are recorded as
    IGNORED, with an alarm, and taken when the limit is raised. Datasets that a rule names do not count."""
    tags: Annotated[
        tuple[str, ...],
        like(TAG, "name=value of letters (EMR Serverless: a to z), digits, spaces and .:/=+@_-, such as team=data"),
    ] = ()
    """Tags of every resource of the stack, in addition to hybrid-router:stage."""
    input: InputSettings = field(default_factory=InputSettings)
    datasets: tuple[DatasetRule, ...] = (DatasetRule(FOLDER),)
    records: tuple[RecordsRule, ...] = ()
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
    tables: TablesSettings = field(default_factory=TablesSettings)
    ledger: LedgerSettings = field(default_factory=LedgerSettings)
    alarms: AlarmSettings = field(default_factory=AlarmSettings)
    verify: VerifySettings = field(default_factory=VerifySettings)
    protection: ProtectionSettings = field(default_factory=ProtectionSettings)
    encryption: EncryptionSettings = field(default_factory=EncryptionSettings)

    def conflicts_of_tables(self) -> Iterator[tuple[tuple[str, ...], Iterator[InvalidSettingsError]]]:
        """Tables to compare, and lazily the values in them that do not fit together."""
        yield ("tags", "batch", "stream"), self._tag_conflicts()
        yield ("datasets",), rule_conflicts(self.datasets)
        yield (
            ("records", "stage", "datasets", "input"),
            records_conflicts(self.records, self.stage, self.datasets, self.input),
        )
        yield ("encryption", "input", "records"), self._region_conflicts()
        for table in ("ledger", "input"):
            yield (table, "schedule"), self._keep_days_conflict(table)
        yield ("convert", "batch"), self._time_conflict()
        yield ("batch", "emr"), self._vcpu_conflict()
        yield ("stream", "batch", "quota", "verify"), self._quota_conflict()

    def _tag_conflicts(self) -> Iterator[InvalidSettingsError]:
        """Tags that AWS would refuse in a deployment. IAM ignores the case of their names (API Reference, TagRole)."""
        if len(self.tags) >= MAX_TAGS:
            yield InvalidSettingsError("tags", len(self.tags), f"expected at most {MAX_TAGS - 1} tags")
        names = {STAGE_TAG}
        for tag in self.tags:
            if self.uses_emr and not tag.isascii():
                yield InvalidSettingsError("tags", tag, "expected letters a to z: EMR Serverless accepts no others")
            name = tag.partition("=")[0].lower()
            if name in names:
                yield InvalidSettingsError("tags", tag, f"expected distinct names, ignoring case, and not {STAGE_TAG}")
            names.add(name)

    def _region_conflicts(self) -> Iterator[InvalidSettingsError]:
        """ARNs of other regions than the first one's: a stack can use only resources of its own region."""
        tables = (("encryption", self.encryption), ("input", self.input), *(("records", item) for item in self.records))
        names = ("kms_key", "bootstrap_key", "kinesis_stream", "kinesis_kms_key", "msk_cluster")
        arns = ((f"{table}.{name}", getattr(item, name, "")) for table, item in tables for name in names)
        (first, own), *others = [item for item in arns if item[1]] or [("", "")]
        for key, arn in others:
            if arn.split(":")[3] != own.split(":")[3]:
                yield InvalidSettingsError(key, arn, f"expected the region of the stack, as in {first}")

    def _keep_days_conflict(self, table: str) -> Iterator[InvalidSettingsError]:
        """A conflict if files or rows would expire while a redelivered event or a night may still need them."""
        days, minimum = getattr(self, table).keep_days, min_keep_days(self.schedule)
        if 0 < days < minimum:
            expected = (
                f"expected 0 (never deleted) or at least {minimum}: an event can be redelivered, or its file wait for "
                f"schedule.overnight, for {minimum - DAYS_TO_ACT} days"
            )
            yield InvalidSettingsError(f"{table}.keep_days", days, expected)

    def _time_conflict(self) -> Iterator[InvalidSettingsError]:
        if self.convert.max_core_minutes > self.batch.run_timeout_minutes / 2:
            expected = f"expected at most half of batch.run_timeout_minutes ({self.batch.run_timeout_minutes})"
            yield InvalidSettingsError("convert.max_core_minutes", self.convert.max_core_minutes, expected)

    def _vcpu_conflict(self) -> Iterator[InvalidSettingsError]:
        run_vcpus = self.batch.workers * WORKERS[self.batch.worker_type]
        if self.batch.uses_emr and self.emr.max_vcpus < run_vcpus:
            expected = f"expected at least {run_vcpus}, which one job run needs: batch.workers x the vCPUs of its type"
            yield InvalidSettingsError("emr.max_vcpus", self.emr.max_vcpus, expected)

    def _quota_conflict(self) -> Iterator[InvalidSettingsError]:
        quota, runs = self.quota, int(self.batch.uses_glue) + self.max_verifications
        if quota.dpus < self.stream_dpus + runs * self.run_dpus:
            expected = (
                f"each run of the batch lane needs {self.run_dpus:g} DPUs, and the streaming jobs on Glue need "
                f"{self.stream_dpus:g}: use fewer or smaller workers, or raise the account's quota and then this one"
            )
            yield InvalidSettingsError("quota.dpus", quota.dpus, expected)
        if quota.job_runs < len(self.glue_shards) + runs:
            expected = (
                f"expected at least {len(self.glue_shards) + runs}, for the streaming jobs on Glue, a run of the batch "
                "lane and a verification: lower stream.jobs, or raise the account's quota and then this one"
            )
            yield InvalidSettingsError("quota.job_runs", quota.job_runs, expected)

    @property
    def has_table(self) -> Callable[[str], bool]:
        """Returns whether a dataset has an Iceberg table. Each access reads all rules: keep it for many datasets."""
        named = {rule.name: rule.table == ICEBERG for rule in self.datasets}
        return lambda dataset: named.get(dataset, named.get(FOLDER, False))

    @property
    def has_tables(self) -> bool:
        return any(rule.table == ICEBERG for rule in self.datasets)

    @property
    def shards(self) -> Shards:
        return Shards(self.stream.jobs)

    @property
    def uses_emr(self) -> bool:
        return Engine.EMR_SERVERLESS in self.engines

    @property
    def engines(self) -> tuple[str, ...]:
        """Engines that the stage's job runs may use, by name; the batch job on Glue exists in every stage."""
        return tuple(dict.fromkeys((Engine.GLUE, *self.batch.engines, self.stream.engine)))

    @property
    def glue_shards(self) -> tuple[str, ...]:
        """The shards whose streaming jobs run on Glue: all shards or none."""
        return self.shards.names if self.stream.units.dpu else ()

    @property
    def stream_dpus(self) -> float:
        """DPUs of the streaming jobs on Glue with all of their workers."""
        return self.stream.jobs * self.stream.units.dpu

    @property
    def stream_vcpus(self) -> int:
        """vCPUs of the streaming jobs with all of their workers; 0 on an engine that does not bill vCPUs."""
        return int(self.stream.jobs * self.stream.units.vcpu)

    @property
    def run_dpus(self) -> float:
        return self.batch.workers * DPUS[self.batch.worker_type]

    @property
    def max_overnight_runs(self) -> int:
        """Maximum parallel runs of a night; the quotas keep room for streaming jobs and a scheduled verification."""
        verifications = self.max_verifications
        by_dpus = int((self.quota.dpus - self.stream_dpus) // self.run_dpus) - verifications
        return min(self.batch.max_runs, by_dpus, self.quota.job_runs - len(self.glue_shards) - verifications)

    @property
    def max_verifications(self) -> int:
        return int(self.verify.share > 0)

    @property
    def input_kms_key(self) -> str:
        """ARN of the KMS key that encrypts the whole input bucket; empty if the settings name none."""
        return self.input.kms_key if self.input.bucket else self.encryption.kms_key

    @property
    def input_kms_keys(self) -> tuple[str, ...] | None:
        """ARNs of the KMS keys that may encrypt the jobs' files; None if they are not known.

        A file under any other key has it by its uploader's choice. The default key of a bucket outside the stack is
        known only if ``input.kms_key`` names it. The control bucket counts too, for its resubmitted lines.
        """
        if self.input.bucket and not self.input.kms_key:
            return None
        return tuple(key for key in (self.input.kms_key, self.encryption.kms_key) if key)

    @property
    def max_emr_runs(self) -> int:
        """Number of parallel runs with ``batch.workers`` workers for which the EMR Serverless application has room."""
        return min(self.batch.max_runs, self.emr.max_vcpus // (self.batch.workers * WORKERS[self.batch.worker_type]))

    @property
    def max_batch_runs(self) -> int:
        """Maximum parallel runs of Glue's batch job: a night's runs and a scheduled verification; at least one."""
        night = self.max_overnight_runs if self.batch.uses_glue else 0
        return max(1, night + self.max_verifications)


def load_settings(path: Path) -> Settings:
    """Read the settings of a ``.toml`` or ``.json`` file (UTF-8).

    Raises ``InvalidSettingsError`` if a value is not valid. If the file is missing or cannot be parsed, ``key`` is
    ``file``.
    """
    try:
        # Some editors write a byte order mark.
        text = Path(path).read_text(encoding="utf-8-sig")
        body: dict[str, Any] = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except FileNotFoundError as error:
        how = "by --settings (cdk: -c settings=FILE); the checkout has settings/dev.toml to copy"
        problem = f"the file does not exist: pass your stage's file {how}"
        raise InvalidSettingsError("file", str(path), problem) from error
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidSettingsError("file", str(path), f"cannot be read: {error}") from error
    return parse_settings(body)


def parse_settings(body: dict[str, Any]) -> Settings:
    """The settings of a parsed TOML or JSON document.

    Values are not converted, except a whole number to a float: ``"5"`` is not 5, and ``true`` is not 1. In the stage
    ``prod`` stored data is protected by default. Raises ``InvalidSettingsError``: the first error of the document, with
    all ``others``.
    """
    if isinstance(body, dict) and body.get("stage") == "prod" and isinstance(body.get("protection", {}), dict):
        body = {**body, "protection": {"versions": True, "deletion": True, **body.get("protection", {})}}
    return build(Settings, body)


def dump_settings(settings: Settings) -> str:
    """JSON text that ``load_settings`` reads back to equal settings."""
    return json.dumps(asdict(settings), indent=1, sort_keys=True)
