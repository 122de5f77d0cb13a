"""Mutation tests: removing any rule from the product is detected, because a history then breaks a promise."""

from dataclasses import replace

import pytest

from lake.commit import totals_of
from lake.ledger import ManifestRow, State
from lake.ledger.transitions import Manifests
from lake.manifest import Lane
from router.requests.reprocess import reprocess_outcome
from tests.model import mutations
from tests.model.histories import History, explore, histories_with_one_fault, scripted
from tests.model.mutations import Mutation, all_of, changed, only_conditions, replaced
from tests.model.scenarios import SCENARIOS
from tests.model.world import PARTITION

MAX_HISTORIES = 150
MAX_SHRUNK_FAULTS = 3
COLLECTIONS, MANIFESTS = "lake.ledger.collections.Collections", "lake.ledger.transitions.Manifests"
WITHOUT_AN_OWNER = changed(
    "router.ownership.take.create_owner", "        return NO_ANSWER", '        return Part("", "", "", 0, 0, "", ())'
)
RULES: dict[str, dict[str, Mutation]] = {
    "workers": {
        "skip the fence": changed("lake.ledger.transitions.still_held", "*row_unchanged(claim), ", ""),
        "publish before audit": mutations.publish_before_audit,
        "reuse an upload": mutations.reuse_an_upload,
        "renew an expired lease": only_conditions(
            lambda assign, item: set(assign) != {"lease_until"} or item.attribute != "lease_until"
        ),
        "skip the commit document": changed(
            "transform.finalize.put_bound_document", "put_document(s3, control_bucket, key, body)", "pass"
        ),
        "roll forward by listing": mutations.roll_forward_by_listing,
        "abort uploads of all but RUNNING manifests": replaced(
            "router.sweep.leftovers.may_abort", lambda row, *_: row.state != "RUNNING"
        ),
        "commit after a release": only_conditions(
            lambda assign, item: assign.get("state") != "PUBLISHING" or item.attribute not in ("state", "lease_until")
        ),
        "abort before the release": mutations.abort_before_the_release,
        "leave the quarantine out": changed("transform.finalize.commit_document", "tuple(quarantine),", "(),"),
        "reserve no columns": replaced("transform.finalize._reserve_columns", lambda *_: True),
    },
    "slow": {"no lease renewal": replaced("tests.model.fake_spark.FakeLeaseKeeper.renew_all", lambda _: None)},
    "stream": {
        "HELD is done": replaced("streaming_job.micro_batch.HELD", "nothing is held"),
        "forget lost pointers": replaced("router.sweep.handler.renew_pointers", lambda *_: {}),
    },
    "reprocess": {
        "delete later generations": replaced(
            "router.sweep.leftovers.may_delete", lambda row, due, generation: generation != due.generation
        ),
        "end generations without a deletion": changed(f"{MANIFESTS}._close", "if may_leave_objects", "if False"),
        "DONE is fenced by its state only": mutations.ends_fenced_by_the_state_only("DONE"),
        "no grace period": changed(
            "router.sweep.handler.delete_replaced",
            "timedelta(minutes=services.settings.sweep.grace_minutes)",
            "timedelta()",
        ),
    },
    "promote": {"promote unconditionally": changed(f"{MANIFESTS}.supersede", "*row_unchanged(row), ", "")},
    "vanish": {"FAILED is fenced by its state only": mutations.ends_fenced_by_the_state_only("FAILED")},
    "unreadable": {
        "totals without the quarantine": replaced(
            "lake.publish.totals_of", lambda document, etags: totals_of(replace(document, quarantine=()), etags)
        )
    },
    "expired": {
        "delete what the published generation keeps": changed(
            "router.sweep.leftovers._deletable", " and (bucket, key) not in kept", ""
        ),
        "roll back what the published generation keeps": changed(
            "lake.publish.roll_back", "row.id, row.generation)", 'row.id, row.generation).rpartition("-g")[0]'
        ),
        # A generation leaves out unreadable files, although the previous one has published their rows.
        "replace rows by fewer": all_of(
            *(
                replaced(f"transform.{module}.find_kept_generation", lambda *_: None)
                for module in ("claim_manifest", "plan_attempt")
            )
        ),
        # Files that are finally converted stay in the quarantine by reference.
        "keep the list of unreadable files": replaced(
            "lake.commit.CommitDocument.rejected_lines", property(lambda document: document.quarantine)
        ),
    },
    "collections": {
        "a closed collection takes parts": changed(f"{COLLECTIONS}.add", '[Condition("closed_at", "missing")]', "()"),
        "an abandoned part is added": changed(f"{COLLECTIONS}.add", "collection)),", "collection), ()),"),
        "collection and part change apart": changed(
            f"{COLLECTIONS}.add",
            "self._table.transact(actions)",
            "self._table.transact(actions[:2]) and self._table.transact(actions[2:])",
        ),
        "an unanswered part counts as added": WITHOUT_AN_OWNER,
        "an open collection is divided": all_of(
            replaced(f"{COLLECTIONS}.close", lambda *_, **__: None),
            changed(
                f"{COLLECTIONS}.commit",
                'Condition("closed_at", ">", "")',
                'Condition("parts", ">", 0)',
            ),
            *(
                changed(f"{module}.divide", "if row is None or row.closed_at is None:", "if row is None:")
                for module in ("router.sweep.manifests", "router.divide")
            ),
        ),
    },
    "dividers": {
        "two divisions of a collection": changed(f"{COLLECTIONS}.commit", ', Condition("division", "missing")', ""),
        "an own division is carried out": mutations.an_own_division_is_carried_out,
        "a manifest is queued again": all_of(
            changed(f"{MANIFESTS}.enqueue_listed", "_first_row(row)", "_first_row(row), ()"),
            changed(f"{MANIFESTS}.enqueue", "_first_row(row)", "_first_row(row), ()"),
        ),
        "done before its manifests": changed(
            "router.divide._execute",
            "    datasets: dict[str, list[ManifestRow]] = {}",
            "    ledger.collections.finish(division.collection)\n    datasets: dict[str, list[ManifestRow]] = {}",
        ),
    },
    "late part": {"a late part touches its hours afterwards": mutations.a_late_part_touches_its_hours_afterwards},
    "late part of a divided hour": {
        "a look reads no collections": all_of(
            changed("router.sweep.hours.read_hour", "if not collection.done:", "if False:"),
            changed(
                f"{COLLECTIONS}.close_hour",
                "if not all(row.done for row in rows):",
                "if False:",
            ),
        ),
        "a look needs no final close": replaced(f"{COLLECTIONS}.close_hour", lambda *_: True),
        "an empty collection replaces a row": changed(f"{COLLECTIONS}.close_hour", ", changes)", ", changes, ())"),
    },
    "ownership": {
        "acknowledge before the manifest": WITHOUT_AN_OWNER,
        "adopt without abandoning": replaced(
            f"{MANIFESTS}.abandon",
            lambda _, manifest, __: ManifestRow(manifest, State.ABANDONED, Lane.BATCH, PARTITION, "", 0, 0),
        ),
        "a draft with an unconfirmed row": changed(
            "router.ownership.take.record_drafts", "if own and not unconfirmed:", "if own:"
        ),
    },
    "arrivals": {"find no missed arrivals": replaced("router.sweep.handler.adopt_missed", lambda _: None)},
    "orphans": {
        "adopt unconditionally": changed("lake.ledger.arrivals.Arrivals.adopt", "conditions=unchanged", "conditions=[]")
    },
    "intents": {
        "resume no intents": replaced("router.sweep.handler.resume_intents", lambda _: None),
        "rows without an intent": replaced("router.ownership.take.write_intent", lambda *_: "intents/unwritten.json"),
        # The module's only call of `all` checks whether every arrival is settled.
        "delete the intent of unsettled arrivals": replaced("router.ownership.take.all", lambda _: True),
    },
    "new rule": {
        "IGNORED for ever": changed("router.ownership.take.resolve_owners", "if arrival is None:", "if True:")
    },
    "forgotten": {
        "forget what can come again": replaced(
            "router.ownership.owner.RowStamp.expiry", lambda self, _: self.expires_at
        )
    },
    "forgotten versions": {
        "take what may be forgotten": replaced(
            "router.ownership.take.divide_by_expiry", lambda *given: (list(given[1]), [], given[2])
        )
    },
    "requests": {
        "queue again for the same request": replaced(
            "router.requests.reprocess.reprocess_outcome",
            lambda row, request, every: reprocess_outcome(row, f"not {request}", every=every),
        )
    },
    "overnight": {"record a cost again": changed("lake.ledger.costs.Costs._record", "NEW", "()")},
    "all expired": {"fail where nothing can be converted": replaced(f"{MANIFESTS}.keep_published", Manifests.fail)},
}
"""Each removed rule and its mutation, by the scenario that needs it."""
ALL_RULES = {name: (scenario, rule) for scenario, rules in RULES.items() for name, rule in rules.items()}
SCRIPTS = {
    "reuse an upload": [
        ("worker1", "upload_part", "expire_lease:worker2"),
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
    # The commit is applied after the attempt was released, while its uploads are aborted.
    "commit after a release": [
        ("worker1", "put_object", ""),
        ("worker1", "update_item", "late_soon"),
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


def worst_history(rule: str) -> History:
    """From the script; otherwise from the exhaustive histories with one fault, then from the random ones."""
    scenario = SCENARIOS[ALL_RULES[rule][0]]
    if rule in SCRIPTS:
        return scripted(scenario, SCRIPTS[rule])
    violations = (history for history in histories_with_one_fault(scenario) if history.violation)
    return next(violations, None) or explore(scenario, 0, MAX_HISTORIES, shrink=False)[-1]


@pytest.mark.parametrize("rule", ALL_RULES)
def test_removing_any_rule_is_detected(rule: str) -> None:
    # Given the product without one of its rules, and a trace that breaks no promise with it
    scenario, mutation = ALL_RULES[rule]
    if rule in SCRIPTS:
        assert scripted(SCENARIOS[scenario], SCRIPTS[rule]).violation is None
    with mutation():
        # When histories are played
        history = worst_history(rule)
    # Then one of them breaks a promise, and not because the mutation no longer matches the product
    assert history.violation is not None
    assert "failed: TypeError" not in history.violation, history.describe()


def test_a_random_violation_is_shrunk_to_few_faults() -> None:
    # Given the product without a rule
    with RULES["workers"]["skip the fence"]():
        # When random histories are played
        explored = explore(SCENARIOS["workers"], 2, MAX_HISTORIES)
    # Then the violation is reported with few faults
    assert explored[-1].violation is not None
    assert 1 <= len(explored[-1].faults) <= MAX_SHRUNK_FAULTS, explored[-1].describe()
