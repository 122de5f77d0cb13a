"""The model notices when a rule is left out: each test takes one out of the product and wants a broken promise."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from typing import Any
from unittest.mock import PropertyMock, patch

import pytest
from botocore.exceptions import BotoCoreError, ClientError

import lake.publish
import router.ownership.own
import transform.finalize
from lake.commit import to_bytes
from lake.errors import LeaseLostError
from lake.ledger import Document
from lake.ledger.fence import Claim
from lake.ledger.manifests import Manifests
from lake.ledger.table import Table, Where
from tests.model import actors
from tests.model.histories import SCENARIOS, History, at_random, directed, one_fault
from transform.upload import Uploads

Sabotage = Callable[[], AbstractContextManager[Any]]
SEEDS = 150


def skip_the_fence() -> AbstractContextManager[Any]:
    return patch.object(Claim, "fence", PropertyMock(return_value=[]))


def publish_before_audit() -> AbstractContextManager[Any]:
    audited = transform.finalize.commit_document

    def publish_first(services, attempt, results):
        lake.publish.complete_all(services.s3, [item for result in results for item in result.objects])
        return audited(services, attempt, results)

    return patch("transform.finalize.commit_document", publish_first)


def reuse_an_upload() -> AbstractContextManager[Any]:
    upload = Uploads._upload

    class Reusing:
        def __init__(self, s3, bucket, key):
            self._s3, self._bucket, self._key = s3, bucket, key

        def create_multipart_upload(self, **request):
            standing = self._s3.list_multipart_uploads(Bucket=self._bucket, Prefix=self._key).get("Uploads")
            return standing[0] if standing else self._s3.create_multipart_upload(**request)

        def __getattr__(self, name):
            return getattr(self._s3, name)

    def reusing(self, path, bucket, key, rows):
        s3, self._s3 = self._s3, Reusing(self._s3, bucket, key)
        try:
            return upload(self, path, bucket, key, rows)
        finally:
            self._s3 = s3

    return patch.object(Uploads, "_upload", reusing)


def acknowledge_before_the_manifest() -> AbstractContextManager[Any]:
    enqueue = router.ownership.own._enqueue

    def late(services, taken, now):
        manifest = enqueue(services, taken, now)
        return taken.draft.manifest("", taken.files) if manifest is None else manifest

    return patch("router.ownership.own._enqueue", late)


def no_lease_renewal() -> AbstractContextManager[Any]:
    return patch.object(actors.PlayedKeeper, "renew_all", lambda _: None)


def renew_an_expired_lease() -> AbstractContextManager[Any]:
    update = Table.update

    def unconditional(self, key, *, assign=None, add=None, remove=(), where=()):
        if set(assign or {}) == {"lease_until"}:
            where = [item for item in where if item.attribute != "lease_until"]
        update(self, key, assign=assign, add=add, remove=remove, where=where)

    return patch.object(Table, "update", unconditional)


def held_is_done() -> AbstractContextManager[Any]:
    return patch("streaming_job.micro_batch.HELD", "nothing is held")


def skip_the_commit_document() -> AbstractContextManager[Any]:
    def unwritten(s3, control_bucket, key, document):
        return Document(key, hashlib.sha256(to_bytes(document)).hexdigest())

    return patch("transform.finalize.write_commit", unwritten)


def roll_forward_by_listing() -> AbstractContextManager[Any]:
    read = lake.publish.read_commit

    def listed(s3, control_bucket, named):
        document = read(s3, control_bucket, named)
        prefix = document.objects[0].key.rpartition("-")[0]
        found = s3.list_multipart_uploads(Bucket="lake", Prefix=prefix).get("Uploads", [])
        ids = {upload["Key"]: upload["UploadId"] for upload in found}
        objects = tuple(replace(item, upload_id=ids.get(item.key, item.upload_id)) for item in document.objects)
        return replace(document, objects=objects)

    return patch("lake.publish.read_commit", listed)


def commit_without_reading_again() -> AbstractContextManager[Any]:
    def once(services, claim, named, uploaded, clock):
        try:
            services.ledger.manifests.commit(claim, named, clock())
        except (LeaseLostError, BotoCoreError, ClientError):
            for item in uploaded:
                lake.publish.abort_upload(services.s3, item.bucket, item.key, item.upload_id)
            return False
        return True

    return patch("transform.finalize._commit", once)


def sweep_deletes_what_no_done_manifest_names() -> AbstractContextManager[Any]:
    def careless(row, generation, now, grace):
        return row.state != "DONE" or generation != row.generation

    return patch("router.sweep.objects.may_delete", careless)


def sweep_aborts_whatever_is_not_running() -> AbstractContextManager[Any]:
    return patch("router.sweep.uploads.may_abort", lambda row, *_: row.state != "RUNNING")


def adopt_without_abandoning() -> AbstractContextManager[Any]:
    from lake.ledger import ManifestRow, State
    from lake.manifest import Lane
    from tests.model.world import PARTITION

    def unfenced(self, manifest, now):
        return ManifestRow(manifest, State.ABANDONED, Lane.BATCH, PARTITION, "", 0, 0)

    return patch.object(Manifests, "abandon", unfenced)


def supersede_without_looking() -> AbstractContextManager[Any]:
    return patch("lake.ledger.supersede.same", lambda _: [Where("pk", "exists")])


def forget_lost_pointers() -> AbstractContextManager[Any]:
    return patch("router.sweep.handler.renew_pointers", lambda *_: {})


RULES: dict[str, tuple[Sabotage, tuple[str, ...]]] = {
    "skip the fence": (skip_the_fence, ("workers",)),
    "publish before audit": (publish_before_audit, ("workers",)),
    "reuse an upload": (reuse_an_upload, ("workers",)),
    "acknowledge before the manifest": (acknowledge_before_the_manifest, ("ownership",)),
    "no lease renewal": (no_lease_renewal, ("slow",)),
    "renew an expired lease": (renew_an_expired_lease, ("workers",)),
    "HELD is done": (held_is_done, ("stream",)),
    "skip the commit document": (skip_the_commit_document, ("workers",)),
    "roll forward by listing": (roll_forward_by_listing, ("workers",)),
    "commit without reading again": (commit_without_reading_again, ("workers",)),
    "sweep deletes what no DONE manifest names": (sweep_deletes_what_no_done_manifest_names, ("reprocess",)),
    "sweep aborts whatever is not running": (sweep_aborts_whatever_is_not_running, ("workers",)),
    "adopt without abandoning": (adopt_without_abandoning, ("ownership",)),
    "supersede without looking": (supersede_without_looking, ("plan",)),
    "promote without looking": (supersede_without_looking, ("promote",)),
    "forget lost pointers": (forget_lost_pointers, ("stream",)),
}


SCRIPTS = {
    "reuse an upload": (
        "workers",
        [
            ("worker1", "put_object", "expire:worker2"),
            ("worker2", "complete_multipart_upload", "to:worker1"),
        ],
    ),
}
"""Traces that take several turns of actors; what they break without the rule they do not break with it."""


@pytest.mark.parametrize("rule", SCRIPTS)
def test_a_known_trace_breaks_nothing_as_long_as_the_rule_is_kept(rule: str) -> None:
    name, script = SCRIPTS[rule]
    history = directed(SCENARIOS[name], script)
    assert history.violation is None, history.describe()


def histories(rule: str, names: tuple[str, ...]) -> Iterator[History]:
    if rule in SCRIPTS:
        name, script = SCRIPTS[rule]
        yield directed(SCENARIOS[name], script)
        return
    for name in names:
        yield from one_fault(SCENARIOS[name])
        for seed in range(SEEDS):
            yield at_random(SCENARIOS[name], seed)


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_that_is_left_out_is_missed(rule: str) -> None:
    # Given the product without one of its rules
    sabotage, names = RULES[rule]
    with ExitStack() as stack:
        stack.enter_context(sabotage())
        # When histories are played
        violations = (history.violation for history in histories(rule, names) if history.violation)
        # Then one of them breaks a promise
        assert next(violations, None) is not None
