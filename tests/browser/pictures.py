"""Made-up days, and their pictures: `.venv/bin/python -m tests.browser.pictures` redraws docs/images."""

import random
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from PIL import Image

from lake.ledger import CostRow, CostShare, ManifestRow, State
from lake.manifest import Lane, Partition
from lake.time import iso_utc
from report.days import last_days, render_index
from report.figures import ExecutionFacts, Report, cost_figures
from report.sections import render_page
from tests.browser.chromium import DARK, LIGHT, Chromium
from tests.unit.report.reporting import cost_row, report_of, row

IMAGES = Path(__file__).parents[2] / "docs" / "images"
COLORS = 64
"""Colors of a picture: flat surfaces and thin lines need few, and the file is small."""
DAY = datetime(2026, 11, 20, tzinfo=UTC)
NIGHT = DAY + timedelta(hours=22)
GIGABYTE = 10**9
LOST = "Lost task 3.0 in stage 12.0: ExecutorLostFailure (executor 7 exited, killed by signal 9)"
QUARANTINED = "all 2 manifests are done: 36,500 rows; 1 line could not become a row and is in the quarantine"
DENIED = (
    "1 manifest failed (first: 20261120T152841f1, access denied: s3:PutObject on s3://hybrid-router-lake/orders/ is "
    "not allowed for the role hybrid-router-prod-batch: allow it, then run 'hybrid-router reprocess')"
)


def day_of(executions: int) -> Report:
    """A day with this number of executions: 1 is a usual day with its night, others are days of backfills."""
    return usual_day() if executions == 1 else day_of_backfills(executions)


