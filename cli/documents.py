"""What commands print with ``--json``: one dataclass for each object; ``make reference`` writes the JSON Schemas."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal

from lake.commit import SourceCount
from router.plan.night import Forecast
from router.settle.published import DamagedObject, UnreadableFile

Instant = Annotated[str, "ISO 8601, UTC"]
Hour = Annotated[str, "YYYY-MM-DDTHH, UTC"]
Rejects = Annotated[dict[str, int], "quarantined lines by reason"]
LaneName = Literal["stream", "batch"]
WaitsFor = Literal["night", "stream", "job run", "sweep", "publishing"]
HourStateName = Literal["open", "complete", "reopened"]


@dataclass(frozen=True, slots=True)
class NightForecast(Forecast):
    """What a plan expects, and its work."""

    planned_at: Instant
    engine: str
    workers: int
    runs: int
    manifests: int
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class NextNight:
    time_zone: str
    schedule: str
    enabled: bool
    start: Annotated[Instant | None, "null: the schedule is disabled, or gives no next start"]
    forecast: NightForecast | None


@dataclass(frozen=True, slots=True)
class NightLine:
    """One execution of ``overnight``. Step Functions deletes it after 90 days; the ledger keeps it."""

    execution: str
    status: Annotated[str, "of Step Functions; UNKNOWN: it has forgotten the execution"]
    outcome: Annotated[
        str, "the verdict: SUCCEEDED, SUCCEEDED_WITH_QUARANTINE, EMPTY, OPEN or FAILED; without one the status"
    ]
    started_at: Instant | None
    ended_at: Instant | None
    engine: str | None
    files: int | None
    bytes: int | None
    manifests: Annotated[int | None, "of its plan; null: it was not planned, or only as a dry run"]
    planned_dollars: float | None
    manifests_done: Annotated[int | None, "null, as all that follows: it has no verdict"]
    rows: int | None
    quarantined_lines: int | None
    unreadable_files: int | None


@dataclass(frozen=True, slots=True)
class NightsDocument:
    stack: str
    nights: tuple[NightLine, ...]


@dataclass(frozen=True, slots=True)
class NightRun:
    job_run: str
    engine: str
    started_at: Instant
    ended_at: Instant
    minutes: float
    dollars: float
    log: Annotated[str, "the command that prints it"]
    state: Annotated[str, "how it ended: SUCCEEDED, FAILED, TIMEOUT, ..."]
    reason: Annotated[str, "why it did not succeed, as its service reports it; empty: it did"]


@dataclass(frozen=True, slots=True)
class RunProgress:
    """A job run that holds manifests now."""

    job_run: str
    done: Annotated[int, "manifests that it has published"]
    running: Annotated[int, "manifests that it works on"]


@dataclass(frozen=True, slots=True)
class NightProgress:
    manifests: int
    done: int
    running: int
    failed: int
    bytes: int
    bytes_done: int
    job_runs: Annotated[tuple[RunProgress, ...], "those with the most manifests at work first"]


@dataclass(frozen=True, slots=True)
class NightDataset:
    """One dataset of an execution, with files, bytes and lines of its DONE manifests."""

    dataset: str
    done: Annotated[int, "manifests"]
    failed: int
    open: int
    files: int
    bytes: int
    rows: int
    rejects: Rejects
    failed_files: Annotated[int, "files that could not be read"]


@dataclass(frozen=True, slots=True)
class ManifestNotDone:
    manifest: str
    partition: str
    state: str
    reason: Annotated[str, "empty: it waits"]


@dataclass(frozen=True, slots=True)
class NightVerdict:
    rejects_by_reason: Rejects
    datasets: tuple[NightDataset, ...]
    unreadable_files: tuple[UnreadableFile, ...]
    not_done: tuple[ManifestNotDone, ...]
    damaged: tuple[DamagedObject, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NightDocument(NightLine):
    message: Annotated[str | None, "of the verdict; without one the error that ended it"]
    plan: NightForecast | None
    progress: Annotated[NightProgress | None, "null: it has a verdict, or no plan yet"]
    dollars: Annotated[float | None, "of the job runs"]
    work_minutes: Annotated[float | None, "from the start of the first job run to the end of the last one"]
    run_count: Annotated[int, "job runs"]
    job_runs: tuple[NightRun, ...]
    verdict: NightVerdict | None
    omitted: Annotated[int, "entries that --limit has left out of all lists"]


@dataclass(frozen=True, slots=True)
class ShownInTable:
    generation: int
    since: Annotated[str, "UTC; the latest time from which readers see this generation"]
    batch: Annotated[int, "the batch that added it"]
    snapshot: Annotated[str, "id of that batch's snapshot, which may have expired"]


@dataclass(frozen=True, slots=True)
class ExplainedManifest:
    manifest: str
    state: str
    lane: LaneName
    partition: str
    generation: int
    attempt: int
    changed_at: Instant
    reason: str | None
    logs: Annotated[dict[str, str], "job runs that have had it -> the command that prints the log"]
    tabled: ShownInTable | None
    waits_for_table: Annotated[int | None, "the published generation, if the Iceberg table does not show it yet"]


@dataclass(frozen=True, slots=True)
class PublishedObject:
    uri: str
    rows: Annotated[int, "rows of Parquet, records of the quarantine"]
    size: int


@dataclass(frozen=True, slots=True)
class FileResult:
    generation: int
    published_at: Instant
    source: SourceCount
    first_rejected_line: Annotated[str | None, "its beginning; null if there is none or it cannot be shown"]
    parquet: tuple[PublishedObject, ...]
    quarantine: tuple[PublishedObject, ...]
    omitted: Annotated[int, "objects that --limit has left out"]


@dataclass(frozen=True, slots=True)
class ExplainedVersion:
    version: str
    size: int
    arrived_at: Instant
    recorded_at: Instant
    partition: Annotated[str | None, "dataset#date and hour (UTC); null if it is ignored"]
    decided_lane: LaneName | None
    reason: str
    outcome: Annotated[
        str, "IGNORED, RECORDED, COLLECTED, BLOCKED, QUARANTINED_LINES, UNREADABLE, or the state of the manifest"
    ]
    lane: LaneName | None
    lane_since: Instant | None
    waits_for: WaitsFor | None
    manifests: tuple[ExplainedManifest, ...]
    result: FileResult | None


@dataclass(frozen=True, slots=True)
class FileExplanation:
    """A file of the input bucket, oldest version first."""

    uri: str
    night: NextNight
    running: Annotated[str | None, "execution that runs now, if a version waits for a night: its plan may have it"]
    versions: tuple[ExplainedVersion, ...]
    omitted_versions: Annotated[int, "older ones that --limit has left out"]
    kind: Literal["file"] = "file"


@dataclass(frozen=True, slots=True)
class ObjectExplanation:
    kind: Literal["lake", "quarantine"]
    uri: str
    manifest: str
    partition: str
    generation: int
    is_current: bool
    current_generation: int | None
    rows: Annotated[int | None, "null: this generation has not published it"]
    size: int | None
    inputs: tuple[SourceCount, ...]
    omitted_inputs: int


class FailureKind(StrEnum):
    FAILED = "FAILED"
    UNREADABLE = "UNREADABLE"
    """A file of a manifest that is DONE."""
    BLOCKED = "BLOCKED"
    """A manifest that waits for its next attempt, because the last one ended without a result; or a part that cannot
    be divided."""
    DEAD_LETTERS = "DEAD_LETTERS"
    """Events and starts of schedules that failed in every attempt."""
    NOT_DELIVERED = "NOT_DELIVERED"
    """Records that Firehose could not deliver."""
    IGNORED = "IGNORED"
    """Files that the settings do not take."""
    REPLACED = "REPLACED"
    """A file that could not be read, but a later version was converted: it is listed, but is not a failure."""


@dataclass(frozen=True, slots=True)
class ListedFailure:
    kind: FailureKind
    reason: str
    advice: str
    command: Annotated[str | None, "what a person runs; null: advice names no command"]
    since: Instant | None = None
    manifest: str | None = None
    lane: str | None = None
    dataset: str | None = None
    partition: str | None = None
    uri: Annotated[
        str | None,
        "an unreadable file; a part's document; the prefix of undelivered records; the last ignored file of its reason",
    ] = None
    files: Annotated[int, "of DEAD_LETTERS: messages"] = 1
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class FailuresDocument:
    stack: str
    complete: Annotated[bool, "false: a list is longer than --limit"]
    failures: tuple[ListedFailure, ...]


@dataclass(frozen=True, slots=True)
class HourManifests:
    done: int
    failed: int
    open: int
    not_in_table: Annotated[int, "those with published rows that the Iceberg table does not show yet"]


@dataclass(frozen=True, slots=True)
class DatasetHour:
    hour: Hour
    state: HourStateName
    files: int
    bytes: Annotated[int, "size of the input files as stored"]
    rows: int
    quarantined_lines: int
    unreadable_files: int
    manifests: HourManifests
    published_at: Annotated[Instant | None, "the last publication"]
    revision: Annotated[int, "number of announced changes of the hour"]
    marker: Annotated[str | None, "URI of the marker; null if it does not exist"]
    snapshot: Annotated[str | None, "of the Iceberg table, with all published rows; null if there is none yet"]


@dataclass(frozen=True, slots=True)
class HoursDocument:
    dataset: str
    hours: tuple[DatasetHour, ...]


@dataclass(frozen=True, slots=True)
class TableState:
    dataset: str
    state: Literal["current", "behind", "stopped"]
    batch: Annotated[int, "number of the last batch that is in the table"]
    waiting: Annotated[int, "publishes and hours that are listed for the next batches"]
    behind_minutes: Annotated[float, "age of the oldest of them"]
    stopped: Annotated[str | None, "why no more batches are added, and what to run"]


@dataclass(frozen=True, slots=True)
class TablesDocument:
    tables: tuple[TableState, ...]


@dataclass(frozen=True, slots=True)
class SuggestedColumn:
    name: str
    type: Annotated[str, "VARCHAR: no cast is proposed"]
    format: Annotated[str | None, "of dates, timestamps and JSON"]
    values: Annotated[int, "values in the sample, without NULL"]
    nulls: Annotated[int, "rows of the sample without a value"]
    refused: Annotated[int, "values for which the cast gives NULL"]
    examples: Annotated[tuple[str, ...], "some of the refused values"]


@dataclass(frozen=True, slots=True)
class Suggestion:
    dataset: str
    files: Annotated[int, "Parquet objects that were read"]
    rows: Annotated[int, "rows of the sample"]
    columns: tuple[SuggestedColumn, ...]
    sql: Annotated[dict[str, str], "dialect -> a statement that creates the view, without a semicolon"]


@dataclass(frozen=True, slots=True)
class Backlog:
    """Open manifests of one dataset in one lane."""

    lane: LaneName
    dataset: str
    manifests: int
    files: int
    bytes: int
    oldest: Instant
    states: Annotated[dict[str, int], "manifests by state: QUEUED, RUNNING, PUBLISHING"]
    blocked: Annotated[int, "QUEUED or PUBLISHING manifests that wait after an attempt without a result"]


@dataclass(frozen=True, slots=True)
class Collected:
    """Files of the batch lane without a manifest, of all datasets: they are divided when their hour is over."""

    files: int
    bytes: int
    oldest_hour: Annotated[str | None, "YYYY-MM-DDTHH, UTC"]
    blocked: Annotated[int, "of these, in parts whose document is damaged: they wait until a person restores it"]


@dataclass(frozen=True, slots=True)
class StreamShard:
    shard: str
    runs: Annotated[tuple[str, ...], "runs of its streaming job that are alive"]
    heartbeat_at: Instant | None
    micro_batch_since: Annotated[Instant | None, "begin of the oldest micro-batch that has not ended"]
    window_until: Instant | None
    stop_requested: bool
    failed_starts: Annotated[int, "consecutive runs that ended before they began to work; 0 while one is alive"]
    start_failure: Annotated[str | None, "why the last of them ended, from the third one on"]
    spilling: bool
    manifests: int
    files: int
    bytes: int
    oldest: Instant | None


@dataclass(frozen=True, slots=True)
class StreamDocument:
    shards: tuple[StreamShard, ...]


@dataclass(frozen=True, slots=True)
class OpenAlarm:
    name: str
    since: Instant
    description: str


@dataclass(frozen=True, slots=True)
class StatusDocument:
    stack: str
    read_at: Instant
    complete: Annotated[bool, "false: a list is longer than --limit, and every count of it is a lower bound"]
    backlog: tuple[Backlog, ...]
    collected: Collected
    failed_manifests: int
    manifests_with_unreadable_files: int
    dead_letters: int
    failed_record_files: Annotated[
        int, "files of records that Firehose could not deliver; 20,000 of them are counted at most"
    ]
    ignored_files: Annotated[int, "files that no rule of the settings took; a reason is counted for 30 days"]
    missed_events_until: Annotated[Instant | None, "a sweep has found missed events up to this time"]
    missed_events_of_old_days_until: Annotated[
        Instant | None, "in folders of old days, which have a listing of their own"
    ]
    shards: tuple[StreamShard, ...]
    next_night: NextNight
    running: Annotated[str | None, "name of the execution that runs now"]
    last_night: Annotated[NightLine | None, "the newest execution that has ended"]
    alarms: tuple[OpenAlarm, ...]
    alarms_without_state: Annotated[
        int, "alarms that CloudWatch has not evaluated yet; the local cloud never evaluates some"
    ]
