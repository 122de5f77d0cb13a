"""The pictures of the pages: `.venv/bin/python -m tests.browser.pictures` draws them anew from a made-up day."""

from __future__ import annotations

import random
import tempfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from PIL import Image

from lake.ledger import CostShare, State
from lake.manifest import Lane
from lake.partition import Partition
from lake.time import iso_utc
from report.costs import cost_figures
from report.model import ExecutionFacts, Report
from report.page import render_page
from tests.browser.chromium import DARK, LIGHT, Chromium
from tests.unit.report.reporting import cost_row, report_of, row

IMAGES = Path(__file__).parents[2] / "docs" / "images"
DAY = datetime(2026, 11, 20, tzinfo=UTC)
NIGHT = DAY + timedelta(hours=22)
GIGABYTE = 10**9
COLORS = 64
"""Of a picture: flat surfaces and thin lines need few, and the file is small."""


def sample_report() -> Report:
    """A day of both lanes and its night."""
    chance = random.Random(7)
    rows = []
    for minute in range(0, 24 * 60, 6):
        made = DAY + timedelta(minutes=minute)
        dataset = chance.choice(("orders", "clicks", "events"))
        facts: dict[str, Any] = {"made": made, "bytes": chance.randint(2, 6) * GIGABYTE, "files": chance.randint(5, 20)}
        facts["partition"] = Partition(dataset, f"{DAY:%Y-%m-%d}", made.hour)
        rejects = {"not JSON": chance.randint(0, 40), "invalid UTF-8": chance.randint(0, 9)} if minute % 30 == 0 else {}
        if 7 * 60 <= minute < 19 * 60:
            wait = 35 + 25 * chance.random() + (90 if 9 * 60 < minute < 10 * 60 else 0)
            rows.append(row(f"s{minute}", Lane.STREAM, seconds=wait, rejects=rejects, **facts))
        else:
            end = NIGHT if made < NIGHT else NIGHT + timedelta(days=1)
            wait = (end - made).total_seconds() + chance.randint(600, 5400)
            rows.append(row(f"b{minute}", seconds=wait, rejects=rejects, **facts))
    rows.append(row("20261120T0930f1", state=State.FAILED, reason="s3://input/orders/a.gz: the archive is damaged"))
    costs = []
    for number in range(14):
        lane = Lane.STREAM if number < 6 else Lane.BATCH
        begin = DAY + timedelta(hours=7 + 2 * number) if lane is Lane.STREAM else NIGHT
        begin += timedelta(minutes=11 * (number // 3) if lane is Lane.BATCH else 0)
        ended = begin + timedelta(minutes=120 if lane is Lane.STREAM else 38 + 3 * number % 11)
        share = CostShare("orders", 900_000 * (number + 2), 900 * GIGABYTE, 300)
        shares = (share, replace(share, dataset="clicks", micro_dollars=700_000 * (number + 1)))
        dollars = sum(part.micro_dollars for part in shares)
        times: dict[str, Any] = {
            "started_at": iso_utc(begin),
            "ended_at": iso_utc(ended),
            "shares": shares,
            "micro_dollars": dollars,
        }
        costs.append(cost_row(f"jr_{chance.randrange(16**12):012x}", lane, **times))
    planned = {"engine": "glue-flex", "runs": 8, "manifests": 121, "files": 4800, "bytes": 14_000 * GIGABYTE}
    night = ExecutionFacts(
        "night",
        {"planned_at": iso_utc(NIGHT), "micro_dollars": 131_000_000, **planned},
        {
            "minutes": 71.0,
            "end": iso_utc(NIGHT + timedelta(minutes=71)),
            "deadline": iso_utc(DAY + timedelta(hours=30)),
        },
        {"outcome": "SUCCEEDED_WITH_QUARANTINE", "done": 121, "failed": 0, "open": 0, "rows": 12_000, "rejects": 212}
        | {"failed_files": 0, "damaged_objects": 0},
        tuple(run for run in cost_figures(costs).job_runs if run.execution == "night"),
    )
    figures = {
        "title": f"{DAY:%A, %Y-%m-%d}",
        "period": "Files of the hours of this day; job runs that ended on this day.",
    }
    return report_of(*rows, costs=tuple(costs), executions=(night,), alarms=(), **figures)


def main() -> None:
    """Write docs/images/report.png and report-dark.png."""
    page = render_page(sample_report())
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        chromium = Chromium(Path(folder))
        for name, scheme in (("report.png", LIGHT), ("report-dark.png", DARK)):
            path = IMAGES / name
            assert chromium.picture(page, path, "900,1900", scheme) == []
            Image.open(path).convert("RGB").quantize(COLORS).save(path, optimize=True)


if __name__ == "__main__":
    main()
