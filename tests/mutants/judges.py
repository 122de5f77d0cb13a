"""What has to notice a mutant: unit tests of the module, and histories of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

EVERY = 61
"""Every n-th single fault of each scenario."""
RANDOM_HISTORIES = 6
LONG_SCENARIOS = ("poison", "promote")
"""Without single faults and random histories here."""
EVERY_WRITE = 4
"""Every n-th write of a change of owners is interrupted."""
UNIT_TESTS = {
    "lake/ledger/": (
        "unit/lake/test_arrival_rows.py",
        "unit/lake/test_fence.py",
        "unit/lake/test_force.py",
        "unit/lake/test_column_room.py",
        "unit/lake/test_ledger_table.py",
        "unit/lake/test_batch_reads.py",
        "unit/lake/test_rows_after_transitions.py",
        "unit/lake/test_refused_transitions.py",
        "unit/lake/test_reasons.py",
        "unit/lake/test_ledger_manifests.py",
        "unit/lake/test_lake_transitions.py",
        "unit/lake/test_relinquish.py",
        "unit/lake/test_reserve_columns.py",
        "unit/lake/test_conflicts.py",
        "unit/lake/test_manifest_binding.py",
    ),
    "lake/publish.py": (
        "unit/lake/test_lake_publish.py",
        "unit/lake/test_publish_errors.py",
        "unit/lake/test_commit_formats.py",
    ),
    "router/ownership/": (
        "unit/router/test_ownership_outcome.py",
        "unit/router/test_recorded_arrivals.py",
        "unit/router/test_resolved_owners.py",
        "unit/router/test_taken_back.py",
        "unit/router/test_intents.py",
        "unit/router/test_ownership_draft.py",
        "unit/router/test_expired_arrivals.py",
        "unit/router/test_known_arrivals.py",
        "unit/router/test_ignored_arrivals.py",
        "unit/router/test_ownership.py",
        "unit/router/test_dataset_limit.py",
        "unit/router/test_returned_files.py",
        "unit/router/test_ownership_faults.py",
    ),
    "router/reprocess/": (
        "unit/router/reprocess/test_next_step.py",
        "unit/router/reprocess/test_reprocess.py",
    ),
    "transform/": (
        "unit/transform/test_audit.py",
        "unit/transform/test_quarantine_audit.py",
        "unit/transform/test_give_up.py",
        "unit/transform/test_finalize.py",
        "unit/transform/test_lease.py",
        "unit/transform/test_poison_manifest.py",
        "unit/transform/test_environment_fault.py",
        "model/test_takeover.py",
        "unit/transform/test_claim_manifest.py",
        "unit/transform/test_end_of_attempt.py",
    ),
}
"""Files below ``tests``, by the beginning of the mutated module's path, the fastest first."""


def noticed_by(*paths: str) -> str:
    """The first judge that notices the mutation of the modules at ``paths``; empty: it survives."""
    for name, judge in judges(paths).items():
        if judge():
            return name
    return ""


def judges(paths: Collection[str]) -> dict[str, Callable[[], bool]]:
    """Those of modules, the fastest first."""
    return {
        "model without faults": _histories_without_faults,
        "unit tests": lambda: _unit_tests(paths),
        "interrupted changes of owners": _interrupted_changes,
        "random histories": _random_histories,
        "model with one fault": _histories_with_one_fault,
    }


def _histories_without_faults() -> bool:
    from tests.model.histories import play, scripted
    from tests.model.scenarios import SCENARIOS
    from tests.model.test_removed_rules import RULES, SCRIPTS

    if any(play(scenario, lambda *_: "").violation for scenario in SCENARIOS.values()):
        return True
    try:
        return any(scripted(SCENARIOS[RULES[rule][1]], script).violation for rule, script in SCRIPTS.items())
    except AssertionError:
        return True  # The product no longer sends the requests of the script.


def _histories_with_one_fault() -> bool:
    from tests.model.histories import histories_with_one_fault
    from tests.model.scenarios import SCENARIOS

    def histories() -> Iterator[object]:
        for name, scenario in SCENARIOS.items():
            if name not in LONG_SCENARIOS:
                yield from (history.violation for history in histories_with_one_fault(scenario, EVERY))

    return any(histories())


def _random_histories() -> bool:
    from tests.model.random_histories import explore
    from tests.model.scenarios import SCENARIOS

    return any(
        explore(scenario, 0, RANDOM_HISTORIES, shrink=False).violation
        for name, scenario in SCENARIOS.items()
        if name not in LONG_SCENARIOS
    )


def _interrupted_changes() -> bool:
    from tests.model.ownership_changes import INTERRUPTIONS, OWNERSHIP_CHANGES, interrupt, writes_without_interruption
    from tests.model.scheduler import Violation

    try:
        for change in OWNERSHIP_CHANGES.values():
            for number in range(1, len(writes_without_interruption(change)) + 1, EVERY_WRITE):
                for interruption in INTERRUPTIONS:
                    interrupt(change, number, interruption)
    except Violation:
        return True
    return False


def _unit_tests(paths: Collection[str]) -> bool:
    import pytest

    prefixes = [prefix for prefix in UNIT_TESTS if any(path.startswith(prefix) for path in paths)]
    files = [f"tests/{name}" for prefix in prefixes for name in UNIT_TESTS[prefix]]
    arguments = ["-x", "-q", "--no-header", "-p", "no:cacheprovider", "--assert=plain", "-W", "ignore", *files]
    return pytest.main(arguments) != pytest.ExitCode.OK
