"""The page about an execution, next to its verdict document, and the page about the last days."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from lake.bills import MICRO
from lake.layout import REPORT_INDEX, report_key
from lake.time import iso_utc
from report.collect import execution_costs, read_days
from report.costs import cost_figures
from report.days import SettledExecution, render_index
from report.figures import ManifestFigures
from report.model import ExecutionFacts, Report
from report.page import render_page
from router.settle.verdict import MINUTE, ExecutionOutcome
from router.telemetry import logger

if TYPE_CHECKING:
    from lake.ledger import ManifestRow
    from router.services import Services

PLAN_FACTS = ("engine", "runs", "manifests", "files", "bytes")


class ReportPage:
    """Collects the rows that ``settle`` reads anyway, and writes the page once the verdict is known.

    Parameters
    ----------
    summary
        The summary of the plan.
    """

    def __init__(self, services: Services, execution: str, summary: Mapping[str, Any]) -> None:
        self._services, self._execution, self._summary = services, execution, summary
        planned_at = summary.get("plannedAt")
        self._planned_at = services.clock() if planned_at is None else datetime.fromisoformat(planned_at)
        self._figures = ManifestFigures(self._planned_at)
        self._fault: Exception | None = None

    def add(self, rows: Iterable[ManifestRow]) -> None:
        """Add current rows of the execution's manifests; a fault is kept for ``add_to``."""
        try:
            for row in rows:
                self._figures.add(row)
        except Exception as error:
            self._fault = error

    def add_to(self, answer: dict[str, Any]) -> dict[str, Any]:
        """The answer of ``settle`` with the pages' URIs, its notification with the command. Unchanged while it is OPEN.

        A page that cannot be made is logged and changes nothing of the verdict, whatever the fault:
        ``hybrid-router report`` makes it at any time.
        """
        if answer["verdict"] == ExecutionOutcome.OPEN:
            return answer
        command = f"hybrid-router report --execution {self._execution} --stage {self._services.settings.stage}"
        told = {**answer, "notification": f"{answer['notification']}\n\nReport: {command}"}
        for name, write in (("reportUri", self._write), ("indexUri", self._write_index)):
            try:
                told[name] = write(answer)
            except Exception as error:
                logger.warning(f"no {name} was written", execution=self._execution, error=str(error), exc_info=True)
        return told

    def _write_index(self, answer: Mapping[str, Any]) -> str:
        """Add the execution to the list of the last days, and write the page about them."""
        services, now = self._services, self._services.clock()
        planned_at, deadline = iso_utc(self._planned_at), self._summary.get("forecast", {}).get("deadline")
        late = now - datetime.fromisoformat(deadline) if deadline else timedelta()
        item = SettledExecution(
            self._execution,
            planned_at,
            iso_utc(now),
            answer["verdict"],
            answer["message"],
            bytes=self._summary.get("bytes", 0),
            rows=answer["rows"],
            rejects=answer["rejects"],
            failed_files=answer["failedFiles"],
            not_done=answer["failed"] + answer["open"],
            late_minutes=max(late // MINUTE, 0),
        )
        services.ledger.executions.record_settled(self._execution, planned_at, asdict(item), now)
        page = render_index(services.resources.stack, read_days(services.ledger, now), iso_utc(now))
        return self._put(REPORT_INDEX, page)

    def _put(self, key: str, page: str) -> str:
        bucket = self._services.resources.control_bucket
        self._services.s3.put_object(Bucket=bucket, Key=key, Body=page.encode(), ContentType="text/html; charset=utf-8")
        return f"s3://{bucket}/{key}"

    def _write(self, answer: Mapping[str, Any]) -> str:
        if self._fault is not None:
            raise self._fault
        services, now = self._services, self._services.clock()
        plan = {name: self._summary[name] for name in PLAN_FACTS}
        plan |= {"planned_at": self._summary["plannedAt"]}
        plan |= {"micro_dollars": round(self._summary["forecast"]["dollars"] * MICRO)}
        verdict = {
            "outcome": answer["verdict"],
            "message": answer["message"],
            "failed_files": answer["failedFiles"],
            "damaged_objects": answer["damagedObjects"],
            **{name: answer[name] for name in ("done", "failed", "open", "rows", "rejects")},
        }
        costs = cost_figures(execution_costs(services.ledger, self._execution, self._planned_at, now))
        report = Report.of_execution(
            ExecutionFacts(self._execution, plan, self._summary["forecast"], verdict, costs.job_runs),
            stack=services.resources.stack,
            made_at=iso_utc(now),
            figures=self._figures,
            costs=costs,
            alarms=None,
            message=answer["message"],
        )
        return self._put(report_key(self._execution), render_page(report))
