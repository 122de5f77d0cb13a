"""A sweep that fails at several items names them, so that who reads its error sees each cause."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from botocore.exceptions import ClientError

from lake.errors import TerminalError, TransientError
from router.sweep.handler import sweep
from router.sweep.repair import FailedItem, error_of_sweep

if TYPE_CHECKING:
    from router.sweep.repair import Repair
    from tests.unit.router.conftest import Deployment


def failed(item: str, error: Exception | None = None) -> FailedItem:
    return FailedItem(item, error or TransientError(f"{item} is busy"))


def refused(operation: str) -> ClientError:
    return ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no permission"}}, operation)


def test_several_are_named_the_first_of_each_repair_before_the_second_of_any() -> None:
    publishes = [failed(f"publish m{number}") for number in range(3)]
    error = error_of_sweep([publishes, [], [failed("bills")]])
    assert str(error) == (
        "4 repairs failed, and the next sweep tries them again: publish m0: publish m0 is busy; bills: bills is busy; "
        "publish m1: publish m1 is busy; publish m2: publish m2 is busy"
    )


@pytest.mark.parametrize(
    ("other", "kind"), [(TransientError("busy"), TransientError), (refused("GetItem"), TerminalError)]
)
def test_it_is_transient_if_all_of_them_are(other: Exception, kind: type[Exception]) -> None:
    assert type(error_of_sweep([[failed("lease m1"), failed("lease m2", other)]])) is kind


def test_a_sweep_names_the_items_of_each_repair_that_failed(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given two repairs that fail, one at an item of its own
    def refuse(*_: object) -> None:
        raise ValueError("no listing")

    def busy(repair: Repair) -> None:
        with repair.isolated("lease", manifest_id="m1"):
            raise TransientError("it is busy")

    monkeypatch.setattr("router.sweep.handler.adopt_missed", refuse)
    monkeypatch.setattr("router.sweep.handler.release_leases", busy)
    # When
    with pytest.raises(TerminalError) as raised:
        sweep(deployment.services)
    # Then
    assert str(raised.value) == (
        "2 repairs failed, and the next sweep tries them again: lease m1: it is busy; missed: ValueError: no listing"
    )
