"""Lambda function ``settle``: compares plan and ledger, then ledger and objects, and records the verdict.

It also writes the page about the execution, next to the verdict document, and the page about the last days.
"""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from lake.documents import to_json
from lake.errors import InvalidInputError, TransientError
from lake.faults import can_pass
from lake.layout import REPORT_INDEX, plan_summary_key, report_key, verdict_key
from lake.ledger import State
from lake.texts import format_count
from lake.time import iso_utc
from report.collect import execution_costs, metered, read_days
from report.days import render_index
from report.figures import ManifestFigures, execution_report
from report.sections import render_page
from router.entry import lambda_handler
from router.estimate.night import measured_waits
from router.executions.run_status import current_row_pages
from router.services import Services, read_document, write_document
from router.settle.published import PublishedManifests, read_unreadable_files
from router.settle.verdict import (
    ExecutionOutcome,
    Tally,
    Verdict,
    format_notification,
    format_quarantine,
    judge_execution,
    minutes_late,
    should_notify,
)
from router.telemetry import Metric, count, logger


def settle(event: Mapping[str, Any], services: Services) -> dict[str, Any]:
    """Judge an execution by the ledger and the published objects; OPEN while a manifest is worked on. Idempotent.

    A manifest with a damaged or missing row is not done. A manifest that was reprocessed since the plan is omitted
    while it is open. Raises ``InvalidInputError`` if ``execution`` is missing or was never planned; ``TransientError``
    if another settle, which began later, has recorded its verdict.
    """
    execution = event.get("execution")
    if not isinstance(execution, str) or not execution:
        raise InvalidInputError("execution is missing: pass the name of an execution that was planned")
    summary = read_document(services, plan_summary_key(execution), "manifestIds", "plannedAt")
    planned_at = datetime.fromisoformat(summary["plannedAt"])
    tally, published = Tally(now=services.clock()), PublishedManifests(services.resources)
    figures, defect = ManifestFigures(planned_at), None
    for rows in current_row_pages(services, summary["manifestIds"], tally.add_lost):
        try:
            for row in rows:
                figures.add(row)
        except Exception as error:
            defect = error
        for row in rows:
            if row.open and row.queued_at > summary["plannedAt"]:
                # A person has queued it again since, so it belongs to the next plan.
                continue
            tally.add(row)
            if row.state == State.DONE:
                published.add(row)
    # If a manifest is worked on, the verdict is OPEN and settle is called again: the objects are listed only once.
    if not tally.in_progress:
        tally.damaged_objects, tally.damaged = published.find_damage(services)
    verdict = judge_execution(tally, services.settings.alarms.max_quarantined_share, len(summary["manifestIds"]))
    earlier = services.ledger.executions.facts(execution)
    if earlier.get("settled_at", "") > iso_utc(tally.now):
        raise TransientError(f"a later settle has recorded a verdict on execution {execution} meanwhile: settle again")
    # The start time is recorded: of two concurrent settles, the later one to start decides.
    decided = {"settled_at": iso_utc(tally.now), "late_minutes": minutes_late(earlier, services.clock())}
    recorded = {"planned_at": summary["plannedAt"], **earlier, **asdict(verdict), **decided}
    answer = _record(services, execution, tally, verdict, recorded)
    # Also for OPEN, because an execution can end with it after its last round.
    _write_pages(services, execution, recorded, defect or figures)
    return answer


handler = lambda_handler(settle)
"""``{"execution": name}`` -> the verdict, its counts, the notification and whether to send it, its URI."""


def _record(
    services: Services, execution: str, tally: Tally, verdict: Verdict, recorded: Mapping[str, Any]
) -> dict[str, Any]:
    """``recorded``: the facts of the plan and of this verdict."""
    unreadable, late_minutes = read_unreadable_files(services, tally.unreadable), recorded["late_minutes"]
    body = {
        **_format_verdict(verdict),
        "execution": execution,
        "settledAt": recorded["settled_at"],
        "lateMinutes": late_minutes,
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
    decided = {name: recorded[name] for name in (*asdict(verdict), "settled_at", "late_minutes")}
    services.ledger.executions.record(execution, "verdict", decided)
    count(Metric.FAILED_MANIFESTS, verdict.failed)
    count(Metric.OPEN_MANIFESTS, verdict.open)
    count(Metric.FAILED_FILES, verdict.failed_files)
    count(Metric.REJECTED_LINES, verdict.rejects)
    logger.info("settled", execution=execution, verdict=verdict.outcome, message_text=verdict.message)
    # While work goes on, most of a dataset's lines can be in it. An execution that ends OPEN is reported by its text.
    is_open = verdict.outcome == ExecutionOutcome.OPEN
    count(Metric.DATASETS_ABOVE_QUARANTINED_SHARE, 0 if is_open else verdict.datasets_above_share)
    notify = should_notify(verdict, services.settings.alarms.notify_quarantine) or late_minutes > 0
    stage = services.settings.stage
    details = format_quarantine(tally.rejects, unreadable)
    if late_minutes:
        late = f"It ended {format_count(late_minutes, 'minute')} after its deadline {recorded['deadline']}"
        details.insert(0, f"{late}; the planned end was {recorded['ends_at']}.")
    text = format_notification(execution, verdict, details, stage=stage)
    text += f"\n\nReport: hybrid-router report --execution {execution} --stage {stage}"
    return {**_format_verdict(verdict), "notify": notify, "notification": text, "verdictUri": uri}


def _format_verdict(verdict: Verdict) -> dict[str, Any]:
    """The common fields of the state machine's answer and the verdict document."""
    facts = to_json(verdict)
    return {"verdict": facts.pop("outcome"), **facts}


def _write_pages(
    services: Services,
    execution: str,
    recorded: Mapping[str, Any],
    figures: ManifestFigures | Exception,
) -> None:
    """Add the execution to the list of the last days; write the page about them and the page about the execution.

    ``recorded`` has the facts of its plan and its verdict. ``figures`` is an error if a row could not be added to them.
    A page that cannot be made is only logged: it does not change the verdict, and ``hybrid-router report`` makes it at
    any time. Raises an error that can pass, because nothing else lists the execution.
    """
    ledger, stack, now = services.ledger, services.resources.stack, services.clock()
    options = f" --stage {services.settings.stage}"
    try:
        rows = [*execution_costs(ledger, {execution: recorded})]
        ledger.executions.record_settled(execution, {**recorded, "waits": measured_waits(rows)}, now)
        _put_page(services, REPORT_INDEX, render_index(stack, read_days(ledger, now), iso_utc(now), options))
        if isinstance(figures, Exception):
            raise figures
        report = execution_report(
            execution,
            recorded,
            figures,
            rows,
            stack=stack,
            made_at=iso_utc(now),
            alarms=None,
            metered=metered(ledger, datetime.fromisoformat(recorded["planned_at"]).date(), now.date()),
            options=options,
        )
        _put_page(services, report_key(execution), render_page(report))
    except Exception as error:
        if can_pass(error):
            raise
        logger.warning("no page was written", execution=execution, error=str(error), exc_info=True)


def _put_page(services: Services, key: str, page: str) -> None:
    bucket = services.resources.control_bucket
    services.s3.put_object(Bucket=bucket, Key=key, Body=page.encode(), ContentType="text/html; charset=utf-8")
