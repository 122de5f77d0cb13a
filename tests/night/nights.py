"""The night that fails in part, what a person repairs after it, and the night that converts the rest."""

import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any

from lake.manifest import Lane
from tests.e2e.waiting import wait_for
from tests.night.cloud import BUCKET, Night, NightFailedError, kill, wait_killed, working_run
from tests.night.day import PATIENCE_SECONDS, PUT_AGAIN_EACH, put_body, put_files, wait_converted
from tests.night.files import FOLDERS, REPAIR, Day, DayFile, Part

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
    # By the manifests as they are now: after the repair it would be another page.
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
    # An Iceberg table shows a replaced generation until a batch expires its snapshot, for which the sweep asks.
    night.stack.change_table({})
    while night.document("sweep")["deleted"] + night.stack.change_table({})["batches"]:
        pass
    _check_quarantine(night, day)


def _failed_night(night: Night, day: Day) -> dict[str, Any]:
    """A run is killed while it converts, files are put again meanwhile, and those of one dataset may not be read."""
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
    """No job may read the files of one dataset until the block is left."""
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
    """Repair the rejected lines and give them back, twice; bring back what was gone; put what was damaged again."""
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
    """Equal bytes are the same arrival, which nothing reads again until a person runs what ``failures`` prints."""
    uri = f"s3://{BUCKET}/{file.key}"
    failures = night.document("failures", code=1)["failures"]
    advice = next(failure for failure in failures if failure["uri"] == uri)
    words = shlex.split(advice["command"].removesuffix(night.stack.options))
    night.command(*words[1:])


def _write_report(night: Night, document: dict[str, Any], name: str) -> None:
    """Print what the night has come to; its page has the same numbers."""
    code = 0 if document["outcome"] in FINE else 1
    print(night.command("night", document["execution"], "--limit", "5", code=code), flush=True)
    night.command("report", "--execution", document["execution"], "--output", name)
    rows = f">{document['rows']:,}</b><span>rows published"
    if rows not in (night.folder / name).read_text(encoding="utf-8"):
        raise NightFailedError(f"{name} does not say that {document['rows']:,} rows were published")


def _check_quarantine(night: Night, day: Day) -> None:
    """Each rejected line was given back; only the damaged version of the file that was repaired is left."""
    found = night.document("quarantine", "ls")
    rejected = sum(len(file.rejected) for file in day.files)
    expected = {"lines": rejected, "resubmitted": rejected, "files": len(day.of(Part.DAMAGED))}
    if {name: found[name] for name in expected} != expected:
        raise NightFailedError(f"the quarantine should have {expected}, but has {found}")
