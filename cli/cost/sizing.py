"""``hybrid-router simulate`` and ``calibrate``: the cost of a day of files, and the speed of your own files."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo

import typer

from cli.commands import ALL_CORES, DEFAULT_PLACE, Answer, Cores, Json, Place, SettingsFile
from cli.cost.cost import parse_day
from cli.deployed_stack import connect_to_stage
from cli.terminal import print_progress, print_table
from lake.errors import InvalidInputError
from lake.settings import ConvertSettings, InputSettings, load_settings
from lake.speed import FAST, SLOW
from lake.texts import format_count, format_dollars, format_duration, format_size
from router.estimate.night import recent_waits
from sizing.arrivals import load_profile, profile_of_sizes, read_recorded, recorded_arrivals
from sizing.assumptions import Measured
from sizing.calibration import advise, measure, report_lines, toml_lines
from sizing.day import simulate, simulate_profile
from sizing.options import night_start
from sizing.result import LaneResult, NightResult, OptionResult, Simulation


def simulate_command(
    arrivals: Annotated[
        Path | None, typer.Argument(metavar="profile", help="TOML: when files of which sizes arrive.")
    ] = None,
    a_day: Annotated[
        str | None, typer.Option(help="Instead of a profile: total size of a day's files, such as 2TB.")
    ] = None,
    files_of: Annotated[str | None, typer.Option(help="With --a-day: size of each file, such as 3.5MB.")] = None,
    *,
    ledger: Annotated[
        bool, typer.Option("--from-ledger", help="Instead of a profile: the files that a stage recorded for --date.")
    ] = False,
    day: Annotated[
        str | None, typer.Option("--date", help="Local date of the night that follows the day, such as 2026-11-18.")
    ] = None,
    settings: SettingsFile = Path("settings/dev.toml"),
    place: Place = DEFAULT_PLACE,
) -> Answer:
    """Show what a day of files would look like: latency, backlog, the night and dollars, without any cloud."""
    chosen = load_settings(settings)
    asked = (arrivals is not None, a_day or files_of, ledger or day)
    whole = (arrivals is not None, a_day and files_of, ledger and day)
    if sum(map(bool, asked)) != 1 or not any(whole):
        raise typer.BadParameter("pass one of a profile, --a-day with --files-of, and --from-ledger with --date")
    if day is not None:
        stack = connect_to_stage(place)
        night = night_start(chosen, parse_day("--date", day))
        recorded = read_recorded(stack.s3, stack.resources.control_bucket, night, print_progress)
        # As for the plan of a night.
        measured = Measured(stack.ledger.datasets.speeds(), recent_waits(stack.ledger, datetime.now(UTC)))
        found = simulate(recorded_arrivals(recorded, chosen, night), chosen, print_progress, measured)
    elif arrivals is not None:
        found = simulate_profile(load_profile(arrivals), chosen, print_progress)
    else:
        files = profile_of_sizes(a_day or "", files_of or "", urgent=bool(chosen.urgent.keys))
        found = simulate_profile(files, chosen, print_progress)
    return Answer(asdict(found), lambda: _print(found, chosen.time_zone))


DAYS_OF_A_MONTH = 30
NOTHING = "-"


def _print(found: Simulation, time_zone: str) -> None:
    zone = ZoneInfo(time_zone)
    title = f"{format_count(found.files, 'file')}, {format_size(found.bytes)} a day; times in {time_zone}"
    stream = ("in the stream", "stream p50, p95", "urgent p95")
    names = ("routing", "engine of the night", *stream, "overnight", "night p50, p95")
    numbers = ("night ends", "$ a day", "requests alone", "$ a month", "low to high")
    print_table(title, names, numbers, [_option_row(option, zone) for option in found.options])
    for note in _notes(found, zone):
        typer.echo(note)
    rows = [
        (f"{item.value:g} {item.unit}".strip(), item.name, item.basis.value, item.source) for item in found.assumptions
    ]
    print_table("Assumptions", ("value", "what", "known", "source"), (), rows)


def _notes(found: Simulation, zone: ZoneInfo) -> Iterator[str]:
    """Sentences on storage, the range, and each routing: its night, its own settings, its largest backlog."""
    yield (
        f"the output of a day costs {format_dollars(max(item.dollars.storage_month for item in found.options))} for "
        "each month that it is kept; that is in no other figure"
    )
    if any(option.dollars.high > option.dollars.low for option in found.options):
        yield (
            f"low to high: S3 read {FAST:g} to {SLOW:g} times as fast as assumed. No one has measured it: the first "
            "night replaces it (simulate --from-ledger)"
        )
    if (gzip := found.as_gzip) and gzip.night:
        plain = next(option for option in found.options if option.routing == gzip.routing)
        now, then = (DAYS_OF_A_MONTH * option.dollars.total for option in (plain, gzip))
        yield (
            f"as gzip files from their writers, {gzip.routing} on {gzip.night.engine} takes ${then:,.0f} "
            f"a month, not ${now:,.0f}, and input takes {format_size(gzip.batch.bytes)}"
        )
    for option in found.options:
        if option.changes:
            yield f"{option.routing} differs from the settings: {', '.join(option.changes)}"
        if option.night:
            yield f"{option.routing}: {_night(option.night, zone)}"
        if option.peak_backlog_at:
            spilled = f"; spilled: {format_count(option.spilled_files, 'file')}" if option.spilled_files else ""
            at = datetime.fromisoformat(option.peak_backlog_at).astimezone(zone)
            backlog = format_size(option.peak_backlog_bytes)
            yield f"{option.routing}: largest backlog of the stream lane {backlog}, {at:%a %H:%M}{spilled}"
    if ignored := found.options[0].ignored_files:
        yield f"ignored, because no rule of the settings takes them: {format_count(ignored, 'file')}"


def _night(night: NightResult, zone: ZoneInfo) -> str:
    forecast = night.forecast
    start = datetime.fromisoformat(forecast.start).astimezone(zone)
    low, high = (
        f"{start + timedelta(minutes=minutes):%a %H:%M}" for minutes in (forecast.minutes_low, forecast.minutes_high)
    )
    ends = low if low == high else f"from {low} to {high}"
    return (
        f"{format_count(night.runs, 'run')}, {night.concurrency} at a time, of {night.workers} workers "
        f"{night.worker_type}; the night ends {ends}"
    )


def _option_row(option: OptionResult, zone: ZoneInfo) -> tuple[str, ...]:
    dollars, end, urgent = option.dollars, NOTHING, option.urgent_p95
    if option.night:
        forecast = option.night.forecast
        late = f", {format_duration(60 * forecast.late_minutes)} late" if forecast.late_minutes else ""
        end = f"{datetime.fromisoformat(forecast.end).astimezone(zone):%H:%M}{late}"
    low, month, high = (DAYS_OF_A_MONTH * value for value in (dollars.low, dollars.total, dollars.high))
    return (
        option.routing,
        option.night.engine if option.night else NOTHING,
        *_lane_cells(option.stream),
        NOTHING if urgent is None else format_duration(urgent),
        *_lane_cells(option.batch),
        end,
        f"{dollars.total:,.2f}",
        f"{dollars.other:,.2f}",
        f"{month:,.0f}",
        f"{low:,.0f} to {high:,.0f}",
    )


def _lane_cells(lane: LaneResult) -> tuple[str, str]:
    if not lane.files:
        return NOTHING, NOTHING
    return format_size(lane.bytes), ", ".join(format_duration(seconds or 0.0) for seconds in (lane.p50, lane.p95))


MIN_BYTES = 64 << 10
"""Minimum size of all files together: fewer bytes would be repeated for hours, and would not represent real files."""


def calibrate_command(
    files: Annotated[list[Path], typer.Argument(help="NDJSON files, or folders that hold some.")],
    goal_seconds: Annotated[
        float, typer.Option(min=0.1, max=3600, help="Approximate seconds of the longest conversion.")
    ] = 60.0,
    cores: Cores = ALL_CORES,
    output: Annotated[Path | None, typer.Option(help="Settings file to write.")] = None,
    *,
    as_json: Json = False,
) -> None:
    """Convert growing amounts of your own files on this machine, and print which settings to use."""
    paths = ndjson_files(files)
    if (size := sum(path.stat().st_size for path in paths)) < MIN_BYTES:
        raise InvalidInputError(f"the files have {size} bytes together, too few to measure: pass {MIN_BYTES} or more")
    found = measure(paths, goal_seconds, ConvertSettings(), cores, print_progress)
    advice = list(advise(found))
    body = {"measured": list(map(asdict, found)), "settings": list(map(asdict, advice))}
    text = "\n".join((*report_lines(found), "", *toml_lines(advice)))
    Answer(body, lambda: typer.echo(text)).print(as_json=as_json)
    if output is not None:
        output.write_text("\n".join(('stage = "dev"', "", *toml_lines(advice), "")), encoding="utf-8")
        if not as_json:
            typer.echo(f"\nwritten: {output}")


def ndjson_files(paths: Sequence[Path]) -> list[Path]:
    """Return the non-empty files with an NDJSON suffix among these files and folders. Raises ``InvalidInputError``."""
    suffixes = InputSettings()
    found: list[Path] = []
    for path in paths:
        if not path.exists():
            raise InvalidInputError(f"{path} does not exist: pass NDJSON files, or folders that hold some")
        inside = sorted(item for item in path.rglob("*") if item.is_file()) if path.is_dir() else [path]
        found += [item for item in inside if suffixes.suffix_of(item.name) and item.stat().st_size]
    if not found:
        raise InvalidInputError(
            f"no non-empty file ends in {', '.join(suffixes.suffixes)}: pass NDJSON files, or folders with some"
        )
    return [path.absolute() for path in found]
