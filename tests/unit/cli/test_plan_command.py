"""`hybrid-router plan`: its request, its output, and its exit code."""

import json
from dataclasses import replace
from typing import Any

import pytest

from cli.cost.plan import print_plan
from lake.layout import PLAN_AHEAD_EXECUTION
from tests.unit.cli.stack_world import FORECAST, PLAN, FakeLambda, FakeServices, stack_with

OPTION = {"worker_type": "G.1X", "workers": 10, "concurrency": 4, "runs": 4, "minutes": 61.0, "dollars": 12.5}
DATASET = {"dataset": "orders", "files": 10, "bytes": 4_500_000_000, "coreSeconds": 112.5, "speedIs": "assumed"}


def answer(**changes: Any) -> dict[str, Any]:
    """An answer of ``plan``; those of ``changes`` that a forecast has are its members."""
    forecast = {
        **FORECAST,
        "other_dollars": 0.0034,
        "storage_dollars_per_month": 21.0,
        "start": "2020-11-20T22:00:00.000+00:00",
        "end": "2020-11-20T23:01:00.000+00:00",
        "deadline": "2020-11-21T06:00:00.000+00:00",
        "options": [{**OPTION, "engine": "glue-flex"}, {**OPTION, "engine": "glue", "dollars": 13.5}],
        **{name: changes.pop(name) for name in FORECAST.keys() & changes},
    }
    return {
        **PLAN,
        "engines": ["glue-flex"],
        "leftFrom": "",
        "quotas": "quota.* of the settings",
        "prices": "a price list, us-east-1, 2026-09-24",
        "datasets": [DATASET],
        "forecast": forecast,
        **changes,
    }


def printed(capsys: pytest.CaptureFixture[str], body: dict[str, Any]) -> tuple[int, str]:
    stack = replace(stack_with(FakeLambda(body)), scheduler=FakeServices())
    code = print_plan(stack)
    return code, capsys.readouterr().out


def test_a_plan_that_fits(capsys: pytest.CaptureFixture[str]) -> None:
    code, text = printed(capsys, answer())
    assert code == 0
    assert "backlog: 10 files, 4.5 GB, 2 manifests; quotas: quota.* of the settings" in text
    assert "4 runs of 10 workers on glue-flex, 4 side by side: 2020-11-20 23:00 to 2020-11-21 00:01, $12.50" in text
    assert "the deadline is 2020-11-21 07:00; times in Europe/Berlin\n" in text
    assert "from 40 minutes, $7.50 to 90 minutes, $16.00: a speed is assumed" in text
    assert "requests, ledger and functions: $0.0034; what it writes: $21.00 for each month of storage" in text
    assert "prices: a price list, us-east-1, 2026-09-24\n" in text
    assert [word for word in ("40 MB/s", "assumed", "planned", "not allowed") if word not in text] == []


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        (answer(late_minutes=0.3, fits=False), 1, "TOO LATE by 18 s: the deadline is 2020-11-21 07:00;"),
        (answer(fits=False), 0, "with less than a tenth of the time to spare"),
        (answer(runs=0, datasets=[]), 0, "nothing to convert\n"),
        (answer(leftFrom="2020-11-20T19:00:00.000+00:00"), 0, "manifests from 2020-11-20 20:00 on"),
    ],
)
def test_what_a_person_has_to_know(
    capsys: pytest.CaptureFixture[str], body: dict[str, Any], code: int, words: str
) -> None:
    found, text = printed(capsys, body)
    assert (found, words in text) == (code, True)


def test_json_is_the_answer_and_the_request_is_a_dry_run(capsys: pytest.CaptureFixture[str]) -> None:
    functions = FakeLambda(answer())
    assert print_plan(stack_with(functions), "orders", as_json=True) == 0
    assert json.loads(capsys.readouterr().out) == answer()
    ((name, event),) = functions.requests
    assert (name, event["dataset"], event["dryRun"]) == ("plan", "orders", True)
    assert event["execution"].startswith("dry-run-")
    assert "engine" not in event


def test_a_plan_of_the_whole_backlog_is_the_forecast_that_status_shows() -> None:
    functions = FakeLambda(answer())
    print_plan(stack_with(functions), as_json=True)
    assert functions.requests == [("plan", {"execution": PLAN_AHEAD_EXECUTION, "dryRun": True})]
