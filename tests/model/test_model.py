"""The protocol keeps its promises without faults, under every single fault, and in random histories."""

from random import Random

import pytest

from tests.model.histories import histories_with_one_fault, play, scripted
from tests.model.random_histories import FaultPlan, explore, play_plan
from tests.model.scenarios import SCENARIOS

LONG_SCENARIOS = (
    *(
        "arrivals",
        "denied",
        "force",
        "forgotten",
        "forgotten versions",
        "overnight",
        "plan",
        "put again",
        "reprocess",
        "stream",
        "threads",
        "window",
    ),
    *("wide", "wrong results"),
)
EVERY = {**dict.fromkeys(LONG_SCENARIOS, 17), "expired": 17, "promote": 29, "requests": 31, "shards": 41, "poison": 61}
"""Only every n-th single fault is tried here; each night ``python -m tests.model`` explores further."""
DEFAULT_EVERY = 7
MAX_HISTORIES = {
    "poison": 8,
    "wide": 20,
    "requests": 40,
    "promote": 40,
    "reprocess": 60,
    "wrong results": 20,
    "shards": 40,
}
DEFAULT_MAX_HISTORIES = 80
SEED = 0


@pytest.mark.parametrize("name", SCENARIOS)
def test_without_faults_every_scenario_keeps_every_promise(name: str) -> None:
    history = play(SCENARIOS[name], lambda *_: "")
    assert history.violation is None, history.describe()
    assert history.steps


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_single_fault_breaks_a_promise(name: str) -> None:
    # Given a scenario, when one fault, event or switch occurs, at any step
    for history in histories_with_one_fault(SCENARIOS[name], EVERY.get(name, DEFAULT_EVERY)):
        # Then readers never see a part of a manifest, and sweep and workers finish everything
        assert history.violation is None, history.describe()


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_random_history_breaks_a_promise(name: str) -> None:
    explored = explore(SCENARIOS[name], SEED, MAX_HISTORIES.get(name, DEFAULT_MAX_HISTORIES))
    assert explored.violation is None, f"seed {SEED}: {explored.violation.describe()}"
    assert explored.faults


def test_a_publisher_of_the_right_document_publishes_nothing_after_it_was_changed() -> None:
    script = [("worker1", "complete_multipart_upload", "change_document:worker2")]
    history = scripted(SCENARIOS["tampered"], script)
    assert history.violation is None, history.describe()


def test_an_ignored_file_that_another_invocation_adopts_before_its_event_is_acknowledged_gets_an_owner() -> None:
    # Given a rule that comes while the event is routed, and a backfill that is adopting the file at its acknowledgement
    script = [
        ("queue1", "get_bucket_versioning", "add_rule"),
        ("queue1", "delete_object", "switch:backfill1"),
        ("backfill1", "update_item", ""),
        ("backfill1", "put_object", "switch:queue1"),
    ]
    history = scripted(SCENARIOS["new rule"], script)
    assert history.violation is None, history.describe()


def test_a_history_is_replayed_by_its_plan() -> None:
    plan = FaultPlan(2, 0.2, 0.2, used_id_succeeds=True, draws=Random(3).randbytes(200))
    first, second = (play_plan(SCENARIOS["reprocess"], plan) for _ in range(2))
    assert first.faults
    assert first.trace == second.trace


def test_random_histories_are_replayed_by_their_seed() -> None:
    first, second = (explore(SCENARIOS["reprocess"], 3, 10) for _ in range(2))
    assert first.faults
    assert first == second
