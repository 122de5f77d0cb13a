"""Settings of everything other than the conversion, and of a stage as a whole."""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated

from lake.errors import InvalidInputError, InvalidSettingsError
from lake.settings.declaration import KMS_KEY, SCHEDULE, TIME, like, one_of, span
from lake.time import Schedule, minutes_of_day

MAX_REDELIVERY_DAYS = 28
"""Maximum age of a redelivered event: 14 days in the queue, 14 among the dead letters (``infra/arrivals.py``)."""
LISTING_DAYS = 2
"""Minimum window of modification times that a listing for missed events covers. It also begins no later than the end
of the last complete listing, so that a longer window would find nothing more."""
PUBLISHING_MINUTES = 60
"""Age at which a PUBLISHING manifest is rolled forward: publishing takes seconds, and two processes may do it."""
POINTER_MINUTES = 15
"""Age at which a QUEUED manifest of the stream lane gets a new pointer: the interval of the sweep. Each pointer doubles
the wait for the next."""
MAX_NIGHT = timedelta(hours=12)
"""Assumed upper bound of the duration of an overnight execution."""
CLOCK_MARGIN = timedelta(days=1)
"""Allowed difference between the time of an arrival, by S3's clock, and of its row, by a function's clock."""
DAYS_TO_ACT = 7
"""Days for a person to act on what waits for the last redelivery or listing."""
MIN_KEPT = timedelta(days=MAX_REDELIVERY_DAYS + DAYS_TO_ACT)
"""Minimum time before the row of an arrival expires, with any setting (``min_keep_days``)."""


@dataclass(frozen=True, slots=True)
class SweepSettings:
    """The age at which ``sweep`` repairs or reports something."""

    grace_minutes: Annotated[float, span(0, 10_080, "minutes")] = 60
    """Time for which a replaced generation is kept next to the new one: longer than any query that may still read
    it."""
    missed_minutes: Annotated[float, span(10, 10_080, "minutes")] = 120
    """Age at which an object without an arrival is searched for by listing."""
    listing_hours: Annotated[float, span(0, 168, "hours")] = 6
    """Minimum interval between two such listings."""


