"""Decides the lane of an arrival, with a reason: peak hours, or urgency by key, size, tags and metadata.

``decide_lane`` is pure. ``decide_lanes`` also reads, in parallel, what the decisions of one invocation depend on.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from fnmatch import fnmatchcase
from zoneinfo import ZoneInfo

from botocore.exceptions import BotoCoreError, ClientError

from lake.aws_types import S3Client
from lake.dataset_rules import matching_rule, reason_without_dataset
from lake.faults import FORBIDDEN, NO_ANSWER, RIGHTS_CODES, NoAnswer, can_pass, error_code, http_status
from lake.manifest import Lane, ObjectVersion, has_compressed_name
from lake.settings import DatasetRule, PeakSettings, Settings
from lake.settings.records import FAILED_RECORDS
from lake.settings.routing import DAYS, is_temporary
from lake.speed import MEGABYTE
from lake.texts import format_count
from lake.time import DAY_MINUTES, minutes_of_day
from router.services import Services, in_parallel
from router.stream.spill import admit_peak_files
from router.telemetry import logger


class Attribute(StrEnum):
    """Properties of an object that no event contains: each costs a request."""

    TAGS = "tags"
    METADATA = "metadata"


@dataclass(frozen=True, slots=True)
class NotRead:
    """An attribute that S3 refuses to return; only a person can make the same request succeed."""

    reason: str
    """Why it was not read, as a phrase for people."""
    error: str = field(default="", compare=False)
    """S3's answer."""


Read = Callable[[Attribute], Mapping[str, str] | NotRead]
"""Reads an attribute of one object: its values by name."""


def peak_window(peak: PeakSettings, time_zone: str, now: datetime) -> str | None:
    """The window of ``peak.hours`` that contains ``now`` (aware), or None.

    Windows follow the wall clock of ``time_zone``: the hour that spring skips is in no window, and the hour that autumn
    repeats is in its window twice. A window that passes midnight belongs to the day on which it begins.
    """
    local = now.astimezone(ZoneInfo(time_zone))
    minute = local.hour * 60 + local.minute
    for window in peak.hours:
        start, end = map(minutes_of_day, window.split("-"))
        end += DAY_MINUTES if end <= start else 0
        for days_ago in (0, 1):
            begun_on = DAYS[(local.date() - timedelta(days=days_ago)).weekday()]
            if begun_on in peak.days and start <= minute + days_ago * DAY_MINUTES < end:
                return window
    return None


WAITS = "waits for the overnight run"
NOT_DELIVERED = "records that Firehose could not deliver, with its error: see docs/records.md"


@dataclass(frozen=True, slots=True)
class LaneDecision:
    """Lane and dataset of an arrival; both are None if the arrival is ignored."""

    lane: Lane | None
    dataset: str | None
    reason: str
    """Why it has this lane, or why the arrival is ignored: a sentence for people."""
    urgent: bool = False


def decide_lane(arrival: ObjectVersion, settings: Settings, now: datetime, read: Read = lambda _: {}) -> LaneDecision:
    """The lane of an arrival at ``now`` (aware). Raises the errors of ``read``, which is called only if it can matter.

    The order is: ignored keys; files that are too large for the stream lane; urgency by key, size, tags, metadata; peak
    hours of the dataset, if the stream lane has room (``spill``); everything else waits for the overnight run. An
    attribute that S3 refuses to return makes no file urgent.
    """
    ignored = _reason_to_ignore(arrival.key, settings)
    if ignored is not None:
        return LaneDecision(None, None, ignored)
    rule, dataset = matching_rule(arrival.key, settings.datasets)
    if rule is None or not dataset:
        return LaneDecision(None, None, reason_without_dataset(arrival.key, settings.datasets) or "")
    limit = stream_file_limit(arrival.key, settings)
    if arrival.size > limit:
        reason = f"larger than what the stream lane converts in time ({arrival.size} > {limit} bytes)"
        return LaneDecision(Lane.BATCH, dataset, reason)
    urgent, notes = _urgency(arrival, rule, settings, read)
    if urgent is not None:
        return LaneDecision(Lane.STREAM, dataset, urgent, urgent=True)
    lane, reason = Lane.BATCH, WAITS
    if rule.peak and (window := peak_window(settings.peak, settings.time_zone, now)) is not None:
        lane, reason = Lane.STREAM, f"peak hours {window} {settings.time_zone}"
    return LaneDecision(lane, dataset, "; ".join((reason, *notes)))


def spill(decision: LaneDecision) -> LaneDecision:
    """The decision on a peak file for which the stream lane has no room."""
    reason = f"{WAITS}: {decision.reason}, but the stream's backlog takes longer than stream.latency_goal_seconds"
    return replace(decision, lane=Lane.BATCH, reason=reason)


def stream_file_limit(key: str, settings: Settings) -> int:
    """Maximum size in bytes of a file of the stream lane, urgent or not.

    The cores of a streaming job can convert this size within the latency goal at the assumed speed. A file with a
    compressed name, or of concatenated objects, is read by one core.
    """
    stream, price = settings.stream, settings.price
    compressed = has_compressed_name(key)
    cores = 1 if compressed or settings.convert.concatenated else stream.cores
    speed = price.compressed_mb_per_second_per_core if compressed else price.mb_per_second_per_core
    return round(speed * cores * MEGABYTE * stream.latency_goal_seconds)


