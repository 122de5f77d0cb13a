"""Lambda function ``settle``: compares the plan with the ledger, the ledger with the objects; records the verdict.

It writes the page about the execution next to the verdict document, and the page about the last days.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from lake.documents import to_json
from lake.engines.description import MICRO
from lake.errors import InvalidInputError, TransientError
from lake.faults import can_pass
from lake.layout import REPORT_INDEX, plan_summary_key, report_key, verdict_key
from lake.ledger import CostRow, ManifestRow, State
from lake.time import iso_utc
from report.collect import execution_costs, metered, read_days
from report.days import SettledExecution, render_index
from report.figures import ExecutionFacts, ManifestFigures, Report, cost_figures
from report.sections import render_page
from router.entry import with_product_errors
from router.estimate.night import measured_waits
from router.executions.run_status import current_row_pages
from router.services import Services, container_services, read_document, write_document
from router.settle.published import PublishedManifests, read_unreadable_files
from router.settle.verdict import (
    ExecutionOutcome,
    NightOutcome,
    Tally,
    Verdict,
    format_notification,
    format_quarantine,
    judge,
    read_night_outcome,
    should_notify,
)
from router.telemetry import Metric, count, logger, metrics


@with_product_errors
@metrics.log_metrics
def handler(event: dict[str, Any], context: object) -> dict[str, Any]:  # noqa: ARG001
    """``{"execution": name}`` -> the verdict, its counts, the notification and whether to send it, two URIs."""
    return settle(event, container_services())


def settle(event: Mapping[str, Any], services: Services) -> dict[str, Any]:
    """Judge an execution by the ledger and the published objects; OPEN while a manifest is worked on. Idempotent.

    A manifest whose row is damaged or missing is not done. One that was reprocessed since the plan is left out while it
    is open. Raises ``InvalidInputError``: ``execution`` is missing or was never planned; ``TransientError``: another
    settle, which began later, has recorded its verdict.
    """
    execution = event.get("execution")
    if not isinstance(execution, str) or not execution:
        raise InvalidInputError("execution is missing: pass the name of an execution that was planned")
    tally, published = Tally(now=services.clock()), PublishedManifests()
    summary = read_document(services, plan_summary_key(execution), "manifestIds", "plannedAt")
    page = ReportPage(services, execution, summary)
    for rows in current_row_pages(services, summary["manifestIds"], tally.add_lost):
        for row in rows:
            if row.open and row.queued_at > summary["plannedAt"]:
                # A person has queued it again since: the next plan has it.
                continue
            tally.add(row)
            if row.state == State.DONE:
                assert row.published is not None
                tally.add_totals(row, row.published.totals)
                published.add(row, row.published.totals)
        page.add(rows)
    # While a manifest is worked on, the verdict is OPEN and settle is called again: the objects are listed only once.
    if not tally.worked_on:
        for damage in published.find_damage(services):
            tally.add_damage(damage)
    verdict = judge(tally, services.settings.alarms.max_quarantined_share, len(summary["manifestIds"]))
    recorded = services.ledger.executions.get(execution) or {}
    if recorded.get("verdict", {}).get("settled_at", "") > iso_utc(tally.now):
        raise TransientError(f"a later settle has recorded a verdict on execution {execution} meanwhile: settle again")
    night = read_night_outcome(recorded, services.clock())
    # Also while it is OPEN: after its last round an execution ends so.
    return page.add_to(_record(services, execution, tally, verdict, night), verdict, night)


def _record(services: Services, execution: str, tally: Tally, verdict: Verdict, night: NightOutcome) -> dict[str, Any]:
    unreadable = read_unreadable_files(services, tally.unreadable)
    # The begin: of two at the same time, the one that has read the rows later has the verdict.
    settled_at = iso_utc(tally.now)
    body = {
        **_format_verdict(verdict),
        "execution": execution,
        "settledAt": settled_at,
        "night": asdict(night),
        "rejectsByReason": dict(sorted(tally.rejects.items())),
        "datasets": tally.datasets_to_json(),
        "unreadableFiles": [asdict(item) for item in unreadable],
        "notDone": [
            {"manifest": row.id, "partition": str(row.partition), "state": row.state, "reason": row.reason}
            for row in tally.not_done
        ],
        "damaged": [asdict(item) for item in tally.damaged],
    }
    uri = write_document(services, verdict_key(execution), body)
    counts = {key: value for key, value in asdict(verdict).items() if key != "outcome"}
    services.ledger.executions.record(
        execution, "verdict", {"outcome": verdict.outcome, "settled_at": settled_at, **counts}
    )
    count(Metric.FAILED_MANIFESTS, verdict.failed)
    count(Metric.OPEN_MANIFESTS, verdict.open)
    count(Metric.FAILED_FILES, verdict.failed_files)
    count(Metric.REJECTED_LINES, verdict.rejects)
    logger.info("settled", execution=execution, verdict=verdict.outcome, message_text=verdict.message)
    # What is still worked on can have most of a dataset's lines; an execution that ends so is reported by its text.
    is_open = verdict.outcome == ExecutionOutcome.OPEN
    count(Metric.DATASETS_ABOVE_QUARANTINED_SHARE, 0 if is_open else verdict.datasets_above_share)
    notify = should_notify(verdict, services.settings.alarms.notify_quarantine) or night.late_minutes > 0
    text = format_notification(
        execution,
        verdict,
        night.sentences(),
        stage=services.settings.stage,
        details=format_quarantine(tally.rejects, unreadable),
    )
    return {**_format_verdict(verdict), "notify": notify, "notification": text, "verdictUri": uri}


def _format_verdict(verdict: Verdict) -> dict[str, Any]:
    """The fields of the state machine's answer and of the verdict document."""
    facts = to_json(verdict)
    return {"verdict": facts.pop("outcome"), **facts}


