"""The pages: they contain all data, no foreign markup; the page of the last days is bounded, newest first."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from typing import Any

import pytest

from lake.ledger import CommitReference, State, Tabled
from lake.manifest import Lane, Partition
from lake.texts import format_instant, format_size
from lake.time import iso_utc
from report.days import DAYS, MAX_LISTED, last_days, render_index
from report.executions import deadline_kept
from report.figures import ExecutionFacts, cost_figures
from report.html import MAX_ROWS, large, number, table
from report.sections import render_page
from tests.unit.report.reporting import MORNING, NIGHT, cost_row, full_report, report_of, row

RUNS = cost_figures([cost_row()]).job_runs


def night(**recorded: Any) -> ExecutionFacts:
    return replace(NIGHT, recorded={**NIGHT.recorded, **recorded}, job_runs=RUNS)


class Reader(HTMLParser):
    """Texts of a page by element, and all resources that it would load."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: list[tuple[str, str]] = []
        self.loaded: list[str] = []
        self.canvases: list[str] = []
        self._open = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open = tag
        given = dict(attrs)
        self.loaded += [f"{tag} {name}" for name in ("src", "href", "data") if name in given]
        if tag == "canvas":
            self.canvases.append(str(given["id"]))

    def handle_data(self, data: str) -> None:
        self.texts.append((self._open, data))

    def of(self, tag: str) -> list[str]:
        return [text.strip() for found, text in self.texts if found == tag and text.strip()]


def figures_of(page: str) -> Any:
    found = re.search(r'id="figures">(.*?)</script>', page, re.DOTALL)
    assert found
    return json.loads(found[1])


def test_an_empty_report_has_no_chart() -> None:
    page = render_page(report_of(executions=(), alarms=None))
    assert figures_of(page) == {}
    assert Reader(page).canvases == []
    for words in ("No file was published", "No job run has ended", "They were not read", "No execution has begun"):
        assert words in page


def test_it_has_a_place_for_each_chart_loads_nothing_and_allows_only_its_own_scripts() -> None:
    # Given
    page = render_page(full_report())
    reader = Reader(page)
    assert set(figures_of(page)) == set(reader.canvases) == {"latency", "backlog", "runs", "rejects", "cost"}
    assert reader.loaded == []
    assert "sourceMappingURL" not in page
    # And the table of a chart is folded below it
    for name in reader.canvases:
        chart = f'<canvas id="{name}" [^>]*></canvas></div>(<p>[^\n]*?</p>)?'
        assert re.search(f"{chart}<details><summary>Table", page), name
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy
    # When
    inline = re.findall(r"<(?:script|style)>(.*?)</(?:script|style)>", page, re.DOTALL)
    hashes = {f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in inline}
    # Then
    assert set(re.findall(r"'sha256-[^']*'", policy[1])) == hashes
    assert len(inline) == 3
    assert policy[1].startswith("default-src 'none'; ")


def test_text_of_others_is_shown_as_it_is() -> None:
    # Given reasons with markup and a line break, When
    reader = Reader(render_page(full_report()))
    # Then
    assert "the file s3://input/<b>evil</b>\\n is not readable" in reader.of("span")
    assert "</script><script>alert(1)</script>" in reader.of("span")
    assert reader.of("b") == [text for text in reader.of("b") if "evil" not in text]
    assert len(reader.of("script")) == 3


def test_the_commands_of_its_texts_find_the_stack() -> None:
    advice = "<b>: {}, or {}: run 'hybrid-router reprocess --manifest m1{}'"
    item = row(state=State.FAILED, reason=advice.format("'", '"', ""))
    spans = Reader(render_page(report_of(item, options=" --stage prod --local"))).of("span")
    assert advice.format("'", '"', " --stage prod --local") in spans


