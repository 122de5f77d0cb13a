"""Mutation tests: removing any rule from the product is detected, because a history then breaks a promise."""

from dataclasses import replace

import pytest

from lake.commit import totals_of
from lake.ledger import ManifestRow, State
from lake.ledger.transitions import Manifests
from lake.manifest import Lane
from router.requests.reprocess import next_reprocess_step
from tests.model import mutations
from tests.model.histories import History, histories_with_one_fault, scripted
from tests.model.mutations import Mutation, all_of, changed, only_conditions, replaced
from tests.model.random_histories import explore
from tests.model.scenarios import SCENARIOS
from tests.model.world import PARTITION

MAX_HISTORIES = 150
MAX_SHRUNK_FAULTS = 3
NO_ROW = '[Condition("pk", "missing")]'
"""The condition of a row that is written for the first time."""
WITHOUT_AN_OWNER = changed(
    "router.ownership.take.create_owner", "        return NO_ANSWER", '        return Part("", "", "", 0, 0, "", ())'
)
RULES: dict[str, tuple[str, Mutation]] = {
    "skip the fence": ("workers", replaced("lake.ledger.transitions.Claim.fence", property(lambda _: []))),
    "publish before audit": ("workers", mutations.publish_before_audit),
    "reuse an upload": ("workers", mutations.reuse_an_upload),
    "no lease renewal": ("slow", replaced("tests.model.fake_spark.FakeLeaseKeeper.renew_all", lambda _: None)),
    "renew an expired lease": (
        "workers",
        only_conditions(lambda assign, item: set(assign) != {"lease_until"} or item.attribute != "lease_until"),
    ),
    "HELD is done": ("stream", replaced("streaming_job.micro_batch.HELD", "nothing is held")),
    "skip the commit document": (
        "workers",
        changed("transform.finalize.write_commit", "put_document(s3, control_bucket, key, body)", "pass"),
    ),
    "roll forward by listing": ("workers", mutations.roll_forward_by_listing),
    "delete later generations": (
        "reprocess",
        replaced("router.sweep.leftovers.may_delete", lambda row, due, generation: generation != due.generation),
    ),
    "end generations without a deletion": (
        "reprocess",
        changed("lake.ledger.transitions.Manifests._close", "if may_leave_objects", "if False"),
    ),
    "abort uploads of all but RUNNING manifests": (
        "workers",
        replaced("router.sweep.leftovers.may_abort", lambda row, *_: row.state != "RUNNING"),
    ),
    "promote unconditionally": (
        "promote",
        changed("lake.ledger.transitions.Manifests.supersede", "*row_unchanged(row), ", ""),
    ),
    "forget lost pointers": ("stream", replaced("router.sweep.handler.renew_pointers", lambda *_: {})),
    "DONE is fenced by its state only": ("reprocess", mutations.ends_fenced_by_the_state_only("DONE")),
    "FAILED is fenced by its state only": ("vanish", mutations.ends_fenced_by_the_state_only("FAILED")),
    "commit after a release": (
        "workers",
        only_conditions(
            lambda assign, item: assign.get("state") != "PUBLISHING" or item.attribute not in ("state", "lease_until")
        ),
    ),
    "abort before the release": ("workers", mutations.abort_before_the_release),
    "leave the quarantine out": (
        "workers",
        changed("transform.finalize.commit_document", "tuple(quarantine),", "(),"),
    ),
    "totals without the quarantine": (
        "unreadable",
        replaced("lake.publish.totals_of", lambda document, etags: totals_of(replace(document, quarantine=()), etags)),
    ),
    "no grace period": (
        "reprocess",
        changed(
            "router.sweep.handler.delete_replaced",
            "timedelta(minutes=services.settings.sweep.grace_minutes)",
            "timedelta()",
        ),
    ),
    "delete what the published generation keeps": (
        "expired",
        changed("router.sweep.leftovers._doomed", " and (bucket, key) not in kept", ""),
    ),
    "roll back what the published generation keeps": (
        "expired",
        replaced(
            "lake.commit.CommitDocument.written", property(lambda document: (*document.objects, *document.quarantine))
        ),
    ),
    # Collections
    "a closed collection takes parts": (
        "collections",
        changed("lake.ledger.collections.Collections.add", '[Condition("closed_at", "missing")]', f"{NO_ROW}[:0]"),
    ),
    "an abandoned part is added": ("collections", changed("lake.ledger.collections.Collections.add", NO_ROW, "[]")),
    "collection and part change apart": (
        "collections",
        changed(
            "lake.ledger.collections.Collections.add",
            "self._table.transact(actions)",
            "self._table.transact(actions[:2]); self._table.transact(actions[2:])",
        ),
    ),
    "an unanswered part counts as added": ("collections", WITHOUT_AN_OWNER),
    "an open collection is divided": (
        "collections",
        all_of(
            replaced("lake.ledger.collections.Collections.close", lambda *_, **__: None),
            changed(
                "lake.ledger.collections.Collections.commit",
                'Condition("closed_at", ">", "")',
                'Condition("parts", ">", 0)',
            ),
            *(
                changed(f"{module}.divide", "if row is None or row.closed_at is None:", "if row is None:")
                for module in ("router.sweep.manifests", "router.divide")
            ),
        ),
    ),
    "two divisions of a collection": (
        "dividers",
        changed("lake.ledger.collections.Collections.commit", ', Condition("division", "missing")', ""),
    ),
    "an own division is carried out": ("dividers", mutations.an_own_division_is_carried_out),
    "a manifest is queued again": ("dividers", changed("lake.ledger.transitions.Manifests._first_row", NO_ROW, "[]")),
    "done before its manifests": (
        "dividers",
        changed(
            "router.divide._carry_out",
            "    datasets: dict[str, list[ManifestRow]] = {}",
            "    ledger.collections.finish(division.collection)\n    datasets: dict[str, list[ManifestRow]] = {}",
        ),
    ),
    "a late part touches its hours afterwards": ("late part", mutations.a_late_part_touches_its_hours_afterwards),
    "a look reads no collections": (
        "late part of a divided hour",
        all_of(
            changed("router.sweep.hours.read_hour", "if not collection.done:", "if False:"),
            changed(
                "lake.ledger.collections.Collections.close_hour",
                "if not all(row.done for row in rows):",
                "if False:",
            ),
        ),
    ),
    "a look needs no final close": (
        "late part of a divided hour",
        replaced("router.sweep.hours._is_closed", lambda *_: True),
    ),
    "an empty collection replaces a row": (
        "late part of a divided hour",
        changed("lake.ledger.collections.Collections.close_hour", NO_ROW, "[]"),
    ),
    # Ownership
    "acknowledge before the manifest": ("ownership", WITHOUT_AN_OWNER),
    "adopt without abandoning": (
        "ownership",
        replaced(
            "lake.ledger.transitions.Manifests.abandon",
            lambda _, manifest, __: ManifestRow(manifest, State.ABANDONED, Lane.BATCH, PARTITION, "", 0, 0),
        ),
    ),
    "a draft with an unconfirmed row": (
        "ownership",
        changed("router.ownership.take.record_drafts", "if own and not unconfirmed:", "if own:"),
    ),
    "find no missed arrivals": ("arrivals", replaced("router.sweep.handler.adopt_missed", lambda _: None)),
    "adopt unconditionally": (
        "orphans",
        changed("lake.ledger.arrivals.Arrivals.adopt", "conditions=unchanged", "conditions=[]"),
    ),
    "resume no intents": ("intents", replaced("router.sweep.handler.resume_intents", lambda _: None)),
    "rows without an intent": (
        "intents",
        replaced("router.ownership.take.write_intent", lambda *_: "intents/unwritten.json"),
    ),
    "delete the intent of unsettled arrivals": (
        "intents",
        # The module's one call of `all` asks whether every arrival is settled.
        replaced("router.ownership.take.all", lambda _: True),
    ),
    "IGNORED for ever": (
        "new rule",
        changed("router.ownership.take.resolve_owners", "if arrival is None:", "if True:"),
    ),
    "forget what can come again": (
        "forgotten",
        replaced("router.ownership.owner.RowStamp.expiry", lambda self, _: self.expires_at),
    ),
    "take what may be forgotten": (
        "forgotten versions",
        replaced("router.ownership.take.divide_by_expiry", lambda *given: (list(given[2]), [], given[3])),
    ),
    "queue again for the same request": (
        "requests",
        replaced(
            "router.requests.reprocess.next_reprocess_step",
            lambda row, only, request: next_reprocess_step(row, only, f"not {request}"),
        ),
    ),
    "record a cost again": ("overnight", changed("lake.ledger.costs.Costs._record", NO_ROW, "[]")),
    # A generation leaves out what it cannot read, although the one before has published its rows.
    "replace rows by fewer": (
        "expired",
        all_of(
            *(
                replaced(f"transform.{module}.find_kept_generation", lambda *_: None)
                for module in ("claim_manifest", "plan_attempt")
            )
        ),
    ),
    "reserve no columns": ("workers", replaced("transform.finalize._reserve_columns", lambda *_: True)),
    "fail where nothing can be converted": (
        "all expired",
        replaced("lake.ledger.transitions.Manifests.keep_published", Manifests.fail),
    ),
    # Files that are converted at last stay in the quarantine by reference.
    "keep the list of unreadable files": (
        "expired",
        replaced("lake.commit.CommitDocument.rejected_lines", property(lambda document: document.quarantine)),
    ),
}
"""Each removed rule: the scenario that needs it, and its mutation."""
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
    ],
    # The commit is applied while its uploads are aborted.
    "abort before the release": [
        ("worker1", "put_object", ""),
        ("worker1", "update_item", "late_soon"),
    ],
    # An owner sleeps before its transaction, is presumed dead, and another invocation takes over its files.
    "an abandoned part is added": [("route1", "transact_write_items", "advance_hours:route2")],
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