PLAN_FACTS = ("engine", "runs", "manifests", "files", "bytes")


class ReportPage:
    """Collects the rows that ``settle`` reads anyway, and writes the page once the verdict is known.

    ``summary``: the summary of the plan.
    """

    def __init__(self, services: Services, execution: str, summary: Mapping[str, Any]) -> None:
        self._services, self._execution, self._summary = services, execution, summary
        self._planned_at = datetime.fromisoformat(summary["plannedAt"])
        self._figures = ManifestFigures(self._planned_at)
        self._fault: Exception | None = None
        self._costs: list[CostRow] | None = None
        self._options = f" --stage {services.settings.stage}"

    def add(self, rows: Iterable[ManifestRow]) -> None:
        """Add current rows of the execution's manifests; a fault is kept for ``add_to``."""
        try:
            for row in rows:
                self._figures.add(row)
        except Exception as error:
            self._fault = error

    def add_to(self, answer: dict[str, Any], verdict: Verdict, night: NightOutcome) -> dict[str, Any]:
        """The answer of ``settle`` with the pages' URIs, its notification with the command.

        A page that cannot be made is logged and changes nothing of the verdict: ``hybrid-router report`` makes it at
        any time. Raises botocore's error where the same can succeed later: nothing else lists the execution.
        """
        command = f"hybrid-router report --execution {self._execution}{self._options}"
        told = {**answer, "notification": f"{answer['notification']}\n\nReport: {command}"}
        for name, write in (("reportUri", self._write), ("indexUri", self._write_index)):
            try:
                told[name] = write(verdict, night)
            except Exception as error:
                if can_pass(error):
                    raise
                logger.warning(f"no {name} was written", execution=self._execution, error=str(error), exc_info=True)
        return told

    def _write_index(self, verdict: Verdict, night: NightOutcome) -> str:
        """Add the execution to the list of the last days, and write the page about them."""
        services, now = self._services, self._services.clock()
        planned_at = iso_utc(self._planned_at)
        item = SettledExecution(
            self._execution,
            planned_at,
            iso_utc(now),
            verdict.outcome,
            verdict.message,
            bytes=self._summary.get("bytes", 0),
            rows=verdict.rows,
            rejects=verdict.rejects,
            failed_files=verdict.failed_files,
            not_done=verdict.failed + verdict.open,
            late_minutes=night.late_minutes,
            waits=measured_waits(self._cost_rows(now)),
        )
        services.ledger.executions.record_settled(self._execution, planned_at, asdict(item), now)
        days = read_days(services.ledger, now)
        page = render_index(services.resources.stack, days, iso_utc(now), self._options)
        return self._put(REPORT_INDEX, page)

    def _cost_rows(self, now: datetime) -> list[CostRow]:
        if self._costs is None:
            self._costs = execution_costs(self._services.ledger, self._execution, self._planned_at, now)
        return self._costs

    def _put(self, key: str, page: str) -> str:
        bucket = self._services.resources.control_bucket
        self._services.s3.put_object(Bucket=bucket, Key=key, Body=page.encode(), ContentType="text/html; charset=utf-8")
        return f"s3://{bucket}/{key}"

    def _write(self, verdict: Verdict, _: NightOutcome) -> str:
        if self._fault is not None:
            raise self._fault
        services, now = self._services, self._services.clock()
        plan = {name: self._summary[name] for name in PLAN_FACTS}
        plan |= {"planned_at": self._summary["plannedAt"]}
        plan |= {"micro_dollars": round(self._summary["forecast"]["dollars"] * MICRO)}
        costs = cost_figures(self._cost_rows(now))
        execution = ExecutionFacts(self._execution, plan, self._summary["forecast"], asdict(verdict), costs.job_runs)
        report = Report(
            title=execution.title,
            stack=services.resources.stack,
            period=execution.period,
            made_at=iso_utc(now),
            figures=self._figures,
            costs=costs,
            executions=(execution,),
            alarms=None,
            message=verdict.message,
            metered=metered(services.ledger, self._planned_at.date(), now.date()),
            options=self._options,
        )
        return self._put(report_key(self._execution), render_page(report))