def usual_day() -> Report:
    chance = random.Random(7)
    rows = [row("20261120T0930f1", state=State.FAILED, reason="s3://input/orders/a.gz: the archive is damaged")]
    for minute in range(0, 24 * 60, 6):
        made = DAY + timedelta(minutes=minute)
        facts: dict[str, Any] = {"made": made, "bytes": chance.randint(2, 6) * GIGABYTE, "files": chance.randint(5, 20)}
        facts["partition"] = Partition(chance.choice(("orders", "clicks", "events")), f"{DAY:%Y-%m-%d}", made.hour)
        facts["rejects"] = {"not JSON": chance.randint(0, 40), "invalid UTF-8": 3} if minute % 30 == 0 else {}
        if 7 * 60 <= minute < 19 * 60:
            wait = 35 + 25 * chance.random() + (90 if 9 * 60 < minute < 10 * 60 else 0)
            rows += [row(f"s{minute}-{part}", Lane.STREAM, seconds=wait * (1 + part / 8), **facts) for part in range(5)]
        else:
            wait = (NIGHT - made).total_seconds() % 86_400 + chance.randint(600, 5400)
            rows.append(row(f"b{minute}", seconds=wait, **facts))
    costs = []
    for number in range(14):
        lane = Lane.STREAM if number < 6 else Lane.BATCH
        begin = DAY + timedelta(hours=7 + 2 * number) if number < 6 else NIGHT + timedelta(minutes=11 * (number // 3))
        state = "" if lane is Lane.STREAM else "FAILED" if number == 9 else "SUCCEEDED"
        share = CostShare("orders", 900_000 * (number + 2), 900 * GIGABYTE, 300)
        shares = (share, replace(share, dataset="clicks", micro_dollars=700_000 * (number + 1)))
        minutes = 120 if lane is Lane.STREAM else 38 + 3 * number % 11
        costs.append(_run(f"jr_{number:012x}", lane, begin, 60 * minutes, shares, state))
    counts = {"done": 121, "failed": 0, "open": 0, "rows": 12_000, "rejects": 212}
    verdict = {"outcome": "SUCCEEDED_WITH_QUARANTINE", **counts}
    return _report(rows, costs, [_execution("night", NIGHT, costs, verdict, files=4800, size=14_000 * GIGABYTE)])


def day_of_backfills(number: int) -> Report:
    """A day of small executions, which the ledger returns in no order; one has published nothing."""
    chance = random.Random(number)
    rows, costs, executions = [], [], []
    for item in chance.sample(range(number), number):
        begin = DAY + timedelta(hours=15) + timedelta(minutes=item * min(3.0, 500 / number))
        failed, made = item % 50 == 1, begin - timedelta(minutes=1)
        for file in range(1 if number > 50 else 2):
            state = State.FAILED if failed and not file else State.DONE
            reason = DENIED.partition("first: ")[2] if state == State.FAILED else None
            rejects = {"not JSON": 1} if item == 2 else {}
            facts: dict[str, Any] = {"made": made, "bytes": 6_000_000, "files": 1, "reason": reason, "rejects": rejects}
            rows.append(row(f"20261120T15{item:04}f{file}", state=state, seconds=100 + 31 * file, **facts))
        name = f"{chance.randrange(16**8):08x}-{item:04}-4d2a-9c1e-{chance.randrange(16**12):012x}"
        shares = (CostShare("orders", 4_000 + item, 12_000_000, 0 if failed else 2),)
        run = _run(f"jr_{item:012x}", Lane.BATCH, begin, 20 + item % 40, shares, "SUCCEEDED", name)
        costs += [replace(run, id=f"{run.id}0", state="FAILED", reason=LOST), run] if failed else [run]
        outcome = "FAILED" if failed else "SUCCEEDED_WITH_QUARANTINE" if item == 2 else "SUCCEEDED"
        counts = {"done": 0 if failed else 2, "failed": int(failed), "open": 0, "rows": 0 if failed else 36_501}
        verdict = {
            **counts,
            "outcome": outcome,
            "rejects": int(item == 2),
            "message": DENIED if failed else QUARANTINED,
        }
        executions.append(_execution(name, begin, costs, verdict, files=2, size=12_000_000))
    for minute in (2, 7, 21):
        made = DAY + timedelta(hours=15, minutes=minute)
        rows.append(row(f"s{minute}", Lane.STREAM, made=made, seconds=9 + minute, files=1, bytes=1_300_000))
    return _report(rows, costs, executions)


def last_days_page() -> str:
    """The page about the last thirty days: two nights failed, one was late, one day had none, one had many."""
    chance = random.Random(3)
    settled, costs = [], {}
    for number in range(30):
        begin = NIGHT + timedelta(days=number - 29)
        costs[f"{begin:%Y-%m-%d}"] = chance.randint(120, 190) * 1_000_000
        outcome = "SUCCEEDED_WITH_QUARANTINE" if number % 4 == 1 else "FAILED" if number in (6, 22) else "SUCCEEDED"
        files, late = chance.randint(4_000, 5_200), 37 if number == 15 else 0
        recorded = {
            "settled_at": iso_utc(begin + timedelta(minutes=chance.randint(60, 95) + 10 * late)),
            "outcome": outcome,
            "message": DENIED if outcome == "FAILED" else "all 121 manifests are done",
            "bytes": files * 3 * GIGABYTE,
            "rows": files * 1_000_000,
            "rejects": chance.randint(20, 900) if number % 4 == 1 else 0,
            "failed_files": int(number == 9),
            "failed": int(outcome == "FAILED"),
            "late_minutes": late,
        }
        for minute in range({12: 15, 18: 0}.get(number, 1)):
            planned_at = iso_utc(begin + timedelta(minutes=minute))
            settled.append({**recorded, "name": f"night-{number}-{minute}", "planned_at": planned_at})
    now = NIGHT + timedelta(hours=8)
    return render_index("hybrid-router-prod", last_days(settled, costs, now), iso_utc(now))


def _report(rows: Sequence[ManifestRow], costs: Sequence[CostRow], executions: Sequence[ExecutionFacts]) -> Report:
    title = f"{DAY:%A, %Y-%m-%d}"
    return report_of(*rows, costs=tuple(costs), executions=tuple(executions), alarms=(), title=title)


def _run(
    name: str, lane: Lane, begin: datetime, seconds: int, shares: Any, state: str, execution: str = "night"
) -> CostRow:
    facts: dict[str, Any] = {"execution": None if lane is Lane.STREAM else execution, "state": state, "shares": shares}
    facts |= {"started_at": iso_utc(begin), "ended_at": iso_utc(begin + timedelta(seconds=seconds))}
    facts |= {"reason": LOST if state == "FAILED" else "", "micro_dollars": sum(part.micro_dollars for part in shares)}
    return cost_row(name, lane, **facts)


def _execution(
    name: str, planned: datetime, costs: Sequence[CostRow], verdict: dict[str, Any], *, files: int, size: int
) -> ExecutionFacts:
    runs = tuple(run for run in cost_figures(costs).job_runs if run.execution == name)
    minutes = max(run.end for run in runs) / 60 - planned.timestamp() / 60
    end, deadline = (iso_utc(planned + timedelta(minutes=after)) for after in (minutes, 480))
    plan = {"engine": "glue-flex", "runs": len(runs), "manifests": verdict["done"] + verdict["failed"], "files": files}
    plan |= {"planned_at": iso_utc(planned), "bytes": size, "micro_dollars": sum(run.micro_dollars for run in runs)}
    plan |= {"ends_at": end, "deadline": deadline, "failed_files": 0, "damaged_objects": 0}
    return ExecutionFacts(name, {**plan, **verdict}, runs)


def main() -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    usual = render_page(day_of(1))
    with tempfile.TemporaryDirectory() as folder:
        chromium = Chromium(Path(folder))
        for name, scheme in (("report.png", LIGHT), ("report-dark.png", DARK)):
            _save(chromium.picture(usual, IMAGES / name, "1000,2450", scheme), IMAGES / name)
        _save(chromium.picture(last_days_page(), IMAGES / "report-days.png", "1100,1000"), IMAGES / "report-days.png")


def _save(console: list[str], path: Path) -> None:
    assert console == []
    Image.open(path).convert("RGB").quantize(COLORS).save(path, optimize=True)


if __name__ == "__main__":
    main()
