"""Mutations of ownership: each context manager removes one rule while it is entered."""

from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

import router.ownership.record
import router.ownership.resolve
import router.ownership.take
from lake.ledger.arrivals import Arrivals, arrival_key
from router.ownership.record import RowStamp
from router.ownership.resolve import delete_intent, write_intent
from router.requests.reprocess import next_reprocess_step
from router.requests.selection import NextStep
from tests.model.changed_source import changed_source


def enqueue_a_draft_with_an_unconfirmed_row() -> AbstractContextManager[Any]:
    """The draft becomes a manifest of those files whose rows are confirmed."""
    record = changed_source(router.ownership.record.record_drafts, "if files and not unconfirmed:", "if files:")
    return patch("router.ownership.take.record_drafts", record)


def find_no_missed_arrivals() -> AbstractContextManager[Any]:
    return patch("router.sweep.handler.adopt_missed", lambda _: None)


def adopt_unconditionally() -> AbstractContextManager[Any]:
    def unfenced(self: Arrivals, _: Any, row: Any) -> Any:
        key = arrival_key(row.file.bucket, row.file.key, row.file.version)
        changes = {name: getattr(row, name) for name in ("manifest", "lane", "reason", "recorded_at")}
        self._table.update(key, assign=changes)
        return row

    return patch.object(Arrivals, "adopt", unfenced)


def resume_no_intents() -> AbstractContextManager[Any]:
    return patch("router.sweep.handler.resume_intents", lambda _: None)


def delete_the_intent_before_the_rows() -> AbstractContextManager[Any]:
    def deleted(services: Any, arrivals: Any, now: Any) -> str:
        key = write_intent(services, arrivals, now)
        delete_intent(services, key)
        return key

    return patch("router.ownership.take.write_intent", deleted)


def write_rows_without_an_intent() -> AbstractContextManager[Any]:
    return patch("router.ownership.take.write_intent", lambda *_: "intents/unwritten.json")


def delete_the_intent_of_unsettled_arrivals() -> AbstractContextManager[Any]:
    """The module's one call of ``all`` asks whether every arrival is settled."""
    return patch("router.ownership.take.all", lambda _: True, create=True)


def ignored_for_ever() -> AbstractContextManager[Any]:
    """An IGNORED arrival is a duplicate, although a rule routes it today."""
    resolve = changed_source(router.ownership.resolve.resolve_owners, "if arrival is None:", "if True:")
    return patch("router.ownership.take.resolve_owners", resolve)


def forget_what_can_come_again() -> AbstractContextManager[Any]:
    """The row of a file without a version expires."""
    return patch.object(RowStamp, "expiry", lambda self, _: self.expires_at)


def take_what_may_be_forgotten() -> AbstractContextManager[Any]:
    return patch("router.ownership.take.divide_by_expiry", lambda _, __, routed, ___: (list(routed), []))


def queue_again_for_the_same_request() -> AbstractContextManager[Any]:
    def forgetful(row: Any, only: Any, request: str) -> NextStep:
        return next_reprocess_step(row, only, f"not {request}")

    return patch("router.requests.reprocess.next_reprocess_step", forgetful)
