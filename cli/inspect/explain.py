"""``hybrid-router explain s3://...``: where a file is and why, or from which files an object was made."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import takewhile
from typing import Annotated
from zoneinfo import ZoneInfo

import typer

from cli.commands import Answer, Limit
from cli.deployed_stack import DeployedStack
from cli.documents import (
    ExplainedManifest,
    ExplainedVersion,
    FailureKind,
    FileExplanation,
    FileResult,
    ObjectExplanation,
    PublishedObject,
    ShownInTable,
    WaitsFor,
)
from cli.errors import NotFoundError
from cli.inspect.executions import log_of_run, read_next_night, running_execution
from cli.inspect.trace import Trace, read_rejected_line, trace_arrival
from cli.terminal import working
from lake.commit import PendingObject, SourceCount, find_result, read_result
from lake.layout import S3Uri, is_own_key, parse_generation, parse_s3_uri
from lake.ledger import CollectionId, ManifestRow, State
from lake.ledger.tables import with_current_mark
from lake.manifest import Lane
from lake.settings.records import FAILED_RECORDS
from lake.texts import format_clock, format_count, format_size, printable
from router.requests.selection import format_unknown_file
from router.route.decide_lane import NOT_DELIVERED


def _waits_for(row: ManifestRow, now: datetime) -> WaitsFor | None:
    if row.state == State.COLLECTED or (row.state == State.QUEUED and row.lane == Lane.BATCH):
        return "night"
    if row.state == State.QUEUED:
        return "stream"
    if row.state == State.RUNNING:
        return "job run" if row.has_live_lease(now) else "sweep"
    return "publishing" if row.open else None


def explain_object(stack: DeployedStack, name: S3Uri, limit: int) -> ObjectExplanation:
    """Return the manifest of an object, and its files with their counts.

    The rows of all files of a manifest are spread over its objects; the column ``_source`` has the file of each row.
    """
    parsed = parse_generation(name.key)
    row = stack.ledger.manifests.get(parsed[0]) if parsed else None
    if parsed is None or row is None or not is_own_key(name.key, row.partition, row.id, parsed[1]):
        raise NotFoundError(
            f"{name} is not an object that a manifest of this stack has published: check the spelling; if it exists, "
            "it is a marker, metadata of a table, or of another program"
        )
    generation, published = parsed[1], row.published
    s3, control = stack.s3, stack.resources.control_bucket
    is_current = published is not None and generation == published.generation
    result = (read_result if is_current else find_result)(s3, control, row.id, generation)
    if published is not None and generation < published.generation:
        # A generation keeps objects of an earlier one if input files were gone when it was converted.
        current = find_result(s3, control, row.id, published.generation)
        is_current = current is not None and name.key in current.etags
    sources = result.sources if result else ()
    of_lake = name.bucket == stack.resources.lake_bucket
    objects = (result.objects if of_lake else result.quarantine) if result else ()
    own = next((item for item in objects if item.key == name.key), None)
    shown = sources if of_lake else [item for item in sources if item.failed or item.rejects]
    return ObjectExplanation(
        kind="lake" if of_lake else "quarantine",
        uri=str(name),
        manifest=row.id,
        partition=str(row.partition),
        generation=generation,
        is_current=is_current,
        current_generation=published.generation if published else None,
        rows=own.rows if own else None,
        size=own.size if own else None,
        inputs=tuple(_runnable(stack, item) for item in shown[:limit]),
        omitted_inputs=max(len(shown) - limit, 0),
    )


def explain_command(
    stack: DeployedStack,
    uri: Annotated[str, typer.Argument(help="s3://bucket/key of a file, or of an object of lake or quarantine.")],
    limit: Limit = 100,
) -> Answer:
    """Show where a file is, why, and when it will be converted; or from which files an object was made."""
    name, now = parse_s3_uri(uri), datetime.now(UTC)
    with working("reading the ledger ..."):
        if name.bucket in stack.resources.output_buckets:
            found = explain_object(stack, name, limit)
            return Answer(found, lambda: print_object(found))
        file = explain_file(stack, name, limit, now)
        return Answer(file, lambda: print_file(file, now, stack.options))


def explain_file(stack: DeployedStack, name: S3Uri, limit: int, now: datetime) -> FileExplanation:
    """Return the last ``limit`` versions of a file, the oldest first."""
    arrivals = sorted(
        stack.ledger.arrivals.versions(name.bucket, name.key), key=lambda item: (item.file.arrived_at, item.recorded_at)
    )
    if not arrivals:
        if name.bucket == stack.resources.input_bucket and name.key.startswith(FAILED_RECORDS):
            raise NotFoundError(f"the ledger has no row of {name}; files under {FAILED_RECORDS} hold {NOT_DELIVERED}")
        raise NotFoundError(format_unknown_file(name, stack.resources.input_bucket))
    traces = [trace_arrival(stack.s3, stack.ledger, stack.resources, arrival) for arrival in arrivals[-limit:]]
    versions = tuple(_version(stack, trace, limit, now) for trace in traces)
    running = running_execution(stack) if any(version.waits_for == "night" for version in versions) else None
    return FileExplanation(str(name), read_next_night(stack, now), running, versions, len(arrivals) - len(versions))


def _version(stack: DeployedStack, trace: Trace, limit: int, now: datetime) -> ExplainedVersion:
    arrival = trace.arrival
    current = trace.manifests[-1] if trace.manifests else None
    outcome = _outcome(stack, trace)
    waits_for = _waits_for(current, now) if current else "sweep" if arrival.manifest else None
    own = list(takewhile(lambda row: current is not None and row.lane == current.lane, trace.manifests[::-1]))
    has_moved = own and (own[-1] is not trace.manifests[0] or own[-1].lane != arrival.lane)
    return ExplainedVersion(
        version=arrival.file.version,
        size=arrival.file.size,
        arrived_at=arrival.file.arrived_at,
        recorded_at=arrival.recorded_at,
        partition=str(arrival.partition) if arrival.partition else None,
        decided_lane=arrival.lane.value if arrival.lane else None,
        reason=arrival.reason,
        outcome=outcome,
        lane=current.lane.value if current else arrival.lane.value if arrival.lane else None,
        lane_since=own[-1].queued_at if has_moved else arrival.recorded_at if arrival.lane else None,
        waits_for=waits_for,
        manifests=tuple(_manifest(stack, row) for row in trace.manifests if row.collection is None),
        result=_result(stack, trace, limit),
    )


def _outcome(stack: DeployedStack, trace: Trace) -> str:
    source = trace.source
    current = trace.manifests[-1] if trace.manifests else None
    if current is not None and current.blocked:
        return FailureKind.BLOCKED.value
    if current is not None and current.collection is not None:
        apart = CollectionId(CollectionId.parse(current.collection).hour, current.id)
        return current.state if stack.ledger.collections.get(apart) is None else FailureKind.BLOCKED.value
    if source is None or trace.state != "DONE":
        return trace.state
    if source.failed:
        return "UNREADABLE"
    return "QUARANTINED_LINES" if source.rejects else "DONE"


def _manifest(stack: DeployedStack, row: ManifestRow) -> ExplainedManifest:
    dataset, published = row.partition.dataset, row.published
    if row.tabled:
        row = with_current_mark(row, stack.ledger.tables.get(dataset))
    shown = row.tabled
    waits = published is not None and not row.is_tabled and stack.has_table(dataset)
    runs = dict.fromkeys([*row.earlier_owners, *([row.owner] if row.owner else [])])
    return ExplainedManifest(
        manifest=row.id,
        state=row.state.value,
        lane=row.lane.value,
        partition=str(row.partition),
        generation=row.generation,
        attempt=row.attempt,
        changed_at=row.changed_at,
        reason=row.reason and stack.runnable(row.reason),
        logs={run: log_of_run(stack, run, row.lane) for run in runs},
        tabled=ShownInTable(shown.generation, shown.since, shown.batch, str(shown.snapshot)) if shown else None,
        waits_for_table=published.generation if published and waits else None,
    )


def _result(stack: DeployedStack, trace: Trace, limit: int) -> FileResult | None:
    source, result, resources = trace.source, trace.result, stack.resources
    if source is None or result is None:
        return None
    # The objects belong to all files of the manifest: a file without a row, or without a reject, is in none of them.
    files = result.objects if source.rows else ()
    quarantine = result.quarantine if source.failed or source.rejects else ()

    def objects(bucket: str, items: Sequence[PendingObject]) -> tuple[PublishedObject, ...]:
        shown = items[:limit]
        return tuple(PublishedObject(f"s3://{bucket}/{item.key}", item.rows, item.size) for item in shown)

    return FileResult(
        generation=result.generation,
        published_at=result.published_at,
        source=_runnable(stack, source),
        first_rejected_line=read_rejected_line(stack.s3, resources.quarantine_bucket, result.quarantine, source),
        parquet=objects(resources.lake_bucket, files),
        quarantine=objects(resources.quarantine_bucket, quarantine),
        omitted=sum(max(len(items) - limit, 0) for items in (files, quarantine)),
    )


def _runnable(stack: DeployedStack, source: SourceCount) -> SourceCount:
    return replace(source, failed=source.failed and stack.runnable(source.failed))


OUTCOMES = {
    "DONE": "every line became a row",
    "QUARANTINED_LINES": "converted, and lines of it are in the quarantine",
    "UNREADABLE": "not converted, it is in the quarantine by reference",
    "FAILED": "not converted; its manifest shows why",
    "RECORDED": "it has no manifest yet: its owner writes one now, or the sweep does if the owner is presumed dead",
    "IGNORED": "not converted; the next line shows why. Once the settings accept it, the sweep takes it if recent, "
    "else a backfill",
}


def print_file(document: FileExplanation, now: datetime, options: str) -> None:
    """Print the versions of a file; instants are in the stage's time zone, and commands have these options."""
    zone = ZoneInfo(document.night.time_zone)
    clock = partial(format_clock, zone=zone, now=now)
    if document.omitted_versions:
        older = format_count(document.omitted_versions, "older version")
        typer.echo(f"{printable(document.uri)}  {older}: pass a larger --limit")
    for version in document.versions:
        typer.echo(f"{printable(document.uri)}  version {version.version}  {format_size(version.size)}")
        _line("arrived", f"{clock(version.arrived_at)}, recorded {clock(version.recorded_at)}, {zone.key}")
        stays = "; what was published stays until then" if version.result and version.waits_for else ""
        _line("outcome", f"{version.outcome}: {_format_outcome(version, document, clock, options)}{stays}")
        if version.lane and version.lane_since:
            moved = f"moved from the {version.decided_lane} lane"
            why = version.reason if version.decided_lane == version.lane else moved
            _line("lane", f"{version.lane} since {clock(version.lane_since)}: {printable(why)}")
        else:
            _line("lane", f"none: {printable(version.reason)}")
        if version.partition and not version.manifests:
            _line("hour", f"{version.partition}, UTC")
        for manifest in version.manifests:
            _print_manifest(manifest, clock, options)
        if version.result:
            _print_result(version.result, clock)


