"""Mutation tests: removing any rule from the product is detected, because a history then breaks a promise."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.model import (
    attempt_mutations,
    collection_mutations,
    mutations,
    ownership_mutations,
    publishing_mutations,
)
from tests.model.fake_spark import WRONG_RESULTS
from tests.model.histories import History, histories_with_one_fault, play, scripted
from tests.model.random_histories import explore
from tests.model.scenarios import SCENARIOS

if TYPE_CHECKING:
    from tests.model.mutations import Mutation

MAX_HISTORIES = 400
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
    "delete later generations": (mutations.sweep_deletes_later_generations, "reprocess"),
    "end generations without a deletion": (publishing_mutations.end_generations_without_a_deletion, "reprocess"),
    "abort uploads of all but RUNNING manifests": (
        mutations.sweep_aborts_uploads_of_all_but_running_manifests,
        "workers",
    ),
    "adopt without abandoning": (mutations.adopt_without_abandoning, "ownership"),
    "a closed collection takes parts": (collection_mutations.a_closed_collection_takes_parts, "collections"),
    "an abandoned part is added": (collection_mutations.an_abandoned_part_is_added, "collections"),
    "collection and part change apart": (collection_mutations.collection_and_part_change_apart, "collections"),
    "an unanswered part counts as added": (collection_mutations.an_unanswered_part_counts_as_added, "collections"),
    "an open collection is divided": (collection_mutations.an_open_collection_is_divided, "collections"),
    "two divisions of a collection": (collection_mutations.two_divisions_of_a_collection, "dividers"),
    "an own division is carried out": (collection_mutations.an_own_division_is_carried_out, "dividers"),
    "a manifest is queued again": (collection_mutations.a_manifest_is_queued_again, "dividers"),
    "done before its manifests": (collection_mutations.done_before_its_manifests, "dividers"),
    "a late part touches no hour": (collection_mutations.a_late_part_touches_no_hour, "late part"),
    "a late part touches its hours afterwards": (
        collection_mutations.a_late_part_touches_its_hours_afterwards,
        "late part",
    ),
    "a look reads no collections": (collection_mutations.a_look_reads_no_collections, "late part of a divided hour"),
    "a look needs no final close": (collection_mutations.a_look_needs_no_final_close, "late part of a divided hour"),
    "an empty collection replaces a row": (
        collection_mutations.an_empty_collection_replaces_a_row,
        "late part of a divided hour",
    ),
    "promote unconditionally": (mutations.supersede_unconditionally, "promote"),
    "forget lost pointers": (mutations.forget_lost_pointers, "stream"),
    "DONE is fenced by its state only": (publishing_mutations.done_is_fenced_by_its_state_only, "reprocess"),
    "FAILED is fenced by its state only": (publishing_mutations.failed_is_fenced_by_its_state_only, "vanish"),
    "commit after a release": (publishing_mutations.commit_after_a_release, "workers"),
    "abort before the release": (publishing_mutations.abort_before_the_release, "workers"),
    "leave the quarantine out": (
        publishing_mutations.leave_the_quarantine_out_of_the_commit_document,
        "workers",
    ),
    "quarantine no excluded file": (publishing_mutations.quarantine_no_excluded_file, "unreadable"),
    "totals without the quarantine": (publishing_mutations.totals_without_the_quarantine, "unreadable"),
    "audit nothing": (publishing_mutations.audit_nothing, "wrong results"),
    "no grace period": (publishing_mutations.delete_replaced_objects_at_once, "reprocess"),
    "a draft with an unconfirmed row": (
        ownership_mutations.enqueue_a_draft_with_an_unconfirmed_row,
        "ownership",
    ),
    "find no missed arrivals": (ownership_mutations.find_no_missed_arrivals, "arrivals"),
    "adopt unconditionally": (ownership_mutations.adopt_unconditionally, "orphans"),
    "resume no intents": (ownership_mutations.resume_no_intents, "intents"),
    "delete the intent before the rows": (ownership_mutations.delete_the_intent_before_the_rows, "intents"),
    "rows without an intent": (ownership_mutations.write_rows_without_an_intent, "intents"),
    "delete the intent of unsettled arrivals": (ownership_mutations.delete_the_intent_of_unsettled_arrivals, "intents"),
    "IGNORED for ever": (ownership_mutations.ignored_for_ever, "new rule"),
    "forget what can come again": (ownership_mutations.forget_what_can_come_again, "forgotten"),
    "take what may be forgotten": (ownership_mutations.take_what_may_be_forgotten, "forgotten versions"),
    "queue again for the same request": (ownership_mutations.queue_again_for_the_same_request, "requests"),
    "count faults of the environment": (attempt_mutations.count_faults_of_the_environment, "denied"),
    "claim without a preflight": (attempt_mutations.claim_without_a_preflight, "denied"),
    "record a cost again": (attempt_mutations.record_a_cost_again, "overnight"),
    "replace rows by fewer": (attempt_mutations.replace_rows_by_fewer, "expired"),
    "fail where nothing can be converted": (attempt_mutations.fail_where_nothing_can_be_converted, "all expired"),
    "keep the list of unreadable files": (attempt_mutations.keep_the_list_of_unreadable_files, "expired"),
    "delete what the published generation keeps": (
        publishing_mutations.delete_what_the_published_generation_keeps,
        "expired",
    ),
    "roll back what the published generation keeps": (
        publishing_mutations.roll_back_what_the_published_generation_keeps,
        "expired",
    ),
    "reserve no columns": (attempt_mutations.reserve_no_columns, "wide"),
    "count an attempt without room": (attempt_mutations.count_an_attempt_without_room_for_its_columns, "wide"),
    "more columns than an item holds": (attempt_mutations.reserve_more_columns_than_an_item_holds, "wide"),
}
"""Each removed rule, with the scenario that needs it."""
SCRIPTS = {
    "reuse an upload": [
        ("worker1", "put_object", "expire_lease:worker2"),
        ("worker2", "complete_multipart_upload", "switch:worker1"),
    ],
    # A sleeps before DONE; B finishes; force; B commits the next generation; A wakes up.
    "DONE is fenced by its state only": [
        ("worker1", "complete_multipart_upload", ""),
        ("worker1", "put_object", ""),
        ("worker1", "transact_write_items", "switch:worker2"),
        ("worker2", "transact_write_items", ""),
        ("worker2", "get_item", "force"),
        ("worker2", "complete_multipart_upload", "switch:worker1"),
    ],
    # The same with FAILED, after an upload of the first generation has vanished.
    "FAILED is fenced by its state only": [
        ("worker1", "complete_multipart_upload", "lose_upload"),
        ("worker1", "transact_write_items", "switch:worker2"),
        ("worker2", "transact_write_items", ""),
        ("worker2", "get_item", "force"),
        ("worker2", "complete_multipart_upload", "switch:worker1"),
    ],
    # The deletion of the first generation is due while the third one becomes visible.
    "delete later generations": [
        ("worker1", "transact_write_items", ""),
        ("worker1", "get_item", "force"),
        ("worker1", "update_item", "advance_hours:worker2"),
        ("worker2", "complete_multipart_upload", ""),
        ("worker2", "complete_multipart_upload", "switch:sweep1"),
    ],
    # The commit is applied after the attempt was given up and its uploads were aborted.
    "commit after a release": [
        ("worker1", "put_object", ""),
        ("worker1", "update_item", "late"),
        ("worker1", "update_item", "lose_request"),
        ("worker1", "update_item", "lose_request"),
    ],
    # The commit is applied while its uploads are aborted.
    "abort before the release": [
        ("worker1", "put_object", ""),
        ("worker1", "update_item", "late_soon"),
        ("worker1", "update_item", "lose_request"),
        ("worker1", "update_item", "lose_request"),
    ],
    # Another plan is faster, and a night converts the manifests, before the first plan queues them.
    "a manifest is queued again": [
        ("plan1", "transact_write_items", "switch:plan2"),
        ("plan2", "update_item", "switch:worker1"),
    ],
    # The put of the second row is applied without an answer, and reading it has no answer either.
    "a draft with an unconfirmed row": [
        ("route1", "put_item", ""),
        ("route1", "put_item", "lose_response"),
        ("route1", "get_item", "lose_request"),
    ],
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
        # When histories are played
        history = first_violation(rule)
    # Then one of them breaks a promise, and not because the mutation does not fit the product any more
    assert history is not None
    assert "failed: TypeError" not in str(history.violation), history.describe()


@pytest.mark.parametrize("wrong", WRONG_RESULTS)
def test_each_kind_of_wrong_results_is_published_without_the_audit(wrong: str) -> None:
    # Given one Spark job whose results are wrong
    scenario = replace(SCENARIOS["wrong results"], wrong_results=(wrong,))
    assert play(scenario, lambda *_: "").violation is None
    # When nothing is audited
    with publishing_mutations.audit_nothing():
        history = play(scenario, lambda *_: "")
    # Then lines are lost, or the attempt's names collide
    assert history.violation is not None


def test_a_random_violation_is_shrunk_to_few_faults() -> None:
    # Given the product without a rule
    mutation, scenario = RULES["promote unconditionally"]
    with mutation():
        # When random histories are played
        explored = explore(SCENARIOS[scenario], 0, MAX_HISTORIES)
    # Then the violation is reported with few faults
    assert explored.violation is not None
    assert 1 <= len(explored.violation.faults) <= MAX_SHRUNK_FAULTS, explored.violation.describe()
