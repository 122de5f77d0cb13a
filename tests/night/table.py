"""The last table: what the plans of the nights have promised, beside what was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from tests.night.nights import NightDocuments

NONE = "-"


def print_nights(documents: NightDocuments) -> None:
    """Print planned beside measured of both nights."""
    table = Table(title="Planned beside measured", title_justify="left", header_style="bold")
    for name in ("", "failed night: planned", "measured", "night after the repair: planned", "measured"):
        table.add_column(name, justify="left" if not name else "right")
    columns = [_planned(documents.failed), _measured(documents.failed)]
    columns += [_planned(documents.repaired), _measured(documents.repaired)]
    for name in columns[0]:
        table.add_row(name, *(column[name] for column in columns))
    Console(highlight=False, width=120).print(table)


def _planned(document: dict[str, Any]) -> dict[str, str]:
    plan = document["plan"]
    return {
        "files": f"{plan['files']:,}",
        "manifests": f"{plan['manifests']:,}",
        "job runs": f"{plan['runs']:,}",
        "minutes": f"{plan['minutes']:.1f}",
        "dollars": f"{plan['dollars']:.4f}",
        "outcome": f"{plan['engine']}, {'in time' if plan['fits'] else 'late'}",
    }


def _measured(document: dict[str, Any]) -> dict[str, str]:
    return {
        "files": f"{sum(item['files'] for item in document['verdict']['datasets']):,}",
        "manifests": f"{document['manifestsDone']:,}",
        "job runs": f"{len(document['jobRuns']):,}",
        "minutes": NONE if document["workMinutes"] is None else f"{document['workMinutes']:.1f}",
        "dollars": NONE if document["dollars"] is None else f"{document['dollars']:.4f}",
        "outcome": document["outcome"],
    }
