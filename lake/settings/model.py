"""The settings tree. A key's docstring is its documentation; defaults are those of production."""

from __future__ import annotations

from dataclasses import dataclass, field

from lake.errors import InvalidSettingsError
from lake.settings.checks import (
    BUCKET_NAME,
    DATASET_NAME,
    check_choice,
    check_pattern,
    check_range,
    check_time_zone,
    minutes_of_day,
)
from lake.settings.sweep import SweepSettings
from lake.settings.workers import GIB, MIB, WORKERS, check_worker

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
FOLDER = "{folder}"


@dataclass(frozen=True, slots=True)
class InputSettings:
    """Where files land."""

    bucket: str = ""
    """Name of an existing bucket; empty: the stack creates one with versions."""
    suffixes: tuple[str, ...] = (".ndjson", ".jsonl", ".json", ".ndjson.gz", ".jsonl.gz", ".json.gz")
    """A key that ends in none of these is IGNORED, with this reason in the ledger."""

    def __post_init__(self) -> None:
        if self.bucket:
            check_pattern("input.bucket", self.bucket, BUCKET_NAME, "the name of an S3 bucket, or an empty text")
        if not self.suffixes or not all(suffix.startswith(".") for suffix in self.suffixes):
            raise InvalidSettingsError("input.suffixes", list(self.suffixes), "expected suffixes that begin with a dot")


@dataclass(frozen=True, slots=True)
class DatasetRule:
    """Keys that begin with ``prefix`` belong to dataset ``name``; the first rule that matches wins."""

    name: str
    """Lower case letters, digits, underscore; or ``{folder}``: the folder that follows the prefix."""
    prefix: str = ""
    peak: bool = True
    """Whether peak hours send this dataset through the stream lane."""

    def __post_init__(self) -> None:
        if self.name != FOLDER:
            check_pattern(
                "datasets.name", self.name, DATASET_NAME, "lower case letters, digits and underscore, or {folder}"
            )


@dataclass(frozen=True, slots=True)
class UrgentSettings:
    """Files that go through the stream lane at any hour."""

    keys: tuple[str, ...] = ("*/urgent/*",)
    """Shell patterns over the whole key; ``*`` matches slashes as well."""


@dataclass(frozen=True, slots=True)
class PeakSettings:
    """Local hours in which files go through the stream lane; both empty: never."""

    hours: tuple[str, ...] = ("08:00-20:00",)
    """``HH:MM-HH:MM`` in the deployment's time zone; may pass midnight."""
    days: tuple[str, ...] = DAYS[:5]

    def __post_init__(self) -> None:
        for hours in self.hours:
            start, _, end = hours.partition("-")
            if minutes_of_day("peak.hours", start) == minutes_of_day("peak.hours", end):
                raise InvalidSettingsError("peak.hours", hours, "expected a start that differs from the end")
        for day in self.days:
            check_choice("peak.days", day, DAYS)


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """The stream lane."""

    manifest_bytes: int = GIB
    manifest_files: int = 1000
    max_file_bytes: int = 0
    """A larger file goes to the batch lane even at peak; 0: no limit."""
    trigger_seconds: int = 30
    batch_bytes: int = 8 * GIB
    """Input of one Spark job of a micro-batch, or one manifest."""
    max_attempts: int = 3
    """After so many failed attempts a manifest is superseded by the batch lane."""
    idle_minutes: float = 15
    """Outside the stream window the job ends after so long without work."""
    high_mark_bytes: int = 200 * GIB
    """Backlog above which peak files that are not urgent spill to the batch lane ..."""
    low_mark_bytes: int = 50 * GIB
    """... until it is below this."""
    worker_type: str = "G.1X"
    max_workers: int = 10

    def __post_init__(self) -> None:
        check_range("stream.manifest_bytes", self.manifest_bytes, 1, 64 * GIB)
        check_range("stream.manifest_files", self.manifest_files, 1, 10_000)
        check_range("stream.max_file_bytes", self.max_file_bytes, 0, 1 << 50)
        check_range("stream.trigger_seconds", self.trigger_seconds, 1, 3600)
        check_range("stream.batch_bytes", self.batch_bytes, self.manifest_bytes, 1 << 50)
        check_range("stream.max_attempts", self.max_attempts, 1, 20)
        check_range("stream.idle_minutes", self.idle_minutes, 0.05, 1440)
        check_range("stream.low_mark_bytes", self.low_mark_bytes, 0, self.high_mark_bytes)
        check_choice("stream.worker_type", self.worker_type, WORKERS)
        check_range("stream.max_workers", self.max_workers, 2, 299)