def first_violation(rule: str) -> History | None:
    """From the script; otherwise from the exhaustive histories with one fault, then from the random ones."""
    scenario = SCENARIOS[RULES[rule][0]]
    if rule in SCRIPTS:
        history = scripted(scenario, SCRIPTS[rule])
        return history if history.violation else None
    violations = (history for history in histories_with_one_fault(scenario) if history.violation)
    return next(violations, None) or explore(scenario, 0, MAX_HISTORIES, shrink=False).violation


@pytest.mark.parametrize("rule", RULES)
def test_removing_any_rule_is_detected(rule: str) -> None:
    # Given the product without one of its rules, and a trace that breaks no promise with it
    scenario, mutation = RULES[rule]
    if rule in SCRIPTS:
        assert scripted(SCENARIOS[scenario], SCRIPTS[rule]).violation is None
    with mutation():
        # When histories are played
        history = first_violation(rule)
    # Then one of them breaks a promise, and not because the mutation does not fit the product any more
    assert history is not None
    assert "failed: TypeError" not in str(history.violation), history.describe()


def test_a_random_violation_is_shrunk_to_few_faults() -> None:
    # Given the product without a rule
    scenario, mutation = RULES["skip the fence"]
    with mutation():
        # When random histories are played
        explored = explore(SCENARIOS[scenario], 0, MAX_HISTORIES)
    # Then the violation is reported with few faults
    assert explored.violation is not None
    assert 1 <= len(explored.violation.faults) <= MAX_SHRUNK_FAULTS, explored.violation.describe()
