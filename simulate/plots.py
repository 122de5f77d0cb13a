"""A simulation as plots, each as PNG and SVG: backlog and DPUs over time, latency by lane, dollars by option."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from matplotlib.dates import DateFormatter, HourLocator

from simulate.figures import write_figures
from simulate.options import HYBRID

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

    from simulate.result import OptionResult, Series, Simulation

TERABYTE = 1e12


def write_plots(found: Simulation, folder: Path, time_zone: str) -> list[Path]:
    """Write all plots into ``folder``, which is created; returns their paths. Raises ``OSError``."""
    zone = ZoneInfo(time_zone)
    name, series = _settings_series(found)
    lanes = {"stream": series.stream_backlog_bytes, "batch": series.batch_backlog_bytes}
    plots: dict[str, Callable[[Axes], None]] = {
        f"backlog_{lane}": partial(
            _draw_backlog, title=f"Backlog of the {lane} lane, {name}", values=values, series=series, zone=zone
        )
        for lane, values in lanes.items()
    }
    plots["dpus"] = partial(_draw_dpus, found=found, zone=zone)
    plots["latency"] = partial(_draw_latency, found=found)
    plots["dollars"] = partial(_draw_dollars, found=found)
    return write_figures(plots, folder)


def _draw_backlog(axes: Axes, title: str, values: Sequence[float], series: Series, zone: ZoneInfo) -> None:
    """Waiting input of a lane."""
    axes.plot(_times(series, len(values), zone), [value / TERABYTE for value in values])  # type: ignore[arg-type]
    axes.set_ylim(bottom=0)
    _label(axes, title, "TB", zone)


def _draw_dpus(axes: Axes, found: Simulation, zone: ZoneInfo) -> None:
    """DPUs of each option, both lanes together."""
    for name, series in found.series.items():
        length = max(len(series.stream_dpus), len(series.night_dpus))
        both = [_at(series.stream_dpus, number) + _at(series.night_dpus, number) for number in range(length)]
        axes.step(_times(series, length, zone), both, where="post", label=name, linewidth=1)  # type: ignore[arg-type]
    _label(axes, "DPUs in use (of EMR Serverless four vCPUs count as one)", "DPU", zone)
    axes.legend()


def _draw_latency(axes: Axes, found: Simulation) -> None:
    """Percentiles of each option and lane that has files, on a logarithmic axis."""
    rows = list(_latency_rows(found.options))
    for offset, share in enumerate(("p50", "p95", "p99")):
        places = [number + (offset - 1) * 0.27 for number in range(len(rows))]
        axes.barh(places, [values[offset] for _, values in rows], height=0.25, label=share)
    axes.set_yticks(range(len(rows)), [name for name, _ in rows])
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel("seconds from arrival to readable rows")
    axes.set_title("Latency of files")
    axes.legend()


def _latency_rows(options: Sequence[OptionResult]) -> Iterator[tuple[str, tuple[float, ...]]]:
    seen = set()
    for option in options:
        for lane, result in (("stream", option.stream), ("night", option.batch)):
            name = f"{option.routing}, {option.engine if lane == 'night' else lane}"
            if result.files and name not in seen:
                seen.add(name)
                latency = result.latency_seconds
                yield name, tuple(value or 0.0 for value in (latency.p50, latency.p95, latency.p99))


def _draw_dollars(axes: Axes, found: Simulation) -> None:
    names = [" / ".join(filter(None, (option.routing, option.engine))) for option in found.options]
    stream = [option.dollars.stream for option in found.options]
    axes.barh(names, stream, label="stream")
    axes.barh(names, [option.dollars.night for option in found.options], left=stream, label="night")
    axes.invert_yaxis()
    axes.set_xlabel("US dollars a day: billed time of the streaming job and of the night's runs")
    axes.set_title("Dollars by option")
    axes.legend()


def _settings_series(found: Simulation) -> tuple[str, Series]:
    return next((name, series) for name, series in found.series.items() if name.startswith(HYBRID))


def _times(series: Series, length: int, zone: ZoneInfo) -> list[datetime]:
    first = datetime.fromisoformat(series.start)
    return [(first + timedelta(seconds=series.step_seconds * number)).astimezone(zone) for number in range(length)]


def _at(values: Sequence[float], number: int) -> float:
    return values[number] if number < len(values) else 0.0


def _label(axes: Axes, title: str, unit: str, zone: ZoneInfo) -> None:
    """Title, unit and the local time."""
    axes.set_title(title)
    axes.set_ylabel(unit)
    axes.grid(visible=True, alpha=0.3)
    axes.xaxis.set_major_locator(HourLocator(byhour=range(0, 24, 4), tz=zone))  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_formatter(DateFormatter("%a %H:%M", tz=zone))  # type: ignore[no-untyped-call]
