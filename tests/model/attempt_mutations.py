"""Mutations of what an attempt may use up or commit: each context manager removes one rule while it is entered."""

from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

import transform.finalize
from lake.ledger.costs import Costs
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