def test_plan_and_outcome_stand_side_by_side() -> None:
    # Given an execution with job runs of 5 minutes until 5 minutes after the plan
    done = night(outcome="SUCCEEDED")
    page = render_page(report_of(row(), costs=(cost_row(), cost_row("stream", Lane.STREAM)), executions=(done,)))

    def beside(name: str) -> list[str]:
        found = re.search(rf'<th scope="row">{name}</th><td>(.*?)</td><td>(.*?)</td>', page)
        assert found
        return list(found.groups())

    # Then
    assert beside("manifests") == ["2", "2"]
    assert beside("runs; job runs") == ["1", "1"]
    assert beside("files") == ["20", "4"]
    assert beside("bytes") == ["2 kB", "2 GB"]
    assert beside("time") == ["4 min", "5 min"]
    assert beside("dollars") == ["$1.90", "$2.00"]
    assert beside("deadline") == ["2026-11-20 10:30:00", "met"]
    assert beside("quarantined lines") == ["", "3"]


def test_an_iceberg_table_has_its_commits_and_what_it_does_not_show_yet() -> None:
    # Given two manifests of one batch, one that was replaced since, and one that waits; a dataset without a table
    shown = [iso_utc(MORNING + timedelta(seconds=seconds)) for seconds in (70, 180, 180)]
    rows = [
        row(name, tabled=Tabled(1, CommitReference("k", "0"), batch, 7, since))
        for name, batch, since in zip("abc", (3, 3, 4), shown, strict=True)
    ]
    assert rows[2].published is not None
    rows[2] = replace(rows[2], published=replace(rows[2].published, generation=2))
    waiting = row("d", seconds=90)
    hive = row("e", partition=Partition("clicks", "2026-11-20", 9))
    # When
    cells = Reader(render_page(report_of(*rows, waiting, hive))).of("td")
    # Then
    since = str(format_instant(iso_utc(MORNING + timedelta(seconds=60))))
    first = cells.index(since) - 4
    assert cells[first : first + 7] == ["orders", "2", "2", "2", since, "10 s", "2 min"]
    assert "published, not shown yet" not in render_page(report_of(hive))


def test_executions_are_in_order_of_time_and_headed_by_it() -> None:
    # Given executions that the ledger returns newest first
    hours = [f"2026-11-20T{hour:02}:30:00.000+00:00" for hour in (15, 9, 12)]
    found = tuple(replace(night(planned_at=at), name=f"n{at[11:13]}", job_runs=()) for at in hours)
    # When
    page = render_page(report_of(executions=found))
    # Then
    assert re.findall(r"<summary><b>(.*?)</b>", page) == [f"2026-11-20 {hour}:30" for hour in ("09", "12", "15")]
    assert "3 FAILED" in Reader(page).of("span")


@pytest.mark.parametrize(("seconds", "kept"), [(0, "met"), (59, "met"), (60, "1 minute late"), (170, "2 minutes late")])
def test_a_deadline_is_missed_by_whole_minutes(seconds: int, kept: str) -> None:
    deadline = iso_utc(MORNING - timedelta(seconds=seconds))
    ended = replace(night(deadline=deadline, outcome="SUCCEEDED"), job_runs=(cost_row(ended_at=iso_utc(MORNING)),))
    assert deadline_kept(ended) == kept


def test_an_execution_that_failed_has_not_met_its_deadline_and_gives_its_reason() -> None:
    # Given a job run that ended long before the deadline, and published nothing
    failed = night(message="1 manifest failed: <i>why")
    # When
    page = render_page(report_of(executions=(failed, failed)))
    # Then
    assert "not met: it failed" in page
    assert page.count("1 manifest failed: &lt;i&gt;why") == 2
    assert ">met<" not in page


def test_rows_above_the_limit_are_counted() -> None:
    text = table([{"n": number(value)} for value in range(MAX_ROWS + 7)])
    assert text.count("<tr>") == MAX_ROWS + 1
    assert "7 more rows are not shown" in text


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (format_size(999), "999 B"),
        (format_size(1_250_000), "1.25 MB"),
        (format_size(999_999), "1,000 kB"),
        (large(1_500_000_000), "1.5 billion"),
        (large(3_380_000_000_000), "3,380 billion"),
        (format_instant("2026-11-20T10:30:00.000+01:00"), "2026-11-20 09:30:00"),
        (format_instant(0.0), "1970-01-01 00:00:00"),
        (format_instant(""), ""),
    ],
)
def test_numbers_are_readable(shown: str, expected: str) -> None:
    assert shown == expected


