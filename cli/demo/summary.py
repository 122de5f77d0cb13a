"""The result of the demo: a table of all files, and whether they are proven."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from cli.demo.stages import SentFile
from cli.inspect.trace import Trace
from cli.terminal import print_table
from lake.texts import format_count, printable

if TYPE_CHECKING:
    from rich.console import Console


def file_record(sent_file: SentFile, trace: Trace | None) -> dict[str, Any]:
    """What the ledger and the result document say of one file; ``trace`` is None if the ledger has no record of it."""
    record = {"uri": sent_file.object.uri, "dataset": sent_file.file.dataset}
    if trace is None:
        return {**record, "state": "not recorded", "lane": None, "reason": "", "rows": None}
    source = trace.source or {}
    current = trace.manifests[-1] if trace.manifests else None
    seconds = None
    if current is not None and current.finished_at is not None:
        seconds = round(datetime.fromisoformat(current.finished_at).timestamp() - sent_file.sent_at, 1)
    return {
        **record,
        "state": trace.state,
        "lane": trace.arrival.lane,
        "reason": trace.arrival.reason,
        "lines": source.get("lines"),
        "rows": source.get("rows"),
        "quarantined": sum(source.get("rejects", {}).values()),
        "quarantined_whole": bool(source.get("failed")),
        "first_reason": source.get("failed") or source.get("first_reject") or (current.reason if current else None),
        "parquet_files": len(trace.result["files"]) if trace.result else 0,
        "seconds": seconds,
    }


def print_files(records: Sequence[dict[str, Any]]) -> None:
    """Print the table of all files."""
    rows = []
    for item in records:
        numbers = [item.get(name) for name in ("lines", "rows", "quarantined", "parquet_files", "seconds")]
        if item.get("quarantined_whole"):
            numbers[2] = "whole file"
        texts = (item["uri"].split("/", 3)[-1], str(item["lane"] or item["state"]), item["reason"])
        rows.append(tuple(map(printable, (*texts, item.get("first_reason") or "", *map(_cell, numbers)))))
    names = ("file", "lane", "reason", "first error")
    print_table("What happened to every file", names, ("lines", "rows", "quarantined", "parquet", "seconds"), rows)


def _cell(value: float | str | None) -> str:
    return f"{value:,}" if isinstance(value, int) else "" if value is None else str(value)


def print_outcome(console: Console, records: Sequence[dict[str, Any]], *, is_proven: bool) -> None:
    """Print in one sentence whether ``verify`` has proven every hour."""
    if not is_proven:
        console.print("[bold red]verify has not proven every hour: see above.[/]")
        return
    rows = format_count(sum(item["rows"] or 0 for item in records), "row")
    lines = format_count(sum(item.get("quarantined") or 0 for item in records), "quarantined line")
    console.print(
        f"[bold green]Nothing was lost or changed:[/] {rows} and {lines} of {format_count(len(records), 'file')}, "
        "compared with the input by code that shares nothing with the conversion."
    )
