"""The day, the night that fails in part, a person's repairs, and the night that converts the rest.

During the day files arrive in every possible way, and the stream lane fails in the middle.
"""

import hashlib
import json
import shlex
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from cli.demo.run import notifications_paused
from lake.layout import sweep_key
from lake.ledger import State
from lake.ledger.table import batches_of
from lake.manifest import Lane, ObjectVersion
from router.services import read_document
from router.stream.spill import goal_core_seconds
from router.sweep.handler import sweep
from router.sweep.missed import LISTING
from router.telemetry import logger
from tests.e2e.scenario import event_body
from tests.e2e.waiting import wait_for
from tests.night.cloud import BUCKET, Night, NightFailedError, kill, stall, wait_killed, working_run
from tests.night.files import FOLDERS, REPAIR, Day, DayFile, Part

PUT_THREADS = 4
EVENTS_PER_REQUEST = 10
"""Maximum number of messages of SendMessageBatch."""
EVENT_AGAIN_EACH, PUT_AGAIN_EACH = 25, 50
"""S3 sends the event of one in this number of files twice; the sender puts one in this number again."""
PATIENCE_SECONDS = 3600.0
"""A machine that does other work too must not fail the night."""
HOURS_LATER = timedelta(hours=3)
"""When the sweep looks for missed events: whole hours that ended ``sweep.missed_minutes`` ago."""


def run_day(night: Night, day: Day) -> None:
    """Put all files, and some events and files again; afterwards all files except the night's are converted."""
    stack = night.stack
    window = stack.sfn.start_execution(stateMachineArn=stack.outputs.stream_window, input="{}")["executionArn"]
    peak = day.of(Part.PEAK)
    _stall_the_stream(night, peak, day)
    night.log("day: files are promoted, events come twice, files are put again")
    promoted = [f"s3://{BUCKET}/{file.key}" for file in day.of(Part.PROMOTED)]
    night.command("promote", *promoted)
    known = day.of(Part.PEAK, Part.SPILLED, Part.URGENT, Part.WAITING, Part.PROMOTED, Part.DENIED)
    send_again(night, known[::EVENT_AGAIN_EACH])
    put_files(night, known[::PUT_AGAIN_EACH])
    wait_converted(night, Lane.STREAM)
    night.log("day: the stream lane is empty; files come without an event, and the sweep finds them")
    stack.sfn.stop_execution(executionArn=window)
    night.command("stream", "stop")
    with notifications_paused(stack):
        put_files(night, day.of(Part.MISSED))
    _sweep_hours_later(night, len(day.of(Part.MISSED)))


