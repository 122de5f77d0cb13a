"""``settings check`` and ``explain``: explain a settings file in words, and each key."""

import json
import textwrap
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import typer

from cli.commands import Answer, Json
from cli.errors import ExitCode
from cli.terminal import print_facts
from infra.names import stack_name
from lake.engines import ENGINES
from lake.errors import InvalidInputError
from lake.settings import DatasetRule, RecordsRule, Settings, dump_settings, load_settings
from lake.settings.declaration import Field, declared_keys
from lake.settings.records import BUFFER_MIB
from lake.settings.routing import DAYS, FOLDER
from lake.texts import format_count, format_dollars, format_duration, printable
from lake.time import DAY_MINUTES, Schedule, minutes_of_day

FACTS = ("meaning", "unit", "required", "default", "allowed")


def settings_check_command(
    path: Annotated[Path, typer.Argument(help="Settings file of a stage.")], *, as_json: Json = False
) -> int:
    """Show every wrong value of a settings file (exit code 2), or what the file means; --json: all values."""
    settings = load_settings(path)
    if as_json:
        typer.echo(dump_settings(settings))
        return ExitCode.OK
    typer.echo(f"ok: {printable(str(path))} is valid")
    print_facts([*summary(settings), *(("warning", text) for text in warnings(settings))])
    return ExitCode.OK


def settings_explain_command(
    key: Annotated[str, typer.Argument(help="A key such as stream.trigger_seconds, or a table such as stream.")],
) -> Answer:
    """Show meaning, unit, default and allowed values of a settings key."""
    every = dict(declared_keys(Settings))
    found = {name: field for name, field in every.items() if name == key or name.startswith(f"{key}.")}
    if not found:
        close = get_close_matches(key, every, n=3)
        advice = f"did you mean {' or '.join(close)}" if close else "pass a key such as stream.engine, or a table"
        raise InvalidInputError(f"there is no settings key {key!r}: {advice}")
    keys = [{"key": name} | {fact: getattr(field, fact) for fact in FACTS} for name, field in found.items()]
    return Answer({"keys": keys}, lambda: _print_keys(found))


def _print_keys(found: Mapping[str, Field]) -> None:
    for number, (name, field) in enumerate(found.items()):
        typer.echo(f"{chr(10) if number else ''}{name}")
        typer.echo(textwrap.fill(field.meaning, 100, initial_indent="  ", subsequent_indent="  "))
        default = "none, the key is required" if field.required else json.dumps(field.default)
        unit = [("unit", field.unit)] if field.unit else []
        for label, text in [*unit, ("default", default), ("allowed", field.allowed)]:
            typer.echo(f"  {label:<9}{text}")


def summary(settings: Settings) -> Iterator[tuple[str, str]]:
    yield "stage", f"{settings.stage}: the stack {stack_name(settings.stage)}; times are in {settings.time_zone}"
    owner = f"your bucket {settings.input.bucket}" if settings.input.bucket else "a bucket that the stack creates"
    yield "input", f"{owner}; keys that end in {', '.join(suffix or 'anything' for suffix in settings.input.suffixes)}"
    for rule in settings.datasets:
        yield "dataset", _rule(rule)
    for record in settings.records:
        yield "records", _records(record, settings)
    yield "stream lane", _stream(settings)
    if _has_peak(settings):
        start = Schedule.parse(settings.schedule.stream_start).describe()
        yield "", f"its window is {start} to {settings.schedule.stream_end}"
    night = settings.schedule
    when = Schedule.parse(night.overnight).describe()
    yield "batch lane", f"everything else, {when}, to be complete by {night.deadline}"
    yield "engines", _engines(settings)
    yield "alarms", f"to {settings.alarms.email or 'the subscribers of the topic'}"


