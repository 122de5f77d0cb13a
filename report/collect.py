"""Reads the data of a report: rows of the ledger and documents of plans. The rest of the package sends no request."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from lake.aws_types import S3Client
from lake.layout import list_objects, manifest_day_prefix, manifest_of_key
from lake.ledger import CostRow, Ledger, ManifestRow
from lake.manifest import Lane
from lake.successors import follow
from lake.texts import format_count
from report.days import Day, first_day, last_days
from report.figures import BY_ENGINES, ExecutionFacts, cost_figures

ONE_DAY = timedelta(days=1)
MAX_DAYS = 15
"""An execution takes at most 14 days (``overnight.asl.json``), and its last job run may end on the day after."""


def executions_of(ledger: Ledger, rows: Iterable[CostRow]) -> tuple[ExecutionFacts, ...]:
    """The executions of cost rows, each with all of its job runs; one without a plan has only these rows."""
    found, runs = defaultdict[str, list[CostRow]](list), defaultdict[str, list[CostRow]](list)
    for row in rows:
        found[row.execution or ""].append(row)
    recorded = {name: ledger.executions.facts(name) for name in found if name}
    for row in cost_figures(execution_costs(ledger, recorded)).job_runs:
        runs[row.execution or ""].append(row)
    return tuple(ExecutionFacts(name, facts, tuple(runs[name] or found[name])) for name, facts in recorded.items())


def read_days(ledger: Ledger, now: datetime) -> list[Day]:
    first, last = first_day(now), now.astimezone(UTC).date()
    return last_days(ledger.executions.settled(first, last), ledger.costs.day_sums(first, last), now)


def execution_costs(ledger: Ledger, executions: Mapping[str, Mapping[str, Any]]) -> Iterator[CostRow]:
    """The cost rows of planned executions, on all days on which one of them can have had job runs, each read once.

    ``executions`` maps their names to the facts of plan and verdict.
    """
    days = [_days(recorded) for recorded in executions.values() if "planned_at" in recorded]
    first, last = min((begin for begin, _ in days), default=date.max), max((end for _, end in days), default=date.min)
    for row in ledger.costs.of_days(first, last, [Lane.BATCH]):
        if row.execution is not None and "planned_at" in executions.get(row.execution, ()):
            yield row


def _days(recorded: Mapping[str, Any]) -> tuple[date, date]:
    first = datetime.fromisoformat(recorded["planned_at"]).date()
    last = first + timedelta(days=MAX_DAYS)
    if "settled_at" in recorded:
        last = min(last, datetime.fromisoformat(recorded["settled_at"]).date() + ONE_DAY)
    return first, last


def metered(ledger: Ledger, first: date, last: date, source: str = BY_ENGINES) -> str:
    """The source of the recorded costs, and the number of job runs, ended on these days, whose bills are awaited: a
    bill is awaited from the end of its job run, or from the next day.
    """
    days = str(first), str(last + ONE_DAY)
    awaited = sum(days[0] <= due.since[:10] <= days[1] for due in ledger.costs.due_bills())
    return f"{source}; without {format_count(awaited, 'job run')} whose bill is not final yet" if awaited else source


def manifests_of_day(s3: S3Client, control_bucket: str, day: date) -> Iterator[str]:
    """Ids, in order, of manifests made on a day (UTC) or the next one, which has files that arrived late in the day."""
    for made in (day, day + ONE_DAY):
        documents = list_objects(s3, control_bucket, manifest_day_prefix(str(made)))
        found = (manifest_of_key(item["Key"]) for item in documents)
        yield from (manifest for manifest in found if manifest is not None)


def current_rows(ledger: Ledger, manifests: Iterable[str]) -> Iterator[ManifestRow]:
    """Rows of ``manifests``, which are in order of creation, and of successors, with the creation time of their source.

    An id that the ledger does not know never became a manifest.
    """
    ages: dict[str, str] = {}
    for page in follow(ledger, manifests):
        for row in (row for _, row in page if row is not None):
            created_at = ages.pop(row.id, row.created_at)
            ages.update(dict.fromkeys(row.superseded_by, created_at))
            yield replace(row, created_at=created_at)