def print_object(document: ObjectExplanation) -> None:
    size = "" if document.size is None else f"  {format_size(document.size)}"
    typer.echo(f"{printable(document.uri)}{size}")
    _line("manifest", f"{document.manifest}  {document.partition}  generation {document.generation}")
    if document.rows is None:
        _line("state", "it is not published: the result of this generation does not name it")
    elif document.is_current:
        _line("state", f"published, {format_count(document.rows, 'record')}")
    else:
        _line("state", f"replaced by generation {document.current_generation}: readers see that one")
    for item in document.inputs:
        text = f"{printable(item.uri)}  version {item.version}  {format_count(item.rows, 'row')}"
        if item.failed:
            text += f", unreadable: {printable(item.failed)}"
        _line("input", text + (f", quarantined {_reasons(item.rejects)}" if item.rejects else ""))
    if document.omitted_inputs:
        _line("", f"... and {document.omitted_inputs:,} more: pass a larger --limit")


def _format_outcome(
    version: ExplainedVersion, document: FileExplanation, clock: Callable[[str], str], options: str
) -> str:
    night, running = document.night, document.running
    if version.outcome == FailureKind.BLOCKED:
        part = f"its part cannot be divided: 'hybrid-router sweep{options}' names what to restore"
        attempt = "an attempt ended without a result; remove the cause that its manifest names, and it continues"
        return attempt if version.manifests else part
    if version.outcome == State.FAILED and version.result:
        return "not converted again, and what was published stays; its manifest shows why"
    if version.waits_for is None or version.outcome in OUTCOMES:
        return OUTCOMES.get(version.outcome, "it has ended")
    if version.waits_for == "night":
        now = f"by {running}, which runs now, if its plan has it, or " if running else ""
        if night.start is None:
            schedule = f"the schedule {night.schedule}" if night.enabled else "overnight, whose schedule is disabled"
            return f"will be converted {now}by {schedule}"
        done = f", expected done {clock(night.forecast.end)}" if night.forecast and night.forecast.runs else ""
        return f"will be converted {now}{clock(night.start)}{done}"
    return {
        "stream": f"waits for the streaming job: 'hybrid-router stream status{options}' shows whether it runs",
        "job run": "is being converted",
        "sweep": "its job run is presumed dead: the sweep queues it again within 15 minutes",
        "publishing": "is being published",
    }[version.waits_for]


