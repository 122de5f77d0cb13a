"""Lambda function ``plan``: divides the backlog into runs; returns only URIs and counts (a state may hold 256 KiB)."""

import secrets
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from lake.documents import encode_document, put_first_document
from lake.engines.description import MICRO
from lake.errors import InvalidInputError
from lake.layout import DRY_RUN_PREFIX, PLAN_AHEAD_EXECUTION, plan_index_key, plan_summary_key, run_key
from lake.ledger import ManifestRow, State
from lake.ledger.manifest_row import queued_row
from lake.manifest import Lane, Partition
from lake.speed import Speeds
from lake.time import Schedule, iso_utc, next_local_time
from router.divide import divide_selected, draft_selected
from router.entry import lambda_handler
from router.estimate.night import recent_waits
from router.executions.costs import leave_to_sweep
from router.executions.run_status import queued_successors, reason_to_release, release_unheld
from router.plan.glue_room import configured_room, read_glue_room
from router.plan.night import PlannedNight, equal_rows, plan_night
from router.requests.selection import Selection, open_rows, parse_fields, parse_flag, parse_selection
from router.services import Services, in_parallel, own_client, read_document, read_many, write_document
from router.telemetry import Metric, count, logger

COUNTS = ("runs", "manifests", "files", "bytes")
FIELDS = ("dataset", "from", "to", "dryRun", "engine")
MAX_DATASETS = 200
"""Maximum number of datasets in a dry run's answer: a state machine passes it on, and a state has at most 256 KiB."""


