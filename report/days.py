"""The page about the last days: one address to read each morning. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any
from urllib.parse import quote

from lake.engines.description import MICRO
from lake.layout import REPORT_PAGE
from lake.texts import format_count, format_dollars, format_instant, format_size
from report.executions import badge, outcome_badges
from report.figures import FAILED, ExecutionFacts
from report.html import large, reason_line, render_document, safe
from report.sections import number_tiles

DAYS = 30
"""Number of days on the page, including today."""
MAX_LISTED = 5
"""Maximum number of executions named for a day: the last one, then failed ones, and the latest of these."""


@dataclass(frozen=True, slots=True)
class Day:
    day: date
    micro_dollars: int = 0
    executions: list[ExecutionFacts] = field(default_factory=list)
    """In the order of their plans."""

    @property
    def outcomes(self) -> Counter[str]:
        return Counter(item.outcome for item in self.executions)

    @property
    def listed(self) -> list[ExecutionFacts]:
        """The executions that the page names, in the order of their plans."""
        rest = sorted(range(len(self.executions) - 1), key=lambda number: self.executions[number].outcome == FAILED)
        return [self.executions[number] for number in sorted(rest[1 - MAX_LISTED :])] + self.executions[-1:]

    @property
    def late_minutes(self) -> int:
        return max((item.recorded["late_minutes"] for item in self.executions), default=0)

    def sum_of(self, *counts: str) -> int:
        return sum(item.recorded.get(count, 0) for item in self.executions for count in counts)


def first_day(now: datetime) -> date:
    """The oldest day of the page; ``now`` is aware."""
    return now.astimezone(UTC).date() - timedelta(days=DAYS - 1)


def last_days(settled: Iterable[Mapping[str, Any]], micro_dollars: Mapping[str, int], now: datetime) -> list[Day]:
    """The days, newest first, beginning with the first day that has data; later days without executions are included.

    ``settled`` is from ``Executions.settled``, oldest first; ``micro_dollars`` is from ``Costs.day_sums``; ``now`` is
    aware.
    """
    days = {}
    for number in range(DAYS):
        day = first_day(now) + timedelta(days=number)
        days[str(day)] = Day(day, micro_dollars.get(str(day), 0))
    for recorded in settled:
        if (planned := recorded["planned_at"][:10]) in days:
            days[planned].executions.append(ExecutionFacts(recorded["name"], recorded))
    found = list(days.values())
    while len(found) > 1 and not found[0].executions and not found[0].micro_dollars:
        found.pop(0)
    return found[::-1]


COLUMNS = ("day", "outcome", "input", "rows", "quarantined", "unreadable", "not done", "cost", "reports")
"""Lines are quarantined, files unreadable, manifests not done."""


def render_index(stack: str, days: Sequence[Day], made_at: str, options: str = "") -> str:
    """The page in UTF-8. ``days`` are newest first, ``made_at`` is ISO 8601, UTC; ``options`` are as in ``Report``.

    Its links are relative: each leads to the report of an execution, in the folder of its name next to the page.
    """
    last = next((day.executions for day in days if day.executions), [])
    newest = max(last, key=lambda item: str(item.recorded["planned_at"]), default=None)
    period = "Executions by the day on which they were planned; cost covers both lanes."
    latest = "<p>No execution has ended yet.</p>"
    if newest is not None:
        planned_at, settled_at = (format_instant(newest.recorded[name])[:16] for name in ("planned_at", "settled_at"))
        minutes, message = newest.recorded["late_minutes"], safe(newest.recorded["message"])
        late = f", {format_count(minutes, 'minute')} after its deadline" if minutes else ""
        ended = f"planned {planned_at}, settled {settled_at}{late}"
        latest = f"<p>{badge(newest.outcome)} The latest execution: {ended}. {message}</p>"
    header = f'{latest}<p class="faint">{period} Stack {safe(stack)}; made at {format_instant(made_at)}; UTC.</p>'
    rows = "".join(_row(day, days[0]) for day in days)
    head = "".join(f'<th scope="col">{column}</th>' for column in COLUMNS)
    table = f'<table class="days"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
    charts = "".join(
        f'<figure><figcaption>{title}</figcaption><div class="chart"><canvas id="{name}" role="img" '
        f'aria-label="{title}; the table has its figures"></canvas></div></figure>'
        for name, title in (("input", "Input, by outcome"), ("quarantine", "Quarantined lines"), ("spent", "Cost"))
    )
    main = f'{_tiles(days)}<section><div class="charts">{charts}</div></section><section class="wide">{table}</section>'
    return render_document(f"The last {DAYS} days", stack, header, main, _figures(days), options)


def _tiles(days: Sequence[Day]) -> str:
    failed = sum(day.outcomes["FAILED"] for day in days)
    late = sum(day.late_minutes > 0 for day in days)
    names = ("bytes", "rows", "rejects", "failed_files")
    size, rows, quarantined, unreadable = (sum(day.sum_of(name) for day in days) for name in names)
    return number_tiles(
        [
            ("executions", f"{sum(len(day.executions) for day in days):,}", ""),
            ("failed", f"{failed:,}", "bad" if failed else ""),
            ("days with a late end", f"{late:,}", "waiting" if late else ""),
            ("input", format_size(size), ""),
            ("rows", large(rows), ""),
            ("lines in the quarantine", f"{quarantined:,}", "waiting" if quarantined else ""),
            ("unreadable files", f"{unreadable:,}", "bad" if unreadable else ""),
            ("cost", format_dollars(sum(day.micro_dollars for day in days) / MICRO), ""),
        ]
    )


def _row(day: Day, newest: Day) -> str:
    marks = outcome_badges(day.outcomes)
    late = f' <span class="waiting">{format_count(day.late_minutes, "minute")} late</span>' if day.late_minutes else ""
    more = len(day.executions) - len(day.listed)
    values = (
        (marks or f'<span class="faint">{"none yet" if day is newest else "no execution"}</span>') + late,
        format_size(day.sum_of("bytes")) if day.sum_of("bytes") else "",
        large(day.sum_of("rows")) if day.sum_of("rows") else "",
        _number(day.sum_of("rejects"), "waiting"),
        _number(day.sum_of("failed_files"), "bad"),
        _number(day.sum_of("failed", "open"), "bad"),
        format_dollars(day.micro_dollars / MICRO) if day.micro_dollars else "",
        " ".join(map(_link, day.listed)) + (f' <span class="faint">+{more:,}</span>' if more > 0 else ""),
    )
    cells = "".join(
        f'<td data-label="{name}">{value}</td>' if value else "<td></td>"
        for name, value in zip(COLUMNS[1:], values, strict=True)
    )
    reasons = "".join(reason_line(item.recorded["message"]) for item in day.listed if item.outcome == FAILED)
    why = f'<tr class="why"><td colspan="{len(COLUMNS)}">{reasons}</td></tr>' if reasons else ""
    return f'<tr><th scope="row">{day.day:%a %Y-%m-%d}</th>{cells}</tr>{why}'


def _link(item: ExecutionFacts) -> str:
    kind, clock = ' class="bad"' if item.outcome == FAILED else "", format_instant(item.recorded["planned_at"])[11:16]
    return f'<a{kind} href="{quote(item.name, safe="")}/{REPORT_PAGE}">{clock}</a>'


def _number(value: int, kind: str) -> str:
    return f'<span class="{kind}">{value:,}</span>' if value else ""


def _figures(days: Sequence[Day]) -> dict[str, Any]:
    """The bars of the charts, oldest day first, each in the colour of its worst outcome."""
    in_order = list(reversed(days))
    labels = [f"{day.day:%m-%d}" for day in in_order]
    kinds = [
        "bad" if day.outcomes["FAILED"] else "waiting" if day.sum_of("rejects") + day.sum_of("failed_files") else "good"
        for day in in_order
    ]
    series = {
        "input": ([day.sum_of("bytes") for day in in_order], kinds),
        "quarantine": ([day.sum_of("rejects") for day in in_order], ["waiting"]),
        "spent": ([day.micro_dollars / MICRO for day in in_order], ["other"]),
    }
    return {name: {"labels": labels, "values": values, "kinds": colors} for name, (values, colors) in series.items()}
