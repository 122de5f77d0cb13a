"""The day: files come in every way that they can, and the stream lane fails in the middle of it."""

import hashlib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from cli.demo.run import notifications_paused
from lake.ledger import State
from lake.ledger.table import batches_of
from lake.manifest import Lane, ObjectVersion
from router.stream.spill import goal_core_seconds
from router.sweep.handler import sweep
from router.sweep.missed import LISTING
from router.sweep.repair import read_progress
from router.telemetry import logger
from tests.e2e.scenario import event_body
from tests.e2e.waiting import wait_for
from tests.night.cloud import BUCKET, Night, NightFailedError, kill, stall, wait_killed, working_run
from tests.night.files import Day, DayFile, Part

PUT_THREADS = 4
EVENTS_PER_REQUEST = 10
"""Maximum number of messages of SendMessageBatch."""
EVENT_AGAIN_EACH, PUT_AGAIN_EACH = 25, 50
"""S3 sends the event of one of this number of files twice; the sender puts one of this number again."""
PATIENCE_SECONDS = 3600.0
"""A machine that does other work too must not fail the night."""
HOURS_LATER = timedelta(hours=3)
"""When the sweep looks for missed events: whole hours that ended ``sweep.missed_minutes`` ago."""


def run_day(night: Night, day: Day) -> None:
    """Put all files, the same event and the same file again; afterwards all but those of the night are converted."""
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
    """Put the files into the input bucket; what is to be damaged is cut off."""

    def put(file: DayFile) -> None:
        put_body(night, file, file.body[: len(file.body) // 2] if file.part == Part.DAMAGED else file.body)

    with ThreadPoolExecutor(PUT_THREADS) as pool:
        list(pool.map(put, files))


def put_body(night: Night, file: DayFile, body: bytes) -> None:
    night.stack.s3.put_object(Bucket=BUCKET, Key=file.key, Body=body)


def send_again(night: Night, files: Sequence[DayFile]) -> None:
    """Send the events of the files a second time: S3 delivers events at least once."""
    queue = night.stack.outputs.arrivals_queue
    for some in batches_of(files, EVENTS_PER_REQUEST):
        entries = [{"Id": str(number), "MessageBody": event_body(_version(file))} for number, file in enumerate(some)]
        night.stack.sqs.send_message_batch(QueueUrl=queue, Entries=entries)


def wait_routed(night: Night, files: Iterable[DayFile]) -> None:
    arrivals, missing = night.stack.ledger.arrivals, [_version(file) for file in files]

    def all_routed() -> bool:
        nonlocal missing
        rows = [row for some in batches_of(missing) for row in arrivals.get_many(some)]
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
    """A run of the stream stalls with manifests in its hands, peak files spill to the batch lane, and it is killed."""
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
    # Each repair has a minute: on a slow machine the next sweep goes on with the listing.
    while read_progress(services, LISTING)["dataset"] is not None:
        adopted += sweep(services)["adopted"]
    if adopted != missed:
        raise NightFailedError(f"{missed} files came without an event, but the sweep has found {adopted}")


def _version(file: DayFile) -> ObjectVersion:
    digest = hashlib.md5(file.body, usedforsecurity=False).hexdigest()
    return ObjectVersion(BUCKET, file.key, digest, len(file.body), "")
