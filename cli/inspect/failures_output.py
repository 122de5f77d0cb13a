"""The document of ``failures`` as a page for people."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import typer

from cli.documents import FailureKind, FailuresDocument, Trouble
from lake.texts import format_clock, format_count, format_size, printable, read_instant


def print_failures_document(document: FailuresDocument, zone: ZoneInfo, now: datetime) -> None:
    """A few lines for each; instants are on the wall clock of ``zone``."""
    for trouble in document.failures:
        since = f" since {format_clock(read_instant(trouble.since), zone, now)}" if trouble.since else ""
        typer.echo(f"{trouble.kind} {_thing(trouble)}{since}")
        typer.echo(f"  why   {printable(trouble.reason)}")
        typer.echo(f"  do    {trouble.advice}")
        if trouble.command:
            typer.echo(f"  run   {printable(trouble.command)}")
    number = len(document.failures)
    if not document.complete:
        typer.echo(f"{number:,} shown, there are more: pass a larger --limit, or --dataset")
    else:
        typer.echo(f"{number:,} in all" if number else "everything got through")


def _thing(trouble: Trouble) -> str:
    if trouble.uri and trouble.manifest and trouble.bytes is not None:
        return f"{printable(trouble.uri)} ({format_size(trouble.bytes)}, manifest {trouble.manifest})"
    if trouble.bytes is None:
        return format_count(trouble.files, "message")
    size = f"{format_count(trouble.files, 'file')}, {format_size(trouble.bytes)}"
    if trouble.kind == FailureKind.IGNORED:
        return f"{size}, such as {printable(trouble.uri or '')}"
    if trouble.uri:
        return f"{printable(trouble.uri)} ({size})"
    return f"manifest {trouble.manifest} of {trouble.partition}, {trouble.lane} lane ({size})"
