"""Reads the data of a report: rows of the ledger and documents of plans. The rest of the package sends no request."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from lake.aws_types import S3Client
from lake.documents import find_document
from lake.layout import list_objects, manifest_day_prefix, manifest_of_key, plan_summary_key
from lake.ledger import CostRow, Ledger, ManifestRow
from lake.manifest import Lane
from lake.successors import follow
from lake.texts import format_count
from report.days import Day, first_day, last_days
from report.figures import BY_ENGINES, ExecutionFacts, cost_figures

ONE_DAY = timedelta(days=1)
MAX_DAYS = 15
"""An execution takes at most 14 days (``overnight.asl.json``), and its last job run may end on the day after."""


def read_execution(
    s3: S3Client, ledger: Ledger, control_bucket: str, name: str, costs: Iterable[CostRow]
) -> tuple[ExecutionFacts, list[str]]:
    """Plan and verdict of an execution, and the ids of its planned manifests; a missing part is None.

    ``costs`` are cost rows that include all rows of the execution.
    """
    row = ledger.executions.get(name) or {}
    summary: dict[str, Any] = find_document(s3, control_bucket, plan_summary_key(name)) or {}
    runs = cost_figures(cost for cost in costs if cost.execution == name).job_runs
    facts = ExecutionFacts(name, row.get("plan"), summary.get("forecast"), row.get("verdict"), runs)
    return facts, summary.get("manifestIds", [])


def read_days(ledger: Ledger, now: datetime) -> list[Day]:
    first, last = first_day(now), now.astimezone(UTC).date()
    return last_days(ledger.executions.settled(first, last), ledger.costs.day_sums(first, last), now)


def execution_costs(ledger: Ledger, execution: str, planned_at: datetime, now: datetime) -> list[CostRow]:
    """The cost rows of an execution; ``planned_at`` and ``now`` are aware."""
    first, last = planned_at.astimezone(UTC).date(), now.astimezone(UTC).date()
    return [row for row in ledger.costs.of_days(first, last, [Lane.BATCH]) if row.execution == execution]


def metered(ledger: Ledger, first: date, last: date, source: str = BY_ENGINES) -> str:
    """The source of the recorded costs, and the number of job runs, ended on these days, whose bills are awaited: a
    bill is awaited from the end of its job run, or from the next day.
    """
    days = str(first), str(last + ONE_DAY)
    awaited = sum(days[0] <= due.since[:10] <= days[1] for due in ledger.costs.due_bills())
    return f"{source}; without {format_count(awaited, 'job run')} whose bill is not final yet" if awaited else source


def costs_around(ledger: Ledger, executions: Iterable[Mapping[str, Any]], first: date, last: date) -> list[CostRow]:
    """Cost rows of executions on earlier and later days than ``first`` to ``last`` on which they can have had job runs.

    ``executions`` are their rows; each has a job run that ended on one of these days.
    """
    begin, end = first - ONE_DAY, last + ONE_DAY
    for row in executions:
        if planned_at := row.get("plan", {}).get("planned_at"):
            planned = datetime.fromisoformat(planned_at).date()
            settled_at = row.get("verdict", {}).get("settled_at")
            settled = datetime.fromisoformat(settled_at).date() + ONE_DAY if settled_at else date.max
            begin, end = min(begin, planned), max(end, min(settled, planned + timedelta(days=MAX_DAYS)))
    days = ((begin, first - ONE_DAY), (last + ONE_DAY, end))
    return [row for between in days for row in ledger.costs.of_days(*between, [Lane.BATCH])]


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