@dataclass(frozen=True, slots=True)
class BatchSettings:
    """The batch lane."""

    manifest_bytes: int = 64 * GIB
    manifest_files: int = 10_000
    run_bytes: int = 512 * GIB
    """Input of one Glue run: enough for some minutes of work on all its workers."""
    run_manifests: int = 500
    max_runs: int = 50
    """Glue runs at once."""
    max_attempts: int = 3
    """Attempts of one manifest before it is FAILED."""
    lease_seconds: int = 600
    held_wait_seconds: int = 120
    """How long a Map child waits before it claims a HELD manifest again."""
    held_rounds: int = 30
    """How often it does so."""
    run_timeout_minutes: int = 480
    worker_type: str = "G.1X"
    workers: int = 10
    flex: bool = True
    """Flex: cheaper, may wait for capacity, can be reclaimed."""

    def __post_init__(self) -> None:
        check_range("batch.manifest_bytes", self.manifest_bytes, 1, 1 << 50)
        check_range("batch.manifest_files", self.manifest_files, 1, 50_000)
        check_range("batch.run_bytes", self.run_bytes, 1, 1 << 50)
        check_range("batch.run_manifests", self.run_manifests, 1, 10_000)
        check_range("batch.max_runs", self.max_runs, 1, 1000)
        check_range("batch.max_attempts", self.max_attempts, 1, 20)
        check_range("batch.lease_seconds", self.lease_seconds, 10, 3600)
        check_range("batch.held_wait_seconds", self.held_wait_seconds, 1, 3600)
        check_range("batch.held_rounds", self.held_rounds, 1, 1000)
        check_range("batch.run_timeout_minutes", self.run_timeout_minutes, 1, 10_080)
        check_choice("batch.worker_type", self.worker_type, WORKERS)
        check_range("batch.workers", self.workers, 2, 299)
        if self.flex:
            check_choice("batch.worker_type", self.worker_type, ("G.1X", "G.2X"))


@dataclass(frozen=True, slots=True)
class ConvertSettings:
    """Both lanes' conversion."""

    split_bytes: int = 256 * MIB
    target_file_bytes: int = 128 * MIB
    row_group_bytes: int = 64 * MIB
    """Columns, not compressed, that a row group is made of."""
    compression: str = "zstd"
    column_limit: int = 1000
    """Further keys of an object go to ``_rescued``."""
    max_line_bytes: int = 16 * MIB
    provenance: bool = False
    """Adds the columns ``_source``, ``_offset`` and ``_arrived_at``."""

    def __post_init__(self) -> None:
        check_range("convert.split_bytes", self.split_bytes, 1, 16 * GIB)
        check_range("convert.target_file_bytes", self.target_file_bytes, 1, 4 * GIB)
        check_range("convert.row_group_bytes", self.row_group_bytes, 1, 512 * MIB)
        check_choice("convert.compression", self.compression, ("zstd", "snappy"))
        check_range("convert.column_limit", self.column_limit, 1, 1000)
        check_range("convert.max_line_bytes", self.max_line_bytes, 1, 64 * MIB)


@dataclass(frozen=True, slots=True)
class ScheduleSettings:
    """When machines start, in the deployment's time zone."""

    overnight: str = "cron(0 22 * * ? *)"
    """EventBridge Scheduler expression."""
    deadline: str = "06:00"
    """The night's work should be done by then."""
    stream_start: str = "cron(45 7 ? * MON-FRI *)"
    stream_end: str = "20:15"
    """``stream_window`` sets the stop flag then."""
    stop_grace_minutes: int = 15
    """After so long the streaming run is killed by StopJobRun."""
    watch_seconds: int = 60
    """How often ``stream_window`` looks after the streaming run."""

    def __post_init__(self) -> None:
        for key in ("overnight", "stream_start"):
            if not getattr(self, key).startswith(("cron(", "rate(", "at(")):
                raise InvalidSettingsError(
                    f"schedule.{key}", getattr(self, key), "expected cron(...), rate(...), at(...)"
                )
        minutes_of_day("schedule.deadline", self.deadline)
        minutes_of_day("schedule.stream_end", self.stream_end)
        check_range("schedule.stop_grace_minutes", self.stop_grace_minutes, 1, 240)
        check_range("schedule.watch_seconds", self.watch_seconds, 1, 3600)


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


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of one stage."""

    stage: str
    time_zone: str = "UTC"
    """IANA name; peak hours and schedules are in it."""
    input: InputSettings = field(default_factory=InputSettings)
    datasets: tuple[DatasetRule, ...] = (DatasetRule(FOLDER),)
    urgent: UrgentSettings = field(default_factory=UrgentSettings)
    peak: PeakSettings = field(default_factory=PeakSettings)
    stream: StreamSettings = field(default_factory=StreamSettings)
    batch: BatchSettings = field(default_factory=BatchSettings)
    convert: ConvertSettings = field(default_factory=ConvertSettings)
    schedule: ScheduleSettings = field(default_factory=ScheduleSettings)
    price: PriceSettings = field(default_factory=PriceSettings)
    sweep: SweepSettings = field(default_factory=SweepSettings)

    def __post_init__(self) -> None:
        check_pattern("stage", self.stage, DATASET_NAME, "lower case letters, digits and underscore")
        check_time_zone("time_zone", self.time_zone)
        check_worker("stream.worker_type", self.stream.worker_type, self.convert.row_group_bytes)
        check_worker("batch.worker_type", self.batch.worker_type, self.convert.row_group_bytes)
        if not self.datasets:
            raise InvalidSettingsError("datasets", [], "expected at least one [[datasets]] with a name")