NOW = datetime(2026, 11, 25, 6, tzinfo=UTC)
SETTLED = {"settled_at": "2026-11-24T23:30:00.000+00:00", "outcome": "SUCCEEDED", "message": "", "late_minutes": 0}


def on(day: int, hour: int = 22, **changes: object) -> dict[str, object]:
    planned_at = iso_utc(datetime(2026, 11, day, hour, tzinfo=UTC))
    return {**SETTLED, "bytes": 1000, "rows": 500, "name": f"n{day}-{hour}", "planned_at": planned_at, **changes}


def test_days_begin_with_the_first_one_that_is_known() -> None:
    days = last_days([on(22), on(24)], {"2026-11-21": 5_000_000}, NOW)
    assert [(f"{day.day:%d}", len(day.executions), day.micro_dollars) for day in days] == [
        ("25", 0, 0),
        ("24", 1, 0),
        ("23", 0, 0),
        ("22", 1, 0),
        ("21", 0, 5_000_000),
    ]


def test_a_day_with_many_executions_counts_all_and_names_a_few() -> None:
    # Given 20 executions; the first ones have failed: two, or more than the page names
    for failed, listed in ((2, (0, 1, 17, 18, 19)), (8, (4, 5, 6, 7, 19))):
        items = [on(24, hour, outcome="FAILED" if hour < failed else "SUCCEEDED") for hour in range(20)]
        # When
        (_, day) = last_days(items, {}, NOW)
        # Then
        assert (len(day.executions), day.sum_of("rows"), day.sum_of("bytes")) == (20, 10_000, 20_000)
        assert [item.name for item in day.listed] == [f"n24-{hour}" for hour in listed]
        page = render_index("stack", [day], iso_utc(NOW))
        assert f"+{20 - MAX_LISTED}" in page
        assert f"{failed} FAILED" in page
        assert '<p><span class="badge good">SUCCEEDED</span> The latest execution' in page


def test_what_failed_is_named_first_then_what_is_open() -> None:
    items = [on(24, hour, outcome=outcome) for hour, outcome in enumerate(("EMPTY", "OPEN", "FAILED"))]
    page = render_index("stack", last_days(items, {}, NOW), iso_utc(NOW))
    assert re.findall(r'badge \w+">1 (\w+)<', page) == ["FAILED", "OPEN", "EMPTY"]


def test_the_page_is_bounded() -> None:
    # Given 200 executions on each of 40 days
    items = [
        on(1) | {"planned_at": iso_utc(NOW - timedelta(days=day)), "name": str(n)}
        for day in range(40)
        for n in range(200)
    ]
    page = render_index("stack", last_days(items, {}, NOW), iso_utc(NOW))
    assert len(re.findall("href=", page)) == DAYS * MAX_LISTED
    assert page.count('<th scope="row">') == DAYS


def test_the_first_sentence_is_about_the_latest_execution() -> None:
    late = on(24, 23, outcome="FAILED", message="1 failed: <b>why, 'hybrid-router failures'", late_minutes=7)
    page = render_index("stack", last_days([on(24, 22), late], {}, NOW), iso_utc(NOW), " --stage prod")
    header = page.partition("</header>")[0]
    assert "FAILED</span> The latest execution: planned 2026-11-24 23:00" in header
    why = "1 failed: &lt;b&gt;why, &#x27;hybrid-router failures --stage prod&#x27;"
    assert f"7 minutes after its deadline. {why}" in header


def test_a_name_cannot_leave_its_folder() -> None:
    page = render_index("stack", last_days([on(24) | {"name": '../a"b c'}], {}, NOW), iso_utc(NOW))
    assert 'href="..%2Fa%22b%20c/report.html"' in page


def test_a_day_without_executions_is_shown_as_such() -> None:
    assert "No execution has ended yet" in render_index("stack", last_days([], {}, NOW), iso_utc(NOW))