def _print_manifest(manifest: ExplainedManifest, clock: Callable[[str], str], options: str) -> None:
    _line(
        "manifest",
        f"{manifest.manifest}  {manifest.state}  {manifest.lane} lane  {manifest.partition}  "
        f"generation {manifest.generation}, attempt {manifest.attempt}",
    )
    if manifest.reason:
        _line("", printable(manifest.reason))
    for run, log in manifest.logs.items():
        _line("", f"log of {run}: {log}")
    if shown := manifest.tabled:
        batch = f"batch {shown.batch}, snapshot {shown.snapshot}"
        _line("table", f"generation {shown.generation} since {clock(shown.since)}: {batch}")
    if manifest.waits_for_table:
        dataset = manifest.partition.partition("#")[0]
        command = f"'hybrid-router tables status {dataset}{options}'"
        _line(
            "table", f"not generation {manifest.waits_for_table} yet: {command} shows whether it is behind or stopped"
        )


def _print_result(result: FileResult, clock: Callable[[str], str]) -> None:
    source = result.source
    rejected = sum(source.rejects.values())
    _line(
        "result",
        f"{format_count(source.rows, 'row')}, {format_count(rejected, 'quarantined line')}, "
        f"{format_count(source.blank_lines, 'blank line')}, published {clock(result.published_at)}",
    )
    if source.failed:
        _line("unreadable", printable(source.failed))
    if rejected:
        _line("reasons", _reasons(source.rejects))
        _line("first", printable(": ".join(filter(None, (source.first_reject, result.first_rejected_line)))))
    for name, objects in (("parquet", result.parquet), ("quarantine", result.quarantine)):
        for item in objects:
            _line(name, f"{printable(item.uri)}  {format_count(item.rows, 'record')}, {format_size(item.size)}")
    if result.omitted:
        _line("", f"... and {result.omitted:,} more: pass a larger --limit")


def _reasons(rejects: Mapping[str, int]) -> str:
    ordered = sorted(rejects.items(), key=lambda item: -item[1])
    return ", ".join(f"{lines:,} {printable(reason)}" for reason, lines in ordered)


def _line(name: str, text: str) -> None:
    typer.echo(f"  {name:<11}{text}")