def _reason_to_ignore(key: str, settings: Settings) -> str | None:
    if key.endswith("/"):
        return "a folder marker, not a file"
    if key.startswith(FAILED_RECORDS):
        return NOT_DELIVERED
    if is_temporary(key):
        return "a temporary file of Spark, Hadoop or Hive, which put the finished file under another key"
    if settings.input.suffix_of(key) is None:
        names = ", ".join(settings.input.suffixes)
        return f'the name ends in none of {names}: add its ending to input.suffixes, or "" to take every name'
    return None


def _urgency(arrival: ObjectVersion, rule: DatasetRule, settings: Settings, read: Read) -> tuple[str | None, list[str]]:
    """Why the file is urgent, or None; and notes about attributes that were not read."""
    for key in settings.urgent.keys:
        if fnmatchcase(arrival.key, key):
            return f"urgent: the key matches {key}", []
    if rule.urgent.takes_size(arrival.size):
        return f"urgent: its size ({format_count(arrival.size, 'byte')}) is within datasets.urgent", []
    notes: list[str] = []
    for attribute, patterns in ((Attribute.TAGS, rule.urgent.tags), (Attribute.METADATA, rule.urgent.metadata)):
        found = read(attribute) if patterns else {}
        if isinstance(found, NotRead):
            notes.append(f"its {attribute} were not read: {found.reason}")
            continue
        for pattern in patterns:
            name, _, value = pattern.partition("=")
            if name in found and fnmatchcase(found[name], value):
                return f"urgent: {pattern} is in its {attribute}", []
    return None, notes


GONE_CODES = frozenset({"404", "405", "412", "MethodNotAllowed", "NoSuchKey", "NoSuchVersion", "PreconditionFailed"})
"""Error codes for a version that was deleted or replaced; HeadObject has only HTTP statuses."""
ACTIONS = {
    Attribute.TAGS: "s3:GetObjectTagging and s3:GetObjectVersionTagging",
    Attribute.METADATA: "s3:GetObject and s3:GetObjectVersion",
}
"""The actions that the role needs (Amazon S3 API Reference, GetObjectTagging and HeadObject)."""


def decide_lanes(
    services: Services, arrivals: Iterable[ObjectVersion], now: datetime
) -> dict[ObjectVersion, LaneDecision | NoAnswer]:
    """Decide on each arrival. ``NO_ANSWER`` means that S3 gave no answer, and the same request can succeed later.

    Only decisions that depend on tags or metadata cost requests: at most one for each of the two. Peak files for which
    the stream lane has no room spill to the batch lane.
    """
    files, not_read = list(arrivals), list[tuple[Attribute, NotRead]]()

    def decide(arrival: ObjectVersion) -> LaneDecision | NoAnswer:
        def read(attribute: Attribute) -> Mapping[str, str] | NotRead:
            found = read_attribute(services.s3, arrival, attribute)
            if isinstance(found, NotRead):
                not_read.append((attribute, found))
            return found

        try:
            return decide_lane(arrival, services.settings, now, read)
        except (BotoCoreError, ClientError) as error:
            logger.warning("lane not decided: the event is redelivered", key=arrival.key, error=str(error))
            return NO_ANSWER

    # Threads are worth their time only for requests.
    requests = any(rule.urgent.tags or rule.urgent.metadata for rule in services.settings.datasets)
    decisions = dict(zip(files, in_parallel(decide, files) if requests else map(decide, files), strict=True))
    _log_not_read(not_read)
    peak = {
        arrival: decision
        for arrival, decision in decisions.items()
        if decision is not NO_ANSWER and decision.lane == Lane.STREAM and not decision.urgent
    }
    if peak:
        admitted = admit_peak_files(services, peak)
        decisions.update((file, spill(decision)) for file, decision in peak.items() if file not in admitted)
    return decisions


def read_attribute(s3: S3Client, file: ObjectVersion, attribute: Attribute) -> Mapping[str, str] | NotRead:
    """Values by name, by one request; S3 returns the names of metadata in lower case.

    Raises ``BotoCoreError`` or ``ClientError`` if S3 did not answer, or still throttles after the client's retries: the
    same request can succeed later.
    """
    request = {"Bucket": file.bucket, "Key": file.key}
    if file.version_id is not None:
        request["VersionId"] = file.version_id
    try:
        if attribute == Attribute.TAGS:
            tags = s3.get_object_tagging(**request)["TagSet"]  # type: ignore[arg-type]
            return {tag["Key"]: tag["Value"] for tag in tags}
        if file.version_id is None:
            request["IfMatch"] = f'"{file.etag}"'
        return s3.head_object(**request)["Metadata"]  # type: ignore[arg-type]
    except ClientError as error:
        if can_pass(error):
            raise
        code = error_code(error)
        if code in GONE_CODES:
            return NotRead(f"the object was deleted or replaced ({code})", str(error))
        if code in RIGHTS_CODES or http_status(error) == FORBIDDEN:
            return NotRead(f"access denied ({code}), allow {ACTIONS[attribute]}", str(error))
        return NotRead(f"S3 refused the request ({code})", str(error))


def _log_not_read(found: Iterable[tuple[Attribute, NotRead]]) -> None:
    """Log one line for each reason, because a missing permission concerns many files."""
    for (attribute, value), files in Counter(found).items():
        logger.warning(
            f"{attribute} not read: the other rules decide the lane of the files",
            reason=value.reason,
            files=files,
            error=value.error,
        )