def plan(event: Mapping[str, Any], services: Services, service_quotas: Any = None) -> dict[str, Any]:  # noqa: ANN401
    """Plan the backlog, or the part of it that the event selects.

    A dry run writes only the summary, and plans for the next start of ``schedule.overnight`` if the expression defines
    one; any other run plans from now. An execution has one plan: the first invocation that writes the summary decides,
    and all others answer with its plan. ``found`` has the totals of a backfill's dry run, whose files are planned too.
    ``service_quotas`` is a client of Service Quotas; None: the quotas of the settings hold. Raises
    ``InvalidInputError``: unknown field, invalid time, ``from`` later than ``to``, unknown dataset, an engine that the
    settings do not allow, missing ``execution``.
    """
    execution, selection, dry_run, engines = _parse(event, services)
    settings = replace(services.settings, batch=replace(services.settings.batch, engines=engines))
    overnight = Schedule.parse(settings.schedule.overnight)
    later = overnight.next_start(settings.time_zone, services.clock()) if dry_run else None
    room = configured_room(services.settings)
    if service_quotas is not None:
        room = read_glue_room(services, service_quotas, at_once=later is None)
    rows, left_from = backlog(services, selection, release=not dry_run)
    if dry_run and (found := event.get("found")):
        # As if all of these files were alike; no manifest has a part of a file.
        size, files, limits = found["bytes"], found["recorded"], settings.batch
        number = min(files, max(-(-size // limits.manifest_bytes), -(-files // limits.manifest_files)))
        rows += equal_rows("found", Partition(selection.dataset or "", "", 0), number, size, files, found["compressed"])
    if left_from:
        logger.warning("too many manifests: the oldest are planned", manifests=len(rows), left_from=left_from)
    speeds = Speeds(services.ledger.datasets.speeds(), services.settings)
    start = later or services.clock()
    deadline = next_local_time(settings.schedule.deadline, settings.time_zone, start)
    waits = recent_waits(services.ledger, services.clock())
    planned = plan_night(rows, settings, speeds, room, start, deadline, waits)
    nonce = secrets.token_hex(4)
    bucket, runs = services.resources.control_bucket, planned.runs
    result: dict[str, Any] = {
        "execution": execution,
        "index": {"bucket": bucket, "key": plan_index_key(execution, nonce)},
        "engine": planned.night.engine,
        "workers": planned.night.workers,
        "runs": len(runs),
        "manifests": sum(len(run.manifests) for run in runs),
        "files": sum(run.files for run in runs),
        "bytes": sum(run.bytes for run in runs),
        "maxConcurrency": planned.night.concurrency,
        "summary": f"s3://{bucket}/{plan_summary_key(execution)}",
        "forecast": asdict(planned.forecast),
        "leftFrom": left_from,
    }
    basis = {
        "quotas": room.source,
        "prices": settings.price.source,
        "engines": engines,
        "datasets": _by_dataset(rows, speeds),
    }
    summary = {
        **result,
        **basis,
        "plannedAt": iso_utc(services.clock()),
        "dryRun": dry_run,
        "selection": asdict(selection),
        # Nothing reads the ids of a dry run, and the command line reads its summary often.
        "manifestIds": [] if dry_run else [row.id for run in runs for row in run.manifests],
    }
    counts = {name: summary[name] for name in COUNTS}
    if dry_run:
        write_document(services, plan_summary_key(execution), summary)
    else:
        _write_runs(services, execution, nonce, planned)
        summary = _write_first_summary(services, execution, summary)
        counts, expected = {name: summary[name] for name in COUNTS}, summary["forecast"]
        facts = {
            "planned_at": summary["plannedAt"],
            "ends_at": expected["end"],
            "deadline": expected["deadline"],
            "engine": summary["engine"],
            "micro_dollars": round(expected["dollars"] * MICRO),
        }
        services.ledger.executions.record(execution, "plan", {**counts, **facts})
    late = summary["forecast"]["late_minutes"]
    if (later and execution == PLAN_AHEAD_EXECUTION) or not dry_run:
        # Not for a night with an unknown start, or for a person's question, such as how long one engine takes.
        count(Metric.PLAN_LATE_MINUTES, late)
    logger.info("planned", execution=execution, dry_run=dry_run, late=late, **counts)
    return {name: summary[name] for name in (*result, *(basis if dry_run else ()))}


def _parse(event: Mapping[str, Any], services: Services) -> tuple[str, Selection, bool, tuple[str, ...]]:
    """The execution, the selection, whether the run is dry, and the allowed engines."""
    execution, engines = event.get("execution"), services.settings.batch.engines
    # The state machine ``backfill`` names its dry runs so; the input of ``overnight`` never has ``found``.
    known = (*FIELDS, "found") if str(execution).startswith(DRY_RUN_PREFIX) else FIELDS
    given = parse_fields({name: event[name] for name in event if name != "execution"}, known, "overnight", "{}")
    if not isinstance(execution, str) or not execution:
        raise InvalidInputError("execution is missing: pass the name of the state machine's execution")
    selection, dry_run = parse_selection(given, services), parse_flag(given, "dryRun")
    if (engine := given.get("engine")) is not None and engine not in engines:
        raise InvalidInputError(
            f"engine = {engine!r} is not allowed: pass one of {', '.join(engines)}, "
            "or add it to batch.engines and deploy the stack again"
        )
    return execution, selection, dry_run, engines if engine is None else (engine,)


handler = lambda_handler(
    lambda event, services: plan(event, services, own_client("service-quotas")), answers_refusals=True
)
"""``{"execution", "dataset"?, "from"?, "to"?, "dryRun"?, "engine"?, "found"?}`` -> counts, index and forecast."""


def _by_dataset(rows: Sequence[ManifestRow], speeds: Speeds) -> list[dict[str, Any]]:
    """The backlog of each dataset, largest first; at most ``MAX_DATASETS``."""
    found: dict[str, list[ManifestRow]] = {}
    for row in rows:
        found.setdefault(row.partition.dataset, []).append(row)
    entries: list[dict[str, Any]] = []
    for name, own in found.items():
        measured = {speeds.is_measured(row) for row in own}
        entries.append(
            {
                "dataset": name,
                "files": sum(row.files for row in own),
                "bytes": sum(row.bytes for row in own),
                "compressedBytes": sum(row.compressed_bytes for row in own),
                "coreSeconds": sum(map(speeds.core_seconds, own)),
                "speedIs": "partly measured" if len(measured) > 1 else "measured" if True in measured else "assumed",
            }
        )
    return sorted(entries, key=lambda entry: -entry["bytes"])[:MAX_DATASETS]


def _write_runs(services: Services, execution: str, nonce: str, planned: PlannedNight) -> None:
    """Write the run documents in parallel, and after them the index that names them."""
    runs, way = planned.runs, {"workers": planned.night.workers, "engine": planned.night.engine}
    way["fallback"] = planned.fallback or ""

    def write(number: int) -> str:
        run = runs[number]
        body = {
            "execution": execution,
            "number": number,
            **way,
            "beginBy": iso_utc(planned.begin_by[number]),
            "deadline": planned.forecast.deadline,
            "coreSeconds": round(run.seconds, 1),
            "manifests": [row.id for row in run.manifests],
            "bytes": run.bytes,
            "files": run.files,
        }
        return write_document(services, run_key(execution, nonce, number), body)

    uris = in_parallel(write, range(len(runs)))
    index = [
        {"run": uri, "manifests": len(run.manifests), "bytes": run.bytes, "beginBy": iso_utc(begin_by), **way}
        for uri, run, begin_by in zip(uris, runs, planned.begin_by, strict=True)
    ]
    write_document(services, plan_index_key(execution, nonce), index)


NAME_RESERVED_FOR = timedelta(days=30)
"""An execution and its redrives end within 28 days; Step Functions reserves the name for 90 days."""


def _write_first_summary(services: Services, execution: str, summary: dict[str, Any]) -> dict[str, Any]:
    """Write the summary of an execution unless it has one, because the first one decides on the plan; returns that one.

    Step Functions repeats an invocation whose answer is lost, while the first one may still run. The summary of a dry
    run, or of an earlier execution with the same name, does not count.
    """
    key, bucket = plan_summary_key(execution), services.resources.control_bucket
    if put_first_document(services.s3, bucket, key, encode_document(summary)):
        return summary
    first = read_document(services, key, "plannedAt", "dryRun")
    age = services.clock() - datetime.fromisoformat(first["plannedAt"])
    if age < NAME_RESERVED_FOR and not first["dryRun"]:
        return first
    write_document(services, key, summary)
    return summary


REPLAN_PUBLISHING_AFTER = timedelta(minutes=3)
"""A manifest that has been PUBLISHING for longer is planned, so that a run rolls it forward.

This is much longer than a publish takes. A live publisher does no harm, because publishing is idempotent.
"""
MAX_MANIFESTS = 1_000_000
"""Maximum number of manifests of a plan. All take half of the function's memory and time: 757 B and 0.4 ms each."""


def backlog(services: Services, selection: Selection, *, release: bool) -> tuple[list[ManifestRow], str]:
    """The ``MAX_MANIFESTS`` oldest QUEUED manifests of the batch lane, and manifests that are PUBLISHING for too long.

    Also returns the time from which manifests are left to the next plan (ISO 8601, UTC); empty if none is left. The
    index is a hint, so the ledger fences every use of the result.

    The result includes the collections of the selected hours, and manifests whose run has ended or whose lease has
    expired. With ``release``, the former are divided and the latter released; otherwise it has drafts of the former.
    Raises the error of a collection that could not be divided if there is nothing else to plan: a night without input
    would count as a success.
    """
    divided, fault = (
        divide_selected(services, selection)
        if release
        else ([queued_row(manifest) for manifest in draft_selected(services, selection)], None)
    )
    oldest_first = iter(open_rows(services, Lane.BATCH, State.QUEUED, selection))
    queued = list(islice(oldest_first, MAX_MANIFESTS))
    first_left = next(oldest_first, None)
    held = (row.id for row in open_rows(services, Lane.BATCH, State.RUNNING, selection))
    unheld = _unheld(services, read_many(services.ledger.manifests.get_many, held), release=release)
    queued += queued_successors(services, [row.id for row in unheld]) if release else unheld
    limit = services.clock() - REPLAN_PUBLISHING_AFTER
    publishing = [
        row
        for row in open_rows(services, Lane.BATCH, State.PUBLISHING, selection)
        if datetime.fromisoformat(row.changed_at) < limit
    ]
    rows = list({row.id: row for row in (*divided, *queued, *publishing)}.values())
    if fault is not None and not rows:
        raise fault
    return rows, ("" if first_left is None else first_left.created_at)


def _unheld(services: Services, rows: Iterable[ManifestRow | None], *, release: bool) -> list[ManifestRow]:
    """RUNNING manifests that no run holds. ``release``: they are released, those of different runs in parallel."""
    held: defaultdict[str | None, list[ManifestRow]] = defaultdict(list)
    for row in rows:
        if row is not None and row.state == State.RUNNING:
            held[row.owner].append(row)

    def unheld(owner: str | None) -> list[ManifestRow]:
        ended: dict[str, bool] = {}
        found = [row for row in held[owner] if reason_to_release(services, row, ended)]
        if release and owner is not None and found:
            # Before the release: if its answer is lost, nothing else finds a run that has held the manifest.
            leave_to_sweep(services, owner)
        return release_unheld(services, found, ended) if release else found

    return [row for some in in_parallel(unheld, held) for row in some]
