"""Lambda function ``plan``: the backlog becomes runs; returns URIs and counts only (a state may hold 256 KiB)."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from lake.errors import InvalidInputError
from lake.layout import plan_index_key, plan_summary_key, run_key
from lake.time import iso_utc
from router.documents import write_document
from router.entry import with_product_errors
from router.plan.backlog import backlog
from router.plan.choose_engine import choose_engine
from router.plan.forecast import forecast
from router.plan.merge import merge
from router.plan.pack import PlannedRun, pack_runs
from router.selection import Selection, check_fields, parse_flag, parse_selection
from router.services import Services, container_services
from router.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aws_lambda_powertools.utilities.typing import LambdaContext

    from lake.engines import Engine

FIELDS = ("dataset", "from", "to", "dryRun", "engine")


@with_product_errors
@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001
    """``{"execution", "dataset"?, "from"?, "to"?, "dryRun"?, "engine"?}`` -> counts, the index and a forecast."""
    return plan(event, container_services())


def plan(event: Mapping[str, Any], services: Services) -> dict[str, Any]:
    """Plan the backlog, or the part of it that the event selects.

    A dry run writes the summary only. A repetition plans what is queued at its time.

    Raises
    ------
    InvalidInputError
        Unknown field, invalid time, ``from`` later than ``to``, unknown dataset, an engine that the settings do not
        allow, missing ``execution``.
    """
    given = {key: value for key, value in event.items() if key != "execution"}
    check_fields(given, FIELDS, "overnight")
    execution = event.get("execution")
    if not isinstance(execution, str) or not execution:
        raise InvalidInputError("execution is missing: pass the name of the state machine's execution")
    selection, dry_run = parse_selection(given, services), parse_flag(given, "dryRun")
    engine = choose_engine(given, services.settings.batch)
    rows = backlog(services, selection, release=not dry_run)
    if not dry_run:
        rows = merge(services, rows)
    runs = pack_runs(rows, services.settings.batch)
    result = _result(services, execution, runs, engine)
    if not dry_run:
        _write_runs(services, execution, runs, engine)
    _write_summary(services, execution, selection, dry_run, runs, result)
    counts = {"runs": len(runs), "manifests": len(rows), "bytes": result["bytes"]}
    logger.info("planned", execution=execution, dry_run=dry_run, **counts)
    return result


def _result(services: Services, execution: str, runs: Sequence[PlannedRun], engine: Engine) -> dict[str, Any]:
    bucket = services.resources.control_bucket
    measured = {row.name: row.bytes_per_second for row in services.ledger.datasets.all()}
    speeds = {name: speed for name, speed in measured.items() if speed}
    return {
        "execution": execution,
        "index": {"bucket": bucket, "key": plan_index_key(execution)},
        "engine": engine,
        "runs": len(runs),
        "manifests": sum(len(run.manifests) for run in runs),
        "files": sum(run.files for run in runs),
        "bytes": sum(run.bytes for run in runs),
        "maxConcurrency": services.settings.max_parallel_runs(engine),
        "summary": f"s3://{bucket}/{plan_summary_key(execution)}",
        "forecast": asdict(forecast(runs, services.settings, speeds, services.clock(), engine)),
    }


def _write_runs(services: Services, execution: str, runs: Sequence[PlannedRun], engine: Engine) -> None:
    index = []
    for number, run in enumerate(runs):
        body = {
            "execution": execution,
            "number": number,
            "engine": engine,
            "manifests": [row.id for row in run.manifests],
            "bytes": run.bytes,
            "files": run.files,
        }
        uri = write_document(services, run_key(execution, number), body)
        index.append({"run": uri, "manifests": len(run.manifests), "bytes": run.bytes, "engine": engine})
    write_document(services, plan_index_key(execution), index)


def _write_summary(
    services: Services,
    execution: str,
    selection: Selection,
    dry_run: bool,
    runs: Sequence[PlannedRun],
    result: Mapping[str, Any],
) -> None:
    planned_at = iso_utc(services.clock())
    manifests = [row.id for run in runs for row in run.manifests]
    body = {
        **result,
        "plannedAt": planned_at,
        "dryRun": dry_run,
        "selection": asdict(selection),
        "manifestIds": manifests,
    }
    write_document(services, plan_summary_key(execution), body)
    if not dry_run:
        counts = {name: result[name] for name in ("runs", "manifests", "files", "bytes")}
        services.ledger.executions.record(execution, "plan", {"planned_at": planned_at, **counts})
