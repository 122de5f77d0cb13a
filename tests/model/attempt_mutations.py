"""Mutations of what an attempt may use up or commit: each context manager removes one rule while it is entered."""

from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest.mock import patch

import transform.finalize
from lake.commit import CommitDocument
from lake.ledger.costs import Costs
from lake.ledger.transitions import Manifests
from tests.model.changed_source import changed_source
from transform.give_up import give_up


def count_faults_of_the_environment() -> AbstractContextManager[Any]:
    def counted(*arguments: Any, **options: Any) -> None:
        give_up(*arguments, **{**options, "counted": True})

    return patch("transform.convert.give_up", counted)


def claim_without_a_preflight() -> AbstractContextManager[Any]:
    return patch("batch_job.main.check_environment", lambda *_, **__: None)


def reserve_no_columns() -> AbstractContextManager[Any]:
    return patch("transform.finalize._reserve_columns", lambda *_: True)


def count_an_attempt_without_room_for_its_columns() -> AbstractContextManager[Any]:
    reserve = changed_source(transform.finalize._reserve_columns, ", counted=attempt.columns_full", "")
    return patch("transform.finalize._reserve_columns", reserve)


def reserve_more_columns_than_an_item_holds() -> AbstractContextManager[Any]:
    def all_fit(columns: Any, names: Any, _: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return tuple(name for name in names if name not in columns), ()

    return patch("lake.ledger.datasets.divide_by_room", all_fit)


def record_a_cost_again() -> AbstractContextManager[Any]:
    return patch.object(Costs, "record", changed_source(Costs.record, '[Condition("pk", "missing")]', "[]"))


@contextmanager
def replace_rows_by_fewer() -> Any:
    """A generation leaves out what it cannot read, although the one before has published its rows."""
    with (
        patch("transform.claim_manifest.find_kept_generation", lambda *_: None),
        patch("transform.plan_attempt.find_kept_generation", lambda *_: None),
    ):
        yield


def fail_where_nothing_can_be_converted() -> AbstractContextManager[Any]:
    return patch.object(Manifests, "keep_published", Manifests.fail)


def keep_the_list_of_unreadable_files() -> AbstractContextManager[Any]:
    """Files that are converted at last stay in the quarantine by reference."""
    return patch.object(CommitDocument, "rejected_lines", property(lambda document: document.quarantine))
