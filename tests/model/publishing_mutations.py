"""Mutations of attempt, commit and publish: each context manager removes one rule while it is entered."""

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import lake.publish
import transform.audit
import transform.finalize
import transform.give_up
from lake.commit import CommitDocument, SourceCount, totals_of
from lake.ledger.table import Condition, LedgerTable
from lake.ledger.transitions import Manifests
from router.sweep.leftovers import _doomed, delete_replaced
from tests.model.changed_source import changed_source


def _only_conditions(kept: Callable[[dict[str, Any], Condition], bool]) -> AbstractContextManager[Any]:
    """Updates keep the conditions for which ``kept(assigned attributes, condition)`` is true."""
    update = LedgerTable.update

    def fewer(
        self: LedgerTable,
        key: Any,
        *,
        assign: Any = None,
        add: Any = None,
        remove: Any = (),
        conditions: Collection[Condition] = (),
    ) -> None:
        remaining = [condition for condition in conditions if kept(assign or {}, condition)]
        update(self, key, assign=assign, add=add, remove=remove, conditions=remaining)

    return patch.object(LedgerTable, "update", fewer)


@contextmanager
def _ends_fenced_by_the_state_only(state: str) -> Any:
    fence = f'row_unchanged(row)[: None if changes["state"] != "{state}" else 1]'
    close = changed_source(Manifests._close, "row_unchanged(row)", fence)
    fewer = _only_conditions(lambda assign, item: assign.get("state") != state or item.attribute == "state")
    with fewer, patch.object(Manifests, "_close", close):
        yield


def done_is_fenced_by_its_state_only() -> AbstractContextManager[Any]:
    return _ends_fenced_by_the_state_only("DONE")


def failed_is_fenced_by_its_state_only() -> AbstractContextManager[Any]:
    return _ends_fenced_by_the_state_only("FAILED")


def commit_after_a_release() -> AbstractContextManager[Any]:
    """A release clears state and lease, and the commit compares neither."""
    return _only_conditions(
        lambda assign, item: assign.get("state") != "PUBLISHING" or item.attribute not in ("state", "lease_until")
    )


@contextmanager
def abort_before_the_release() -> Any:
    """The uploads of a commit without an answer are aborted while it may still be applied."""
    commit = changed_source(
        transform.finalize._commit, "give_up(context, claim, reason, (), counted=fault is None)", "pass"
    )
    give_up = transform.give_up.give_up

    def abort_first(context: Any, claim: Any, reason: str, uploaded: Any, *arguments: Any, **options: Any) -> None:
        for item in uploaded:
            lake.publish.abort_upload(context.services.s3, item.bucket, item.key, item.upload_id)
        give_up(context, claim, reason, (), *arguments, **options)

    with (
        patch.multiple(transform.finalize, _commit=commit, give_up=abort_first),
        patch("transform.convert.give_up", abort_first),
    ):
        yield


def leave_the_quarantine_out_of_the_commit_document() -> AbstractContextManager[Any]:
    complete = transform.finalize.commit_document

    def without_quarantine(*arguments: Any) -> Any:
        return replace(complete(*arguments), quarantine=())

    return patch("transform.finalize.commit_document", without_quarantine)


def quarantine_no_excluded_file() -> AbstractContextManager[Any]:
    return patch("transform.finalize.quarantine_excluded", lambda *_: [])


@contextmanager
def audit_nothing() -> Any:
    with ExitStack() as stack:
        for check in ("_check_results", "_check_rows", "_check_rejects"):
            stack.enter_context(patch.object(transform.audit, check, lambda *_: None))
        stack.enter_context(patch.object(transform.audit, "_source_count", _unchecked_source))
        yield


def _unchecked_source(_: Any, file: Any, splits: Any) -> Any:
    rows = sum(item.rows for item in splits)
    return SourceCount(file.uri, file.version, file.size, rows, rows, 0, {}, None, None)


def totals_without_the_quarantine() -> AbstractContextManager[Any]:
    return patch.object(
        lake.publish, "totals_of", lambda document, etags: totals_of(replace(document, quarantine=()), etags)
    )


def delete_replaced_objects_at_once() -> AbstractContextManager[Any]:
    grace = "timedelta(minutes=services.settings.sweep.grace_minutes)"
    return patch("router.sweep.handler.delete_replaced", changed_source(delete_replaced, grace, "timedelta()"))


def end_generations_without_a_deletion() -> AbstractContextManager[Any]:
    return patch.object(Manifests, "_close", changed_source(Manifests._close, "if may_leave_objects", "if False"))


def delete_what_the_published_generation_keeps() -> AbstractContextManager[Any]:
    return patch("router.sweep.leftovers._doomed", changed_source(_doomed, " and (bucket, key) not in kept", ""))


def roll_back_what_the_published_generation_keeps() -> AbstractContextManager[Any]:
    all_objects = property(lambda document: (*document.objects, *document.quarantine))
    return patch.object(CommitDocument, "written", all_objects)
