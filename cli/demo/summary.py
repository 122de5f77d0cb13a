"""The result of the demo: a table of all files, the proof, and ``summary.json``."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from lake.counted import format_count

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rich.console import Console

    from cli.demo.proof import Proof
    from cli.demo.stages import SentFile
    from cli.trace import Trace


def file_record(sent_file: SentFile, trace: Trace, proof: Proof) -> dict[str, Any]:
    """One file: the contents of the ledger and of its result document, and the counts of the proof."""
    uri = sent_file.object.uri
    source = trace.source or {}
    current = trace.manifests[-1] if trace.manifests else None
    seconds = None
    if current is not None and current.finished_at is not None:
        seconds = round(datetime.fromisoformat(current.finished_at).timestamp() - sent_file.sent_at, 1)
    counted = proof.inputs[uri]
    return {
        "file": str(sent_file.file.path),
        "uri": uri,
        "dataset": sent_file.file.dataset,
        "lane": trace.arrival.lane,
        "reason": trace.arrival.reason,
        "state": trace.state,
        "manifests": [row.id for row in trace.manifests],
        "lines_counted": counted.lines,
        "blank_lines": counted.blank,
        "rows_in": counted.rows,
        "rows_out": source.get("rows", 0),
        "quarantined": proof.quarantined.get(uri, 0),
        "first_reason": source.get("failed") or source.get("first_reject") or (current.reason if current else None),
        "quarantined_whole": uri in proof.whole_files,
        "parquet_files": len(trace.result["files"]) if trace.result else 0,
        "seconds": seconds,
    }


def row_differences(records: Sequence[dict[str, Any]]) -> list[str]:
    """Files whose rows, rejects and blank lines do not add up to the lines counted before the upload."""
    return [
        f"{item['uri']}: {format_count(item['lines_counted'], 'line')} before the upload, but "
        f"{format_count(item['rows_out'], 'row')}, {item['quarantined']:,} quarantined and "
        f"{format_count(item['blank_lines'], 'blank line')}"
        for item in records
        if not item["quarantined_whole"]
        and item["lines_counted"] != item["rows_out"] + item["quarantined"] + item["blank_lines"]
    ]


def print_files(console: Console, records: Sequence[dict[str, Any]]) -> None:
    """Print the table of all files."""
    table = Table(title="What happened to every file", title_justify="left", header_style="bold")
    for name in ("file", "lane", "reason"):
        table.add_column(name, overflow="fold")
    for name in ("rows in", "rows out", "quarantined", "parquet", "seconds"):
        table.add_column(name, justify="right")
    table.add_column("first error", overflow="fold")
    for item in records:
        whole = item["quarantined_whole"]
        table.add_row(
            Text(item["uri"].split("/", 3)[-1]),
            Text(str(item["lane"] or item["state"])),
            Text(item["reason"]),
            f"{item['rows_in']:,}",
            f"{item['rows_out']:,}",
            "whole file" if whole else f"{item['quarantined']:,}",
            str(item["parquet_files"]),
            "" if item["seconds"] is None else f"{item['seconds']:.1f}",
            Text(item["first_reason"] or ""),
        )
    console.print(table)


def print_proof(console: Console, proof: Proof) -> None:
    """Print the proof for each dataset, and every difference in red."""
    table = Table(
        title="Proof (by code that shares nothing with the product)", title_justify="left", header_style="bold"
    )
    table.add_column("dataset")
    for name in ("rows in the lake", "checksum of the input", "checksum of the lake"):
        table.add_column(name, justify="right")
    table.add_column("")
    for dataset, (expected, actual) in proof.checksums.items():
        verdict = "[green]equal[/]" if expected == actual else "[bold red]DIFFERENT[/]"
        table.add_row(dataset, f"{proof.lake_rows[dataset]:,}", f"{expected:032x}"[:16], f"{actual:032x}"[:16], verdict)
    console.print(table)
    for difference in proof.differences:
        console.print(Text(f"DIFFERENCE {difference}", style="bold red"))
    if not proof.differences:
        lines = format_count(sum(item.lines for item in proof.inputs.values()), "line")
        files = format_count(len(proof.inputs), "file")
        console.print(
            f"[bold green]Nothing was lost or changed:[/] {lines} of {files} are all in the lake or in the quarantine."
        )


def write_summary(path: Path, records: Sequence[dict[str, Any]], proof: Proof, extra: dict[str, Any]) -> None:
    """Write ``summary.json``: the contents of the tables for programs, and ``extra``."""
    body = {
        "ok": not proof.differences,
        "differences": proof.differences,
        "files": list(records),
        "datasets": {
            name: {"rows": proof.lake_rows[name], "input": f"{expected:032x}", "lake": f"{actual:032x}"}
            for name, (expected, actual) in proof.checksums.items()
        },
        **extra,
    }
    path.write_text(json.dumps(body, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
