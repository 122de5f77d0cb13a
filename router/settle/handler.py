"""Lambda function ``settle``: compares the plan with the ledger, the ledger with the objects; records the verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from lake.errors import InvalidInputError
from lake.layout import plan_summary_key, verdict_key
from lake.ledger import ManifestRow, State
from lake.time import iso_utc
from router.entry import with_product_errors
from router.executions.rows import current_row_pages
from router.services import Services, container_services, read_document, write_document
from router.settle.object_check import PublishedManifests
from router.settle.published import read_unreadable_files
from router.settle.report_page import ReportPage
from router.settle.tally import Tally
from router.settle.verdict import (
    Verdict,
    format_notification,
    format_quarantine,
    judge,
    read_night_outcome,
    should_notify,
)
from router.telemetry import Metric, count, logger, metrics

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext


@with_product_errors
@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001
    """``{"execution": name}`` -> the verdict, its counts, the notification and whether to send it, two URIs."""
    return settle(event, container_services())


def settle(event: Mapping[str, Any], services: Services) -> dict[str, Any]:
    """Judge an execution by the ledger and the published objects; OPEN while a manifest is worked on. Idempotent.

    Raises
    ------
    InvalidInputError
        ``execution`` is missing or was never planned.
    InvalidDocumentError
        The plan names a manifest that the ledger does not know.
    """
    execution = event.get("execution")
    if not isinstance(execution, str) or not execution:
        raise InvalidInputError("execution is missing: pass the name of an execution that was planned")
    tally, published = Tally(now=services.clock()), PublishedManifests()
    summary = read_document(services, plan_summary_key(execution))
    page = ReportPage(services, execution, summary)
    for rows in current_row_pages(services, summary["manifestIds"]):
        _add(rows, tally, published)
        page.add(rows)
    # While a manifest is worked on, the verdict is OPEN and settle is called again: the objects are listed only once.
    if not tally.worked_on:
        for damage in published.find_damage(services):
            tally.add_damage(damage)
    return page.add_to(_record(services, execution, tally))


def _add(rows: Iterable[ManifestRow], tally: Tally, published: PublishedManifests) -> None:
    for row in rows:
        tally.add(row)
        if row.state == State.DONE:
            assert row.published is not None
            tally.add_totals(row, row.published.totals)
            published.add(row, row.published.totals)


def _record(services: Services, execution: str, tally: Tally) -> dict[str, Any]:
    alarms, now = services.settings.alarms, services.clock()
    verdict = judge(tally, alarms.max_quarantined_share)
    unreadable = read_unreadable_files(services, tally.unreadable)
    night = read_night_outcome(services.ledger.executions.get(execution) or {}, now)
    settled_at = iso_utc(now)
    body = {
        **_format_verdict(verdict),
        "execution": execution,
        "settledAt": settled_at,
        "night": asdict(night),
        "rejectsByReason": dict(sorted(tally.rejects.items())),
        "datasets": tally.datasets.to_json(),
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
    count(Metric.DATASETS_ABOVE_QUARANTINED_SHARE, verdict.datasets_above_share)
    notify = should_notify(verdict, alarms.notify_quarantine) or night.late_minutes > 0
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
    return {
        "verdict": verdict.outcome,
        "done": verdict.done,
        "failed": verdict.failed,
        "open": verdict.open,
        "rows": verdict.rows,
        "rejects": verdict.rejects,
        "failedFiles": verdict.failed_files,
        "damagedObjects": verdict.damaged_objects,
        "datasetsAboveShare": verdict.datasets_above_share,
        "message": verdict.message,
    }
