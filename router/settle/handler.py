"""Lambda function ``settle``: compares the plan with the ledger, and records the verdict."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from lake.errors import InvalidInputError
from lake.layout import plan_summary_key, result_key, verdict_key
from lake.ledger import State
from lake.time import iso_utc
from router.documents import read_document, write_document
from router.plan_rows import current_rows
from router.services import PARALLEL_REQUESTS, Services, container_services
from router.settle.verdict import Verdict, judge, should_notify
from router.telemetry import count, logger, metrics

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aws_lambda_powertools.utilities.typing import LambdaContext

    from lake.ledger import ManifestRow


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001
    """``{"execution": name}`` -> the verdict, counts, whether to notify people, and the URI of the verdict document."""
    return settle(event, container_services())


def settle(event: Mapping[str, Any], services: Services) -> dict[str, Any]:
    """Judge an execution by the ledger; OPEN while one of its manifests is being worked on. Idempotent.

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
    summary = read_document(services, plan_summary_key(execution))
    rows = current_rows(services, summary["manifestIds"])
    done = [row for row in rows if row.state == State.DONE]
    with ThreadPoolExecutor(PARALLEL_REQUESTS) as pool:
        results = list(pool.map(lambda row: _result(services, row), done))
    verdict = judge(rows, results, services.clock())
    return _record(services, execution, verdict, rows)


def _result(services: Services, row: ManifestRow) -> dict[str, Any]:
    result: dict[str, Any] = read_document(services, result_key(row.id, row.generation))
    return result


def _record(services: Services, execution: str, verdict: Verdict, rows: list[ManifestRow]) -> dict[str, Any]:
    settled_at = iso_utc(services.clock())
    body = {
        **_format_verdict(verdict),
        "execution": execution,
        "settledAt": settled_at,
        "notDone": [
            {"manifest": row.id, "partition": str(row.partition), "state": row.state, "reason": row.reason}
            for row in rows
            if row.state != State.DONE
        ],
    }
    uri = write_document(services, verdict_key(execution), body)
    counts = {key: value for key, value in asdict(verdict).items() if key != "outcome"}
    services.ledger.executions.record(
        execution, "verdict", {"outcome": verdict.outcome, "settled_at": settled_at, **counts}
    )
    for name in ("done", "failed", "open"):
        count(f"{name.capitalize()}Manifests", getattr(verdict, name))
    count("PublishedRows", verdict.rows)
    count("RejectedLines", verdict.rejects)
    count("FailedFiles", verdict.failed_files)
    logger.info("settled", execution=execution, verdict=verdict.outcome, message_text=verdict.message)
    notify = should_notify(verdict, services.settings.alarms.notify_quarantine)
    return {**_format_verdict(verdict), "notify": notify, "verdictUri": uri}


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
        "message": verdict.message,
    }
