"""`hybrid-router report`: the page of an execution and of a day, from ledger, documents and alarms."""

import json
import re
import webbrowser
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from cli.deployed_stack import DeployedStack
from cli.errors import NotFoundError
from cli.inspect.report import (
    MAX_CHANGES,
    day_report,
    night_report,
    read_alarm_changes,
    report_command,
    write_last_days,
)
from lake.errors import InvalidInputError
from lake.ledger import ManifestRow
from lake.manifest import Lane
from router.plan.handler import plan
from router.settle.handler import settle
from tests.unit.cli.stack_world import FakeServices, stack_of
from tests.unit.lake.world import MORNING, PARTITION
from tests.unit.report.reporting import cost_row
from tests.unit.router.conftest import Deployment
from tests.unit.router.settling import done


@pytest.fixture
def stack(deployment: Deployment) -> DeployedStack:
    return stack_of(deployment, FakeServices())


def night(deployment: Deployment) -> list[ManifestRow]:
    """A planned execution of three manifests: one is done, one has rejects, one has failed."""
    rows = [deployment.queued(name, partition=replace(PARTITION, hour=hour)) for hour, name in enumerate("abc")]
    plan({"execution": "overnight"}, deployment.services)
    deployment.wait(timedelta(minutes=20))
    done(deployment, rows[0], 10)
    done(deployment, rows[1], 5, rejects=2)
    deployment.ledger.manifests.fail(deployment.row(rows[2].id), "it is broken", deployment.now)
    settle({"execution": "overnight"}, deployment.services)
    return rows


def test_the_night_has_the_numbers_of_its_verdict(deployment: Deployment, stack: DeployedStack) -> None:
    # Given
    night(deployment)
    deployment.ledger.costs.record(cost_row(execution="overnight"))
    deployment.ledger.costs.record(cost_row("other", execution="another"))
    # When
    report = night_report(stack, "overnight", deployment.now)
    # Then
    (execution,) = report.executions
    verdict, total = execution.recorded, report.figures.total
    assert (total.done, total.failed, total.open) == (verdict["done"], verdict["failed"], verdict["open"]) == (2, 1, 0)
    assert (total.rows, total.rejects.total()) == (verdict["rows"], verdict["rejects"]) == (15, 2)
    assert [run.id for run in report.costs.job_runs] == ["jr_1"]
    assert [item.reason for item in report.figures.unfinished] == ["it is broken"]
    assert report.stack == "hybrid-router-dev"


def test_files_of_a_split_manifest_are_counted_once(deployment: Deployment, stack: DeployedStack) -> None:
    # Given successors that are created after their source, in the hour of their files, as by a promote
    source = deployment.queued("a", "b", "c")
    deployment.wait(timedelta(minutes=20))
    parts = [deployment.manifest("a"), deployment.manifest("b", "c")]
    deployment.superseded(source, *parts)
    for part in parts:
        done(deployment, deployment.row(part.id), 1)
    # When, Then
    report = day_report(stack, MORNING.date(), deployment.now)
    latency = report.figures.lanes[Lane.BATCH].total_latency()
    assert latency is not None
    assert (latency.files, report.figures.total.files) == (3, 3)
    assert latency.p50 >= 20 * 60


def test_a_day_has_the_files_of_its_hours_and_the_runs_that_ended_on_it(
    deployment: Deployment, stack: DeployedStack
) -> None:
    # Given a file of the day that was recorded on the next day, and a file of the next day
    night(deployment)
    deployment.wait(timedelta(days=1))
    deployment.queued("late")
    deployment.queued("next", partition=replace(PARTITION, date="2026-11-21"))
    # And a night with a job run that ended before midnight, and one that ended after it
    deployment.ledger.costs.record(cost_row("before", execution="overnight"))
    deployment.ledger.costs.record(cost_row("after", execution="overnight", minute=24 * 60))
    # When
    report = day_report(stack, MORNING.date(), deployment.now)
    # Then the day has the costs of the first job run, and the night has the costs of both
    total = report.figures.total
    assert (total.done + total.failed + total.open, total.open) == (4, 1)
    assert [run.id for run in report.costs.job_runs] == ["before"]
    (execution,) = report.executions
    assert (execution.name, [run.id for run in execution.job_runs]) == ("overnight", ["before", "after"])


