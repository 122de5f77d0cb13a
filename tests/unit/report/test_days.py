"""The page about the last days: bounded, newest first, no execution uncounted."""

import re
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta

from lake.time import iso_utc
from report.days import DAYS, MAX_LISTED, SettledExecution, last_days, render_index

NOW = datetime(2026, 11, 25, 6, tzinfo=UTC)
NIGHT = SettledExecution(
    "night",
    "2026-11-24T22:00:00.000+00:00",
    "2026-11-24T23:30:00.000+00:00",
    "SUCCEEDED",
    "",
    1000,
    500,
    0,
    0,
    0,
    0,
)


def on(day: int, hour: int = 22, **changes: object) -> dict[str, object]:
    planned_at = iso_utc(datetime(2026, 11, day, hour, tzinfo=UTC))
    return asdict(replace(NIGHT, name=f"n{day}-{hour}", planned_at=planned_at, **changes))  # type: ignore[arg-type]


def test_days_are_those_since_the_first_one_of_which_something_is_known() -> None:
    days = last_days([on(22), on(24)], {"2026-11-21": 5_000_000}, NOW)
    assert [(f"{day.day:%d}", len(day.executions), day.micro_dollars) for day in days] == [
        ("25", 0, 0),
        ("24", 1, 0),
        ("23", 0, 0),
        ("22", 1, 0),
        ("21", 0, 5_000_000),
    ]


def test_a_day_with_many_executions_counts_all_and_names_a_few() -> None:
    # Given 20 executions, of which the two first have failed
    items = [on(24, hour, outcome="FAILED" if hour < 2 else "SUCCEEDED") for hour in range(20)]
    # When
    (_, day) = last_days(items, {}, NOW)
    # Then
    assert (len(day.executions), day.sum_of("rows"), day.sum_of("bytes")) == (20, 10_000, 20_000)
    assert [item.name for item in day.listed] == ["n24-0", "n24-1", "n24-17", "n24-18", "n24-19"]
    page = render_index("stack", [day], iso_utc(NOW))
    assert f"+{20 - MAX_LISTED}" in page
    assert "2 FAILED" in page


def test_the_last_execution_of_a_day_is_named_after_many_that_failed() -> None:
    items = [on(24, hour, outcome="FAILED" if hour < 8 else "SUCCEEDED") for hour in range(9)]
    (_, day) = last_days(items, {}, NOW)
    assert [item.name for item in day.listed] == ["n24-4", "n24-5", "n24-6", "n24-7", "n24-8"]
    assert '<p><span class="badge good">SUCCEEDED</span> The latest execution' in render_index(
        "stack", [day], iso_utc(NOW)
    )


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


def test_without_executions_it_says_so() -> None:
    assert "No execution has ended yet" in render_index("stack", last_days([], {}, NOW), iso_utc(NOW))