def put_files(night: Night, files: Iterable[DayFile]) -> None:
    """Put the files into the input bucket; files to be damaged are truncated."""

    def put(file: DayFile) -> None:
        put_body(night, file, file.body[: len(file.body) // 2] if file.part == Part.DAMAGED else file.body)

    with ThreadPoolExecutor(PUT_THREADS) as pool:
        list(pool.map(put, files))


def put_body(night: Night, file: DayFile, body: bytes) -> None:
    night.stack.s3.put_object(Bucket=BUCKET, Key=file.key, Body=body)


def send_again(night: Night, files: Sequence[DayFile]) -> None:
    """Send the events of the files a second time: S3 delivers events at least once."""
    queue = night.stack.outputs.arrivals_queue
    for chunk in batches_of(files, EVENTS_PER_REQUEST):
        entries = [{"Id": str(number), "MessageBody": event_body(_version(file))} for number, file in enumerate(chunk)]
        night.stack.sqs.send_message_batch(QueueUrl=queue, Entries=entries)


def wait_routed(night: Night, files: Iterable[DayFile]) -> None:
    arrivals, missing = night.stack.ledger.arrivals, [_version(file) for file in files]

    def all_routed() -> bool:
        nonlocal missing
        rows = [row for chunk in batches_of(missing) for row in arrivals.get_many(chunk)]
        missing = [file for file, row in zip(missing, rows, strict=True) if row is None]
        return not missing

    wait_for("all files to be routed", all_routed, PATIENCE_SECONDS)


def wait_converted(night: Night, *lanes: Lane) -> None:
    manifests = night.stack.ledger.manifests

    def idle() -> bool:
        states = (State.QUEUED, State.RUNNING, State.PUBLISHING)
        return not any(True for lane in lanes for state in states for _ in manifests.open(lane, state))

    wait_for(f"nothing to be open in the lanes {', '.join(lanes)}", idle, PATIENCE_SECONDS)


def _stall_the_stream(night: Night, peak: Sequence[DayFile], day: Day) -> None:
    """A run of the stream stalls while it holds manifests, peak files spill to the batch lane, and it is killed."""
    stream, first = night.stack.ledger.stream, len(peak) // 3
    night.log("day: urgent files and peak files; the stream begins to convert")
    put_files(night, [*day.of(Part.URGENT), *peak[:first]])
    run = working_run(night.stack, Lane.STREAM)
    stall(run)
    night.log("day: its run stalls; peak files pile up until the stream spills, the files of the night come")
    put_files(night, peak[first:])
    goal = 1000 * goal_core_seconds(night.settings.stream)
    wait_for("a backlog above the goal", lambda: stream.get().backlog_milliseconds > goal, PATIENCE_SECONDS)
    rest = day.of(Part.SPILLED, Part.WAITING, Part.PROMOTED, Part.DENIED, Part.GONE)
    put_files(night, [*rest, *day.of(Part.DAMAGED)])
    wait_routed(night, [*day.of(Part.URGENT), *peak, *rest])
    night.log("day: the run is killed, and another one takes over")
    kill(run)
    wait_killed(night.stack, night.stack.resources.stream_job, run)
    wait_for("the stream to spill no longer", lambda: not stream.get().spilling, PATIENCE_SECONDS)


def _sweep_hours_later(night: Night, missed: int) -> None:
    """The sweep's listing, hours later, finds the files whose events were lost, and no other."""
    services = night.scenario.services(night.settings, lambda: datetime.now(UTC) + HOURS_LATER)
    logger.setLevel("ERROR")
    adopted = sweep(services)["adopted"]
    # Each repair has a minute: on a slow machine the next sweep continues the listing.
    while read_document(services, sweep_key(LISTING))["dataset"] is not None:
        adopted += sweep(services)["adopted"]
    if adopted != missed:
        raise NightFailedError(f"{missed} files came without an event, but the sweep has found {adopted}")


def _version(file: DayFile) -> ObjectVersion:
    digest = hashlib.md5(file.body, usedforsecurity=False).hexdigest()
    return ObjectVersion(BUCKET, file.key, digest, len(file.body), "")


DENIED_ACTION = "s3:GetObject"
EXPORT = "repair.ndjson"
FINE = ("SUCCEEDED", "SUCCEEDED_WITH_QUARANTINE")


def run_nights(night: Night, day: Day) -> None:
    """Both nights, and the repair between them; afterwards nothing is open and no replaced generation is left."""
    night.stack.s3.delete_object(Bucket=BUCKET, Key=day.one(Part.GONE).key)
    night.log("night: one dataset may not be read, two files cannot be, and a run is killed")
    with _denied(night):
        failed = _failed_night(night, day)
    night.log("repair: reading is allowed, rejected lines are given back, two files are put again, one is reprocessed")
    # By the current manifests: after the repair the page would differ.
    _write_report(night, failed, "night-1.html")
    _repair(night, day)
    night.log("night after the repair")
    ended = night.document("overnight")
    repaired = night.document("night", ended["execution"].rpartition(":")[2])
    if repaired["outcome"] not in FINE:
        raise NightFailedError(f"the night after the repair ended {repaired['outcome']}: {repaired['message']}")
    wait_converted(night, Lane.STREAM, Lane.BATCH)
    _write_report(night, repaired, "night-2.html")
    night.command("report", "--date", f"{datetime.now(UTC):%Y-%m-%d}", "--output", "day.html")
    night.log("the sweep removes replaced generations")
    # An Iceberg table shows a replaced generation until a batch, requested by the sweep, expires its snapshot.
    night.stack.change_table({})
    while night.document("sweep")["deleted"] + night.stack.change_table({})["batches"]:
        pass
    _check_quarantine(night, day)


def _failed_night(night: Night, day: Day) -> dict[str, Any]:
    """A run is killed while it converts, files are put again meanwhile, and one dataset's files may not be read."""
    stack = night.stack
    arn = stack.start("overnight", {})
    run = working_run(stack, Lane.BATCH)
    kill(run)
    put_files(night, day.of(Part.WAITING)[::PUT_AGAIN_EACH])
    wait_killed(stack, stack.resources.batch_job, run)
    execution = night.scenario.ended(arn, PATIENCE_SECONDS)
    if execution["status"] != "FAILED" or DENIED_ACTION not in execution.get("cause", ""):
        raise NightFailedError(f"the night should fail and name {DENIED_ACTION}, but it ended {execution}")
    document = night.document("night", execution["name"], code=1)
    unreadable = {item["uri"] for item in document["verdict"]["unreadableFiles"]}
    expected = {f"s3://{BUCKET}/{file.key}" for file in day.of(Part.GONE, Part.DAMAGED)}
    if unreadable != expected:
        raise NightFailedError(f"unreadable should be {sorted(expected)}, but the night names {sorted(unreadable)}")
    return document


@contextmanager
def _denied(night: Night) -> Iterator[None]:
    """No job may read the files of one dataset inside the block."""
    s3 = night.stack.s3
    statement = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": f"{DENIED_ACTION}*",
        "Resource": f"arn:aws:s3:::{BUCKET}/{FOLDERS[Part.DENIED]}/*",
    }
    s3.put_bucket_policy(Bucket=BUCKET, Policy=json.dumps({"Version": "2012-10-17", "Statement": [statement]}))
    try:
        yield
    finally:
        s3.delete_bucket_policy(Bucket=BUCKET)


def _repair(night: Night, day: Day) -> None:
    """Repair the rejected lines and resubmit them, twice; restore missing files; put damaged ones again."""
    exported = night.document("quarantine", "export", EXPORT)
    rejected = sum(len(file.rejected) for file in day.files)
    if exported["lines"] != rejected:
        raise NightFailedError(f"{rejected} lines were not JSON, but the quarantine gives {exported['lines']}")
    path = night.folder / EXPORT
    path.write_bytes(b"".join(line + REPAIR + b"\n" for line in path.read_bytes().splitlines()))
    for _ in range(2):
        night.command("quarantine", "retry", EXPORT)
    gone, damaged = day.one(Part.GONE), day.one(Part.DAMAGED)
    put_body(night, gone, gone.body)
    _reprocess_as_advised(night, gone)
    put_body(night, damaged, damaged.body)
    versions = partial(night.stack.ledger.arrivals.versions, BUCKET, damaged.key)
    wait_for("the repaired file to be routed", lambda: len(versions()) == 2, PATIENCE_SECONDS)


def _reprocess_as_advised(night: Night, file: DayFile) -> None:
    """Equal bytes are the same arrival, which is not read again until a person runs the command from ``failures``."""
    uri = f"s3://{BUCKET}/{file.key}"
    failures = night.document("failures", code=1)["failures"]
    advice = next(failure for failure in failures if failure["uri"] == uri)
    words = shlex.split(advice["command"].removesuffix(night.stack.options))
    night.command(*words[1:])


def _write_report(night: Night, document: dict[str, Any], name: str) -> None:
    """Print the outcome of the night; its page has the same numbers."""
    code = 0 if document["outcome"] in FINE else 1
    print(night.command("night", document["execution"], "--limit", "5", code=code), flush=True)
    night.command("report", "--execution", document["execution"], "--output", name)
    rows = f">{document['rows']:,}</b><span>rows published"
    if rows not in (night.folder / name).read_text(encoding="utf-8"):
        raise NightFailedError(f"{name} does not say that {document['rows']:,} rows were published")


def _check_quarantine(night: Night, day: Day) -> None:
    """Each rejected line was resubmitted; only the damaged version of the repaired file is left."""
    found = night.document("quarantine", "ls")
    rejected = sum(len(file.rejected) for file in day.files)
    expected = {"lines": rejected, "resubmitted": rejected, "files": len(day.of(Part.DAMAGED))}
    if {name: found[name] for name in expected} != expected:
        raise NightFailedError(f"the quarantine should have {expected}, but has {found}")
