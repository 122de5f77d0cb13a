"""Mutations of ownership: each context manager removes one rule while it is entered."""

from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

import router.ownership.record
from lake.ledger.arrivals import Arrivals, arrival_key
from tests.model.changed_source import changed_source


def enqueue_a_draft_with_an_unconfirmed_row() -> AbstractContextManager[Any]:
    """The draft becomes a manifest of those files whose rows are confirmed."""
    record = changed_source(router.ownership.record.record_drafts, "if files and not unconfirmed:", "if files:")
    return patch("router.ownership.take.record_drafts", record)


def find_no_missed_arrivals() -> AbstractContextManager[Any]:
    return patch("router.sweep.handler.adopt_missed", lambda _, search, *__: (search, {"adopted": 0}))


def adopt_unconditionally() -> AbstractContextManager[Any]:
    def unfenced(self: Arrivals, _: Any, row: Any) -> Any:
        key = arrival_key(row.file.bucket, row.file.key, row.file.version)
        changes = {name: getattr(row, name) for name in ("manifest", "lane", "reason", "recorded_at")}
        self._table.update(key, assign=changes)
        return row

    return patch.object(Arrivals, "adopt", unfenced)
