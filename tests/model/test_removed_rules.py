"""Mutation tests: removing any rule from the product is detected, because a history then breaks a promise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.model import mutations
from tests.model.histories import History, histories_with_one_fault, scripted
from tests.model.random_histories import explore
from tests.model.scenarios import SCENARIOS

if TYPE_CHECKING:
    from tests.model.mutations import Mutation

MAX_HISTORIES = 150
MAX_SHRUNK_FAULTS = 3
RULES: dict[str, tuple[Mutation, str]] = {
    "skip the fence": (mutations.skip_the_fence, "workers"),
    "publish before audit": (mutations.publish_before_audit, "workers"),
    "reuse an upload": (mutations.reuse_an_upload, "workers"),
    "acknowledge before the manifest": (mutations.acknowledge_before_the_manifest, "ownership"),
    "no lease renewal": (mutations.no_lease_renewal, "slow"),
    "renew an expired lease": (mutations.renew_an_expired_lease, "workers"),
    "HELD is done": (mutations.held_is_done, "stream"),
    "skip the commit document": (mutations.skip_the_commit_document, "workers"),
    "roll forward by listing": (mutations.roll_forward_by_listing, "workers"),
    "commit without reading again": (mutations.commit_without_reading_again, "workers"),
    "delete objects without a DONE manifest": (mutations.sweep_deletes_objects_without_a_done_manifest, "reprocess"),
    "abort uploads of all but RUNNING manifests": (
        mutations.sweep_aborts_uploads_of_all_but_running_manifests,
        "workers",
    ),
    "adopt without abandoning": (mutations.adopt_without_abandoning, "ownership"),
    "merge unconditionally": (mutations.supersede_unconditionally, "plan"),
    "promote unconditionally": (mutations.supersede_unconditionally, "promote"),
    "forget lost pointers": (mutations.forget_lost_pointers, "stream"),
}
"""Each removed rule, with the scenario that needs it."""
SCRIPTS = {
    "reuse an upload": [
        ("worker1", "put_object", "expire_lease:worker2"),
        ("worker2", "complete_multipart_upload", "switch:worker1"),
    ]
}
"""Traces that need several switches between actors. They break a promise only without the rule."""


@pytest.mark.parametrize("rule", SCRIPTS)
def test_a_known_trace_breaks_no_promise_while_the_rule_is_kept(rule: str) -> None:
    history = scripted(SCENARIOS[RULES[rule][1]], SCRIPTS[rule])
    assert history.violation is None, history.describe()


def first_violation(rule: str) -> History | None:
    """Of the script; otherwise of the exhaustive histories with one fault, then of the random ones."""
    scenario = SCENARIOS[RULES[rule][1]]
    if rule in SCRIPTS:
        history = scripted(scenario, SCRIPTS[rule])
        return history if history.violation else None
    violations = (history for history in histories_with_one_fault(scenario) if history.violation)
    return next(violations, None) or explore(scenario, 0, MAX_HISTORIES, shrink=False).violation


@pytest.mark.parametrize("rule", RULES)
def test_removing_any_rule_is_detected(rule: str) -> None:
    # Given the product without one of its rules
    mutation, _ = RULES[rule]
    with mutation():
        # When histories are played, Then one of them breaks a promise
        assert first_violation(rule) is not None


def test_a_random_violation_is_shrunk_to_few_faults() -> None:
    # Given the product without a rule
    mutation, scenario = RULES["merge unconditionally"]
    with mutation():
        # When random histories are played
        explored = explore(SCENARIOS[scenario], 0, MAX_HISTORIES)
    # Then the violation is reported with few faults
    assert explored.violation is not None
    assert 1 <= len(explored.violation.faults) <= MAX_SHRUNK_FAULTS, explored.violation.describe()