@dataclass(frozen=True, slots=True)
class LedgerSettings:
    """How long the ledger remembers."""

    keep_days: Annotated[int, span(0, 36_500, "days")] = 0
    """Days after which DynamoDB may delete the row of an arrival; 0: never. A file that arrived before is never taken
    as new, and a backfill of its hour is refused. The input bucket must keep versions: rows of files without a version,
    and of manifests, are always kept."""

    def check_versions(self, bucket: str, status: str | None) -> None:
        """Raise ``InvalidSettingsError`` if rows should expire and the input bucket keeps no versions.

        ``status`` is GetBucketVersioning's; None if versions were never switched on.
        """
        if self.keep_days and status != "Enabled":
            raise InvalidSettingsError(
                "ledger.keep_days",
                self.keep_days,
                f"the input bucket {bucket} does not keep versions, so its rows cannot expire: the same bytes, put "
                "again, are the same file. Enable versioning, or set 0",
            )

    def expiry(self, recorded_at: datetime) -> int | None:
        """Seconds since the epoch after which a row of this time (aware) may be deleted; None if never."""
        if not self.keep_days:
            return None
        return int((recorded_at + timedelta(days=self.keep_days)).timestamp())

    def oldest_arrival(self, earlier: Mapping[int, datetime], now: datetime) -> datetime | None:
        """Rows of files that arrived before this time may be deleted by ``now`` (aware); None if no row expires. Pure.

        ``earlier`` maps former values of ``keep_days`` to the time until which they held (``Arrivals.expiries``).
        """
        kept = {**earlier, self.keep_days: now} if self.keep_days else earlier
        ends = (min(until, now - timedelta(days=days)) + CLOCK_MARGIN for days, until in kept.items())
        return max(ends, default=None)

    def first_kept(self, earlier: Mapping[int, datetime], now: datetime) -> str:
        """The first hour (``YYYY-MM-DDTHH``) whose arrival rows all exist; empty if no row expires. Pure."""
        oldest = self.oldest_arrival(earlier, now)
        return "" if oldest is None else (oldest.astimezone(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H")

    def check_kept(self, first: str, earlier: Mapping[int, datetime], now: datetime) -> None:
        """Raise ``InvalidInputError`` if arrival rows of the hour ``first`` (``YYYY-MM-DDTHH``) may have expired."""
        first_kept = self.first_kept(earlier, now)
        if first < first_kept:
            raise InvalidInputError(
                f"{first} is older than ledger.keep_days allows or allowed before: rows of files that were converted "
                f"may have been deleted, so a file could be converted twice or reported as missing; begin "
                f"with {first_kept} or a later hour"
            )


STOP_GRACE_MINUTES = 15
"""Time for a requested stop before the run is killed (StopJobRun): longer than a micro-batch. A killed run loses
nothing but work."""


@dataclass(frozen=True, slots=True)
class ScheduleSettings:
    """When the state machines start and stop, in ``time_zone``; schedules are EventBridge Scheduler expressions."""

    overnight: Annotated[str, SCHEDULE] = "cron(0 22 * * ? *)"
    """Start of the overnight execution."""
    deadline: Annotated[str, TIME] = "06:00"
    """Time by which the overnight execution should be complete."""
    stream_start: Annotated[str, SCHEDULE] = "cron(45 7 ? * MON-FRI *)"
    """Start of the stream window."""
    stream_end: Annotated[str, TIME] = "20:15"
    """End of the stream window, at which the streaming run is requested to stop."""
    watch_seconds: Annotated[int, span(1, 3600, "seconds")] = 60
    """Interval at which stream_window checks the streaming run; after 400 checks at least a minute."""

    @property
    def settled_after(self) -> timedelta:
        """Age at which a file is converted or has stalled: by then an overnight execution has begun and ended."""
        return Schedule.parse(self.overnight).max_pause + MAX_NIGHT

    def conflicts(self) -> Iterator[InvalidSettingsError]:
        for end, start in (("deadline", "overnight"), ("stream_end", "stream_start")):
            clock = getattr(self, end)
            if minutes_of_day(clock) == Schedule.parse(getattr(self, start)).minute:
                expected = f"expected a time of day other than schedule.{start}"
                yield InvalidSettingsError(f"schedule.{end}", clock, expected)


def min_keep_days(schedule: ScheduleSettings) -> int:
    """Days for which a file and its arrival's row are needed: for a redelivered event, or until a night."""
    return max(MAX_REDELIVERY_DAYS, math.ceil(schedule.settled_after / timedelta(days=1))) + DAYS_TO_ACT


LISTED = "AWS Price List (quoted by third parties), us-east-1, 2026-09-24"
"""Source, region and date of the default prices."""
OWN = "price.* of the settings"


@dataclass(frozen=True, slots=True)
class PriceSettings:
    """Prices, for forecasts and for the costs of job runs; the assumed speed, for forecasts."""

    dpu_hour: Annotated[float, span(0, 100, "US dollars")] = 0.308
    """Price of one DPU hour of Glue 6.0, standard execution class and streaming jobs; before 6.0 it was 0.44."""
    dpu_hour_flex: Annotated[float, span(0, 100, "US dollars")] = 0.203
    """Price of one DPU hour of Glue 6.0, flex execution class; before 6.0 it was 0.29."""
    emr_vcpu_hour: Annotated[float, span(0, 100, "US dollars")] = 0.052624
    """Price of one vCPU hour of EMR Serverless, Linux, x86-64; Arm costs 20 % less."""
    emr_gb_hour: Annotated[float, span(0, 100, "US dollars")] = 0.0057785
    """Price of one hour of one GB of memory of EMR Serverless on x86-64; Arm costs 20 % less."""
    mb_per_second_per_core: Annotated[float, span(0.1, 10_000, "MB per second and vCPU")] = 40.0
    """Speed that a forecast assumes for plain files of a dataset whose speed the ledger has not measured yet."""
    compressed_mb_per_second_per_core: Annotated[float, span(0.1, 10_000, "MB per second and vCPU")] = 15.75
    """Speed that a forecast assumes for compressed files, in bytes as stored: 126 MB/s of NDJSON, less than measured
    (performance.md, gzip), by 8 bytes of NDJSON for each stored byte (assumed)."""

    @property
    def source(self) -> str:
        prices = (item for item in fields(self) if item.name.endswith("_hour") or item.name.endswith("_flex"))
        return LISTED if all(getattr(self, item.name) == item.default for item in prices) else OWN


MAX_KEEP_HOURS = 720
"""Maximum with one snapshot a minute; with six, a table's document would have 126 MB, and each batch rewrites it."""


@dataclass(frozen=True, slots=True)
class TablesSettings:
    """Tables of datasets with ``table = "iceberg"``."""

    commit_seconds: Annotated[int, span(10, 3600, "seconds")] = 60
    """Interval at which published files are brought into the tables: a shorter interval makes more snapshots. Above a
    minute, whole minutes."""
    keep_hours: Annotated[float, span(0, MAX_KEEP_HOURS, "hours")] = 24
    """Time for which a snapshot of a table, and with it the replaced rows, can be read after the next snapshot; your
    own tag keeps it for longer."""
    compaction: bool = False
    """Let Glue's table optimizer compact the files of an hour that has many small ones."""

    def conflicts(self) -> Iterator[InvalidSettingsError]:
        # Rounded in the same way as the schedule of ``tables``, which runs each minute.
        hours = MAX_KEEP_HOURS // max(1, 60 // self.commit_seconds)
        if self.keep_hours > hours:
            expected = f"expected at most {hours}, or a longer tables.commit_seconds: each batch makes a snapshot"
            yield InvalidSettingsError("tables.keep_hours", self.keep_hours, expected)


ADDRESS = re.compile(r"[^@\s,;]+@[^@\s,;]+\.[^@\s,;]+")
VERIFY_START = "cron(0 13 * * ? *)"
"""Start of the daily verification, in ``time_zone``: after the night. It verifies only dates without open work."""
KEPT_VERSION_DAYS = 30
"""Days for which ``protection.versions`` keeps a replaced or deleted object, so that a person can notice."""


class NotifyQuarantine(StrEnum):
    """What in the quarantine of a successful execution is reported to people."""

    NEVER = "never"
    FILES = "files"
    LINES = "lines"


@dataclass(frozen=True, slots=True)
class AlarmSettings:
    """Which outcomes are reported to a person. A failure always is."""

    email: Annotated[str, like(ADDRESS, "one address, such as data@example.com", or_empty=True)] = ""
    """Address that the stack subscribes to the topic of the alarms, with one mail to confirm it; empty: none."""
    notify_quarantine: Annotated[str, one_of(tuple(choice.value for choice in NotifyQuarantine))] = (
        NotifyQuarantine.FILES.value
    )
    """Findings that a successful execution reports to people. never: none; files: files that could not be read as a
    whole; lines: rejected lines as well."""
    daily_dollars: Annotated[float, span(0, 10_000_000, "US dollars")] = 100
    """Cost of the job runs of one day (UTC) above which the alarm DailyDollars is raised; 0: there is no such alarm."""
    max_quarantined_share: Annotated[float, span(0, 1, "share from 0 to 1")] = 0.05
    """Share of a dataset's lines, or of its files, in the quarantine after an execution, or of an hour's files that no
    rule takes, above which an alarm is raised; 1: there is no such alarm."""


@dataclass(frozen=True, slots=True)
class EncryptionSettings:
    """The keys with which AWS encrypts what the stack stores."""

    kms_key: Annotated[str, KMS_KEY] = ""
    """ARN of a symmetric KMS key in the stack's account and region, for its buckets, ledger, queues, topic and logs;
    empty: the keys of the services."""
    bootstrap_key: Annotated[str, KMS_KEY] = ""
    """ARN of your KMS key that encrypts the files of 'cdk bootstrap', for the jobs' right to read their code; empty:
    the key of the service."""


@dataclass(frozen=True, slots=True)
class ProtectionSettings:
    """Protections that make a wrong deletion recoverable or impossible. The protocol does not need them."""

    versions: bool = False
    """Whether lake, quarantine and control keep overwritten and deleted objects for 30 days. On in a stage called
    prod."""
    deletion: bool = False
    """Whether DynamoDB refuses to delete the ledger. On in a stage called prod."""


@dataclass(frozen=True, slots=True)
class QuotaSettings:
    """What this stage may use of the account's quotas of AWS Glue, which 'hybrid-router doctor' shows."""

    dpus: Annotated[int, span(1, 1_000_000, "DPUs")] = 500
    """DPUs of all job runs together; the DPUs of the streaming jobs on Glue are kept free for urgent files."""
    job_runs: Annotated[int, span(2, 100_000)] = 50
    """Job runs at the same time; one of them is kept free for each streaming job on Glue."""


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """What Spark records about its own work."""

    ui_logs: bool = False
    """Whether Spark's event logs of every job run are kept in the control bucket for 30 days, for Spark's history
    server or the page of Glue."""


@dataclass(frozen=True, slots=True)
class VerifySettings:
    """The daily proof of published data from its input files."""

    share: Annotated[float, span(0, 1, "share from 0 to 1")] = 0.0
    """Share of the published manifests that are compared every day at 13:00, chosen by their ids; 0: nothing is
    scheduled."""
