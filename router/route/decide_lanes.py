"""The lane of every arrival of an invocation: what decisions depend on, apart from the event, is read in parallel."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from botocore.exceptions import BotoCoreError, ClientError

from lake.aws_types import S3Client
from lake.faults import FORBIDDEN, NO_ANSWER, RIGHTS_CODES, NoAnswer, can_pass, error_code, http_status
from lake.manifest import Lane, ObjectVersion
from router.route.decide_lane import Attribute, LaneDecision, NotRead, decide_lane, spill
from router.services import Services, in_parallel
from router.stream.spill import admit_peak_files
from router.telemetry import logger

GONE_CODES = frozenset({"404", "405", "412", "MethodNotAllowed", "NoSuchKey", "NoSuchVersion", "PreconditionFailed"})
"""Answers for a version that was deleted or replaced; HeadObject has the HTTP status only."""
ACTIONS = {
    Attribute.TAGS: "s3:GetObjectTagging and s3:GetObjectVersionTagging",
    Attribute.METADATA: "s3:GetObject and s3:GetObjectVersion",
}
"""What the role needs (Amazon S3 API Reference, GetObjectTagging and HeadObject)."""


def decide_lanes(
    services: Services, arrivals: Iterable[ObjectVersion], now: datetime
) -> dict[ObjectVersion, LaneDecision | NoAnswer]:
    """Decide on each arrival; ``NO_ANSWER`` of S3 means that the same request can succeed later.

    Only an arrival whose decision depends on tags or metadata costs requests: at most one for each of the two. Peak
    files for which the stream lane has no room spill to the batch lane.
    """
    decisions: dict[ObjectVersion, LaneDecision | NoAnswer] = {}
    waiting: list[ObjectVersion] = []
    for arrival in arrivals:
        decision = decide_lane(arrival, services.settings, now)
        decisions[arrival] = decision
        if decision.unread is not None:
            waiting.append(arrival)
    attributes: dict[ObjectVersion, ReadAttributes] = {arrival: {} for arrival in waiting}

    def read_and_decide(arrival: ObjectVersion) -> LaneDecision | NoAnswer:
        try:
            return read_until_decided(
                lambda: decide_lane(arrival, services.settings, now, attributes[arrival]),
                lambda attribute: read_attribute(services.s3, arrival, attribute),
                attributes[arrival],
            )
        except (BotoCoreError, ClientError) as error:
            logger.warning("lane not decided: the event is redelivered", key=arrival.key, error=str(error))
            return NO_ANSWER

    if waiting:
        decisions.update(zip(waiting, in_parallel(read_and_decide, waiting), strict=True))
        _log_not_read(attributes.values())
    peak = {
        arrival: decision
        for arrival, decision in decisions.items()
        if decision is not NO_ANSWER and decision.lane == Lane.STREAM and not decision.urgent
    }
    if peak:
        admitted = admit_peak_files(services, peak)
        decisions.update((file, spill(decision)) for file, decision in peak.items() if file not in admitted)
    return decisions


ReadAttributes = dict[Attribute, Mapping[str, str] | NotRead]


def read_until_decided(
    decide: Callable[[], LaneDecision],
    read: Callable[[Attribute], Mapping[str, str] | NotRead],
    attributes: ReadAttributes,
) -> LaneDecision:
    """Read what a decision depends on into ``attributes``, and decide again; raises what ``read`` raises."""
    while (unread := (decision := decide()).unread) is not None:
        attributes[unread] = read(unread)
    return decision


def read_attribute(s3: S3Client, file: ObjectVersion, attribute: Attribute) -> Mapping[str, str] | NotRead:
    """Values by their names, which S3 gives in lower case for metadata: one request.

    Raises ``BotoCoreError``, ``ClientError``: S3 did not answer, or is throttling after the retries of the client: the
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
            return NotRead(f"access denied ({code}), needed are {ACTIONS[attribute]}", str(error))
        return NotRead(f"S3 refused the request ({code})", str(error))


def _log_not_read(read: Iterable[ReadAttributes]) -> None:
    """One line for each reason: a missing permission concerns many files."""
    values = (item for attributes in read for item in attributes.items())
    found = Counter((attribute, value) for attribute, value in values if isinstance(value, NotRead))
    for (attribute, value), files in found.items():
        logger.warning(
            f"{attribute} not read: the files take the lane of the other rules",
            reason=value.reason,
            files=files,
            error=value.error,
        )
