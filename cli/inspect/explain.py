"""``hybrid-router explain s3://...``: where a file is and why, or from which files an object was made."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import typer

from cli.deployed_stack import DeployedStack
from cli.documents import (
    ExplainedManifest,
    ExplainedVersion,
    FailureKind,
    FileExplanation,
    FileHour,
    FileResult,
    JobRunLog,
    NextNight,
    ObjectExplanation,
    OmittedObjects,
    PublishedObject,
    PutAgain,
    ShownInTable,
)
from cli.exit_codes import ExitCode, NotFoundError
from cli.inspect.expected import expectation, read_next_night
from cli.inspect.explain_object import explain_object
from cli.inspect.explain_output import print_file, print_object
from cli.inspect.first_reject import read_first_reject
from cli.inspect.run_logs import log_of_run
from cli.inspect.trace import Trace, trace_arrival
from cli.inspect.unreadable import find_put_again
from cli.progress import shown_when_slow
from lake.json_document import format_json
from lake.ledger import ManifestRow, State
from lake.manifest import Lane
from lake.partition import Partition
from lake.s3_uri import S3Uri, parse_s3_uri
from lake.settings.records import FAILED_RECORDS
from router.requests.find import format_unknown_file
from router.route.decide_lane import NOT_DELIVERED


def print_explanation(stack: DeployedStack, uri: str, limit: int, *, as_json: bool) -> int:
    """Print every recorded version of a file, or the inputs of an object of lake or quarantine; the exit code.

    It is 1 if the ledger does not know it. ``limit`` is the maximum number of entries of each list.
    """
    name, now = parse_s3_uri(uri), datetime.now(UTC)
    document: FileExplanation | ObjectExplanation | None
    with shown_when_slow("reading the ledger ..."):
        if name.bucket in stack.resources.output_buckets:
            document = explain_object(stack, name, limit)
        else:
            document = explain_file(stack, name, limit, now)
    if document is None:
        raise NotFoundError(_unknown(stack, name))
    if as_json:
        typer.echo(format_json(document))
    elif isinstance(document, FileExplanation):
        print_file(document, now, stack.options)
    else:
        print_object(document)
    return ExitCode.FINE


def explain_file(stack: DeployedStack, name: S3Uri, limit: int, now: datetime) -> FileExplanation | None:
    """All that ``explain`` shows of a file, oldest version first; None: the ledger has no arrival of it."""
    arrivals = stack.ledger.arrivals.versions(name.bucket, name.key)
    if not arrivals:
        return None
    traces = [
        trace_arrival(stack.s3, stack.ledger, stack.resources, arrival)
        for arrival in sorted(arrivals, key=lambda item: item.recorded_at)
    ]
    night = read_next_night(stack, now)
    return FileExplanation(str(name), night, tuple(_version(stack, trace, night, limit, now) for trace in traces))


def _version(stack: DeployedStack, trace: Trace, night: NextNight, limit: int, now: datetime) -> ExplainedVersion:
    arrival = trace.arrival
    current = trace.manifests[-1] if trace.manifests else None
    return ExplainedVersion(
        version=arrival.file.version,
        size=arrival.file.size,
        arrived_at=arrival.file.arrived_at,
        recorded_at=arrival.recorded_at,
        decided_lane=arrival.lane.value if arrival.lane else None,
        reason=arrival.reason,
        outcome=_outcome(trace),
        lane=current.lane.value if current else None,
        lane_since=_lane_since(trace),
        expected=expectation(current, night, now) if current else None,
        hour=_hour(stack, arrival.partition),
        manifests=tuple(_manifest(stack, row) for row in trace.manifests if row.collection is None),
        result=_result(stack, trace, limit),
        put_again=_put_again(stack, trace),
    )


def _hour(stack: DeployedStack, partition: Partition | None) -> FileHour | None:
    """The hour of the rows; None: the ledger knows none."""
    if partition is None:
        return None
    row = stack.ledger.partitions.get(partition)
    if not row.touched:
        return None
    return FileHour(partition.dataset, partition.stamp, row.state.value)


def _outcome(trace: Trace) -> str:
    """The state of the current manifest, or what became of the file where that is DONE."""
    source = trace.source
    current = trace.manifests[-1] if trace.manifests else None
    if current is not None and current.state == State.QUEUED and current.reason is not None:
        return FailureKind.BLOCKED.value
    if source is None or trace.state != "DONE":
        return trace.state
    if source["failed"]:
        return "UNREADABLE"
    return "QUARANTINED_LINES" if sum(source["rejects"].values()) else "DONE"


def _put_again(stack: DeployedStack, trace: Trace) -> PutAgain | None:
    """When the bytes of an unreadable file were put again, and the command that reads them; None: they were not."""
    at = find_put_again(stack.s3, trace.arrival.file) if _outcome(trace) == "UNREADABLE" else None
    command = f"hybrid-router reprocess --manifest {trace.manifests[-1].id}{stack.options}" if at else ""
    return PutAgain(at, command) if at else None


def _lane_since(trace: Trace) -> str | None:
    """When the first of the last manifests that are all of the current lane was made."""
    since = None
    for row in reversed(trace.manifests):
        if row.lane != trace.manifests[-1].lane:
            break
        since = row.created_at
    return since


def _manifest(stack: DeployedStack, row: ManifestRow) -> ExplainedManifest:
    shown = row.tabled
    runs = dict.fromkeys([*row.earlier_owners, *([row.owner] if row.owner else [])])
    return ExplainedManifest(
        manifest=row.id,
        state=row.state.value,
        lane=row.lane.value,
        shard=_shard(stack, row),
        partition=str(row.partition),
        generation=row.generation,
        attempt=row.attempt,
        changed_at=row.changed_at,
        reason=row.reason and stack.runnable(row.reason),
        job_runs=tuple(JobRunLog(run, log_of_run(stack, run, row.lane)) for run in runs),
        tabled=ShownInTable(shown.generation, shown.batch, str(shown.snapshot)) if shown else None,
    )


def _shard(stack: DeployedStack, row: ManifestRow) -> str | None:
    """The shard to which a manifest of the stream lane goes; None: there is one only."""
    shards = stack.outputs.shards
    is_divided = row.lane == Lane.STREAM and len(shards.names) > 1
    return shards.of(row.id) if is_divided else None


def _result(stack: DeployedStack, trace: Trace, limit: int) -> FileResult | None:
    source, result, resources = trace.source, trace.result, stack.resources
    if source is None or result is None:
        return None

    def objects(bucket: str, items: Sequence[dict[str, Any]]) -> tuple[PublishedObject, ...]:
        shown = items[:limit]
        return tuple(PublishedObject(f"s3://{bucket}/{item['key']}", item["rows"], item["size"]) for item in shown)

    files, quarantine = result["files"], result["quarantine"]
    return FileResult(
        generation=result["generation"],
        published_at=result["published_at"],
        lines=source["lines"],
        rows=source["rows"],
        blank_lines=source["blank_lines"],
        rejects={reason: lines for reason, lines in source["rejects"].items() if lines},
        unreadable=source["failed"],
        first_reject=source["first_reject"],
        first_rejected_line=read_first_reject(stack.s3, resources.quarantine_bucket, quarantine, source),
        parquet=objects(resources.lake_bucket, files),
        quarantine=objects(resources.quarantine_bucket, quarantine),
        omitted=OmittedObjects(max(len(files) - limit, 0), max(len(quarantine) - limit, 0)),
    )


def _unknown(stack: DeployedStack, name: S3Uri) -> str:
    resources = stack.resources
    if name.bucket == resources.input_bucket:
        if name.key.startswith(FAILED_RECORDS):
            return f"the ledger has no row of {name}; files under {FAILED_RECORDS} hold {NOT_DELIVERED}"
        return format_unknown_file(name)
    if name.bucket in resources.output_buckets:
        return (
            f"{name} is not an object that a manifest of this stack has published: check the spelling; if it exists, "
            "another program has put it there"
        )
    return (
        f"{name.bucket} is not the input bucket of the stack {stack.name}: files arrive in "
        f"s3://{resources.input_bucket}/, converted ones are in s3://{resources.lake_bucket}/; pass --stage of the "
        "stack that you mean"
    )
