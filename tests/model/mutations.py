"""Mutations: each context manager removes one rule from the product while it is entered."""

import hashlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any
from unittest.mock import PropertyMock, patch

from botocore.exceptions import BotoCoreError, ClientError

import lake.publish
import router.ownership.take
import transform.finalize
from lake.documents import encode_body
from lake.errors import LeaseLostError
from lake.faults import NO_ANSWER
from lake.ledger import CommitReference, Part
from lake.ledger.table import LedgerTable
from lake.ledger.transitions import Claim, Manifests, supersede_actions
from tests.model.fake_spark import FakeLeaseKeeper
from transform.upload import Uploads

Mutation = Callable[[], AbstractContextManager[Any]]


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
            listed = self._s3.list_multipart_uploads(Bucket=self._bucket, Prefix=self._key).get("Uploads")
            return listed[0] if listed else self._s3.create_multipart_upload(**request)

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
    create = router.ownership.take._create_owner

    def late(services, taken, now):
        owner = create(services, taken, now)
        return Part("", "", "", 0, 0, "", ()) if owner is NO_ANSWER else owner

    return patch("router.ownership.take._create_owner", late)


def no_lease_renewal() -> AbstractContextManager[Any]:
    return patch.object(FakeLeaseKeeper, "renew_all", lambda _: None)


def renew_an_expired_lease() -> AbstractContextManager[Any]:
    update = LedgerTable.update

    def unconditional(self, key, *, assign=None, add=None, remove=(), conditions=()):
        if set(assign or {}) == {"lease_until"}:
            conditions = [item for item in conditions if item.attribute != "lease_until"]
        update(self, key, assign=assign, add=add, remove=remove, conditions=conditions)

    return patch.object(LedgerTable, "update", unconditional)


def held_is_done() -> AbstractContextManager[Any]:
    return patch("streaming_job.micro_batch.HELD", "nothing is held")


def skip_the_commit_document() -> AbstractContextManager[Any]:
    def unwritten(s3, control_bucket, key, document):
        return CommitReference(key, hashlib.sha256(encode_body(document)).hexdigest())

    return patch("transform.finalize.write_commit", unwritten)


def roll_forward_by_listing() -> AbstractContextManager[Any]:
    read = lake.publish.read_commit  # type: ignore[attr-defined]

    def listed(s3, control_bucket, named):
        document = read(s3, control_bucket, named)
        prefix = document.objects[0].key.rpartition("-")[0]
        found = s3.list_multipart_uploads(Bucket="lake", Prefix=prefix).get("Uploads", [])
        ids = {upload["Key"]: upload["UploadId"] for upload in found}
        objects = tuple(replace(item, upload_id=ids.get(item.key, item.upload_id)) for item in document.objects)
        return replace(document, objects=objects)

    return patch("lake.publish.read_commit", listed)


def commit_without_reading_again() -> AbstractContextManager[Any]:
    def once(context, claim, named, uploaded):
        services = context.services
        try:
            services.ledger.manifests.commit(claim, named, context.clock())
        except (LeaseLostError, BotoCoreError, ClientError):
            for item in uploaded:
                lake.publish.abort_upload(services.s3, item.bucket, item.key, item.upload_id)
            return False
        return True

    return patch("transform.finalize._commit", once)


def sweep_deletes_later_generations() -> AbstractContextManager[Any]:
    return patch("router.sweep.leftovers.may_delete", lambda row, due, generation: generation != due.generation)


def sweep_aborts_uploads_of_all_but_running_manifests() -> AbstractContextManager[Any]:
    return patch("router.sweep.leftovers.may_abort", lambda row, *_: row.state != "RUNNING")


def adopt_without_abandoning() -> AbstractContextManager[Any]:
    from lake.ledger import ManifestRow, State
    from lake.manifest import Lane
    from tests.model.world import PARTITION

    def unfenced(self, manifest, now):
        return ManifestRow(manifest, State.ABANDONED, Lane.BATCH, PARTITION, "", 0, 0)

    return patch.object(Manifests, "abandon", unfenced)


def supersede_unconditionally() -> AbstractContextManager[Any]:
    def unconditional(*arguments):
        with patch("lake.ledger.transitions.row_unchanged", lambda _: []):
            return supersede_actions(*arguments)

    return patch("lake.ledger.transitions.supersede_actions", unconditional)


def forget_lost_pointers() -> AbstractContextManager[Any]:
    return patch("router.sweep.handler.renew_pointers", lambda *_: {})