def warnings(settings: Settings) -> Iterator[str]:
    """Valid values that may not be intended: times that overlap or leave something out, and what only AWS can check."""
    if settings.ledger.keep_days and settings.input.bucket:
        keep = f"ledger.keep_days = {settings.ledger.keep_days}"
        yield f"{keep}: your bucket {settings.input.bucket} has to keep versions; 'hybrid-router doctor' checks it"
    schedule = settings.schedule
    stream, night = Schedule.parse(schedule.stream_start), Schedule.parse(schedule.overnight).minute
    if not _has_peak(settings) or (start := stream.minute) is None:
        return
    end = minutes_of_day(schedule.stream_end)
    peaks = {window: tuple(map(minutes_of_day, window.split("-"))) for window in settings.peak.hours}
    if night is not None and _is_inside(night, start, end):
        yield f"schedule.overnight = {schedule.overnight!r}: the night begins inside the stream window"
    if end < start and not any(last < first for first, last in peaks.values()):
        duration = format_duration(60 * (end - start + DAY_MINUTES))
        yield (
            f"schedule.stream_end = {schedule.stream_end!r}: it is before schedule.stream_start, so the stream window "
            f"passes midnight and lasts {duration}"
        )
    is_every_day = stream.days is None or stream.days >= set(map(DAYS.index, settings.peak.days))
    for window, (first, last) in peaks.items():
        minutes = (first, (last - 1) % DAY_MINUTES)
        if not (is_every_day and all(_is_inside(minute, start, end) for minute in minutes)):
            hours = f"peak.hours = {window!r} on {', '.join(settings.peak.days)}"
            yield f"{hours}: a part of it is outside of the stream window, whose files wait for a run"


def _is_inside(minute: int, start: int, end: int) -> bool:
    return start <= minute < end if start < end else minute >= start or minute < end


def _has_peak(settings: Settings) -> bool:
    return bool(settings.peak.hours and settings.peak.days)


def _rule(rule: DatasetRule) -> str:
    where = f"keys that begin with {rule.prefix}" if rule.prefix else "all other keys"
    name = rule.name
    if name == FOLDER:
        where = f"keys below {rule.prefix}" if rule.prefix else "keys in a folder"
        name = "the name of the folder that follows" if rule.prefix else "the name of the first folder"
    peak = "" if rule.peak else "; peak hours do not count, only urgent files take the stream lane"
    of = rule.urgent
    causes = {"size": of.min_bytes or of.max_bytes, "tags": of.tags, "metadata": of.metadata}
    named = ", ".join(name for name, values in causes.items() if values)
    return f"{where}: {name}{peak}" + (f"; urgent at any hour: files by their {named}" if named else "")


def _records(record: RecordsRule, settings: Settings) -> str:
    source = f"topic {record.msk_topic} of {record.msk_cluster}" if record.msk_cluster else record.kinesis_stream
    # With a time of 0 Firehose collects nothing.
    times = f"every {record.buffer_seconds} s or {BUFFER_MIB} MiB" if record.buffer_seconds else "within seconds"
    folder = record.folder(settings.datasets)
    return f"{record.name}: {source} becomes files under {folder}, {times}"


def _stream(settings: Settings) -> str:
    stream, peak = settings.stream, settings.peak
    parts = []
    if settings.urgent.keys:
        parts.append(f"keys that match {', '.join(settings.urgent.keys)} at any hour")
    if _has_peak(settings):
        days = "every day" if set(peak.days) == set(DAYS) else f"on {', '.join(peak.days)}"
        parts.append(f"all files that arrive {days} in {', '.join(peak.hours)}")
        parts.append(f"unless more wait than {stream.cores} cores convert in {stream.latency_goal_seconds} s")
    files = ", ".join(parts) or "no files, except promoted ones"
    jobs = "" if stream.jobs == 1 else f" in each of {stream.jobs} streaming jobs"
    workers = f"{stream.min_executors} to {stream.max_workers - 1} executors {stream.worker_type}{jobs}"
    dollars = stream.units_with(stream.min_executors).at(ENGINES[stream.engine].prices(settings))
    quiet = f"{format_dollars(dollars)} an hour while one is quiet"
    return f"{files}; every {stream.trigger_seconds} s, on {stream.engine} a driver and {workers}, {quiet}"


def _engines(settings: Settings) -> str:
    batch = settings.batch
    runs = max(settings.max_overnight_runs if batch.uses_glue else 0, settings.max_emr_runs if batch.uses_emr else 0)
    count = format_count(runs, "job run")
    workers = f"{format_count(batch.workers, 'worker')} {batch.worker_type} each"
    return f"{', '.join(batch.engines)}: {count} at the same time, {workers}"