def test_the_command_writes_the_page(
    deployment: Deployment, stack: DeployedStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    night(deployment)
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    page = tmp_path / "new" / "page.html"
    # When, Then
    assert report_command(stack, None, f"{stack.outputs.overnight}:overnight", page, open_page=True).code == 0
    assert "it is broken" in page.read_text()
    assert opened == [page.as_uri()]
    monkeypatch.chdir(tmp_path)
    for output, folder in ((None, tmp_path), (page.parent, page.parent)):
        assert report_command(stack, "2026-11-20", None, output).code == 0
        assert (folder / "report-2026-11-20.html").is_file()


@pytest.mark.parametrize(
    ("day", "execution", "error"),
    [
        (None, "nothing", "the ledger has no plan of 'nothing': 'hybrid-router nights' lists"),
        ("2026-11-20", "night", "pass either --date"),
        ("yesterday", None, "--date 'yesterday' is not a valid day"),
    ],
)
def test_a_wrong_request_is_refused(stack: DeployedStack, day: str | None, execution: str | None, error: str) -> None:
    with pytest.raises((InvalidInputError, NotFoundError), match=error):
        report_command(stack, day, execution, None)


def test_the_last_days_are_a_folder_whose_links_lead_to_the_reports(
    deployment: Deployment, stack: DeployedStack, tmp_path: Path
) -> None:
    # Given
    night(deployment)
    # When
    index = write_last_days(stack, tmp_path / "report", deployment.now)
    # Then
    (link,) = re.findall(r'href="(.*?)"', index.read_text())
    page = index.parent / link
    assert "it is broken" in page.read_text()


def change(alarm: str, minutes: int, states: dict[str, Any]) -> dict[str, Any]:
    return {
        "AlarmName": f"hybrid-router-dev-{alarm}",
        "Timestamp": MORNING + timedelta(minutes=minutes),
        "HistoryData": json.dumps(states),
        "HistorySummary": "updated",
    }


def alarm(name: str, topic: str = "alarm_topic") -> dict[str, Any]:
    return {"AlarmName": f"hybrid-router-dev-{name}", "AlarmActions": [topic]}


def test_alarms_of_the_stack_are_shown(deployment: Deployment) -> None:
    # Given two alarms of the stack, and one of another topic
    opened = {"newState": {"stateValue": "ALARM", "stateReason": "Threshold crossed"}}
    made = {"oldState": {"stateValue": "INSUFFICIENT_DATA"}, "newState": {"stateValue": "OK"}}
    changes = [change("Late", 2, opened), change("Late", 0, made), change("Late", 0, {}), change("Errors", 1, {})]
    services = FakeServices(
        alarms=[alarm("Late"), alarm("Errors"), alarm("Other", "other")],
        alarm_changes=[*changes, change("Other", 0, opened)],
    )
    # When
    found = read_alarm_changes(stack_of(deployment, services), MORNING, MORNING + timedelta(days=1))
    # Then
    assert [(item.name, item.state, item.reason) for item in found] == [
        ("Late", "ALARM", "Threshold crossed"),
        ("Errors", "", "updated"),
        ("Late", "", "updated"),
    ]


def test_a_flapping_alarm_does_not_fill_the_page(deployment: Deployment) -> None:
    services = FakeServices(alarms=[alarm("Late")], alarm_changes=[change("Late", 0, {})] * (MAX_CHANGES + 1))
    assert len(read_alarm_changes(stack_of(deployment, services), MORNING, MORNING)) == MAX_CHANGES
