"""Permissions that were used on other clouds than the common one; their folders are removed at their end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.e2e.permission_record import used

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.permission_record import Permission

USES: set[Permission] = set()


def collect(logs: Path, stack: str) -> None:
    """Add what the stack's roles have used so far."""
    record = logs / "permissions.jsonl"
    if record.is_file():
        USES.update(used(record, stack))
