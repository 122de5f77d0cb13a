"""The documents of ``explain`` as pages for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from zoneinfo import ZoneInfo

import typer

from cli.documents import (
    ExplainedManifest,
    ExplainedVersion,
    FailureKind,
    FileExplanation,
    FileHour,
    FileResult,
    NextNight,
    ObjectExplanation,
)
from lake.texts import format_clock, format_count, format_size, printable, read_instant

OUTCOMES = {
    "DONE": "every line became a row",
    "QUARANTINED_LINES": "converted, and lines of it are in the quarantine",
    "UNREADABLE": "not converted, it is in the quarantine by reference",
    "FAILED": "not converted; its manifest says why",
    "IGNORED": "not converted; the next line says why",
}


def print_file(document: FileExplanation, now: datetime, options: str) -> None:
    """Every version of a file; instants are on the wall clock of the stage, and commands have these options."""
    zone = ZoneInfo(document.night.time_zone)

    def clock(text: str) -> str:
        return format_clock(read_instant(text), zone, now)

    for version in document.versions:
        typer.echo(f"{printable(document.uri)}  version {version.version}  {format_size(version.size)}")
        _line("arrived", f"{clock(version.arrived_at)}, recorded {clock(version.recorded_at)}, {zone.key}")
        _line("outcome", f"{version.outcome}: {_outcome(version, document.night, clock)}")
        if version.lane and version.lane_since:
            moved = f"moved from the {version.decided_lane} lane, as the manifest that was superseded says"
            why = version.reason if version.decided_lane == version.lane else moved
            _line("lane", f"{version.lane} since {clock(version.lane_since)}: {printable(why)}")
        else:
            _line("lane", f"none: {printable(version.reason)}")
        if version.hour:
            _line("hour", _hour(version.hour, options))
        for manifest in version.manifests:
            _print_manifest(manifest)
        if version.result:
            _print_result(version.result, clock)
        if version.put_again:
            _line("put again", f"{clock(version.put_again.at)}: {version.put_again.command} reads it")


def print_object(document: ObjectExplanation) -> None:
    """An object of lake or quarantine, and the files of its manifest."""
    size = "" if document.size is None else f"  {format_size(document.size)}"
    typer.echo(f"{printable(document.uri)}{size}")
    _line("manifest", f"{document.manifest}  {document.partition}  generation {document.generation}")
    if not document.is_published:
        _line("state", "it is not published: the result of this generation does not name it")
    elif document.is_current and document.rows is not None:
        _line("state", f"published, {format_count(document.rows, 'record')}")
    else:
        _line("state", f"replaced by generation {document.current_generation}: readers see that one")
    for item in document.inputs:
        text = f"{printable(item.uri)}  version {item.version}  {format_count(item.rows, 'row')}"
        if item.unreadable:
            text += f", unreadable: {printable(item.unreadable)}"
        _line("input", text + (f", quarantined {_reasons(item.rejects)}" if item.rejects else ""))
    if document.omitted_inputs:
        _line("", f"... and {document.omitted_inputs:,} more: pass a larger --limit")


def _hour(hour: FileHour, options: str) -> str:
    dataset, stamp = hour.dataset, hour.hour
    command = f"'hybrid-router hours --dataset {dataset} --from {stamp} --to {stamp}{options}'"
    return f"{dataset} {stamp} is {hour.state}" + (
        "" if hour.state == "complete" else f": {command} ends with 0 once it is complete"
    )


def _outcome(version: ExplainedVersion, night: NextNight, clock: Callable[[str], str]) -> str:
    expected = version.expected
    if version.outcome == FailureKind.BLOCKED:
        return "an attempt ended without a result; remove the cause, which its manifest has, then it is converted"
    if expected is None:
        return OUTCOMES.get(version.outcome, "it has ended")
    if expected.waits_for == "night":
        if expected.start is None:
            when = f"the schedule {night.schedule}" if night.enabled else "overnight, whose schedule is disabled"
            return f"waits for {when}"
        done = f", expected done {clock(expected.end)}" if expected.end else ""
        return f"will be converted {clock(expected.start)}{done}"
    return {
        "stream": "waits for the next micro-batch of the stream lane",
        "job run": "is being converted",
        "sweep": "its job run is presumed dead: the sweep queues it again within 15 minutes",
        "publishing": "is being published",
    }[expected.waits_for]


def _print_manifest(manifest: ExplainedManifest) -> None:
    shard = f", shard {manifest.shard}" if manifest.shard else ""
    _line(
        "manifest",
        f"{manifest.manifest}  {manifest.state}  {manifest.lane} lane{shard}  {manifest.partition}  "
        f"generation {manifest.generation}, attempt {manifest.attempt}",
    )
    if manifest.reason:
        _line("", printable(manifest.reason))
    if shown := manifest.tabled:
        _line("table", f"generation {shown.generation} since batch {shown.batch}, snapshot {shown.snapshot}")
    for run in manifest.job_runs:
        _line("", f"log of {run.job_run}: {run.log}" if run.log else f"attempted by {run.job_run}")


def _print_result(result: FileResult, clock: Callable[[str], str]) -> None:
    rejected = sum(result.rejects.values())
    _line(
        "result",
        f"{format_count(result.rows, 'row')}, {format_count(rejected, 'quarantined line')}, "
        f"{format_count(result.blank_lines, 'blank line')}, published {clock(result.published_at)}",
    )
    if result.unreadable:
        _line("unreadable", printable(result.unreadable))
    if rejected:
        _line("reasons", _reasons(result.rejects))
        _line("first", _first(result))
    for name, objects, omitted in (
        ("parquet", result.parquet, result.omitted.parquet),
        ("quarantine", result.quarantine, result.omitted.quarantine),
    ):
        for item in objects:
            _line(name, f"{printable(item.uri)}  {format_count(item.rows, 'record')}, {format_size(item.size)}")
        if omitted:
            _line("", f"... and {omitted:,} more: pass a larger --limit")


def _first(result: FileResult) -> str:
    line = result.first_rejected_line
    if line is None:
        return printable(result.first_reject or "")
    return f"{printable(line.reason)} at byte {line.offset:,}: {printable(line.line)}"


def _reasons(rejects: Mapping[str, int]) -> str:
    ordered = sorted(rejects.items(), key=lambda item: -item[1])
    return ", ".join(f"{lines:,} {printable(reason)}" for reason, lines in ordered)


def _line(name: str, text: str) -> None:
    typer.echo(f"  {name:<11}{text}")
