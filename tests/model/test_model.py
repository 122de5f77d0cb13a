"""The protocol keeps its promises under every single fault, and under many random histories."""

import pytest

from tests.model.histories import SCENARIOS, at_random, directed, play

EVERY = {"reprocess": 7, "plan": 5, "promote": 7, "poison": 29}
"""Of the single faults of long scenarios only every n-th is tried here; a long run tries them all."""
SEEDS = {"reprocess": 40, "poison": 8}


@pytest.mark.parametrize("name", SCENARIOS)
def test_without_faults_every_scenario_ends_well(name: str) -> None:
    history = play(SCENARIOS[name], lambda *_: "")
    assert history.violation is None, history.describe()
    assert history.steps


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_single_fault_breaks_a_promise(name: str) -> None:
    # Given a scenario, when one thing goes wrong or one actor is interrupted, at every step
    for history in single_faults(name, EVERY.get(name, 3)):
        # Then nobody ever sees a half, and sweep and workers bring everything to its end
        assert history.violation is None, history.describe()


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_random_history_breaks_a_promise(name: str) -> None:
    for seed in range(SEEDS.get(name, 80)):
        history = at_random(SCENARIOS[name], seed)
        assert history.violation is None, f"seed {seed}: {history.describe()}"


def test_who_read_the_right_document_in_time_publishes_nothing_after_it_was_found_to_be_wrong() -> None:
    script = [("worker1", "complete_multipart_upload", "tamper:worker2")]
    history = directed(SCENARIOS["tampered"], script)
    assert history.violation is None, history.describe()


def test_a_history_is_replayed_by_its_seed() -> None:
    first, second = (at_random(SCENARIOS["reprocess"], 3) for _ in range(2))
    assert first.faults
    assert first.trace == second.trace


def single_faults(name, every):
    from tests.model.histories import choices

    scenario = SCENARIOS[name]
    quiet = play(scenario, lambda *_: "")
    planned = [
        (step, choice)
        for step, (actor, operation) in enumerate(quiet.steps, start=1)
        for choice in choices(scenario, actor, operation)
    ]
    for step, choice in planned[::every]:
        yield play(scenario, lambda now, *_, step=step, choice=choice: choice if now == step else "")
