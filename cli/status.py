"""``hybrid-router status``: the backlog of each lane and the stream's health."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from cli.exit_codes import ExitCode
from lake.ledger.manifest_row import OPEN_STATES
from lake.manifest import Lane

if TYPE_CHECKING:
    from cli.deployed_stack import DeployedStack


def print_status(stack: DeployedStack) -> int:
    """Print open manifests by lane and state with number, size and age, then the stream's health; the exit code."""
    console = Console(highlight=False)
    table = Table(title="Open manifests", title_justify="left", header_style="bold")
    table.add_column("lane")
    table.add_column("state")
    for name in ("manifests", "files", "GB", "oldest (minutes)"):
        table.add_column(name, justify="right")
    now = datetime.now(UTC)
    for lane in Lane:
        for state in OPEN_STATES:
            rows = list(stack.ledger.manifests.open(lane, state))
            oldest = (now - datetime.fromisoformat(rows[0].created_at)).total_seconds() / 60 if rows else 0
            table.add_row(
                lane,
                state,
                f"{len(rows):,}",
                f"{sum(row.files for row in rows):,}",
                f"{sum(row.bytes for row in rows) / 1e9:,.3f}",
                f"{oldest:,.1f}" if rows else "",
            )
    console.print(table)
    stream = stack.ledger.stream.get()
    health = f"last heartbeat {stream.heartbeat_at}" if stream.heartbeat_at else "not running"
    console.print(
        f"stream: {health}{', stop requested' if stream.stop_requested else ''}"
        f"{', spilling to the batch lane' if stream.spilling else ''}"
    )
    return ExitCode.FINE
