"""Mutations: each removes one rule from the product while its context manager is entered."""

import __future__

import inspect
import sys
import textwrap
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from pkgutil import resolve_name
from typing import Any
from unittest.mock import patch

import lake.manifest_documents
import lake.publish
import router.ownership.owner
import router.ownership.take
import transform.finalize
import transform.give_up
from lake.ledger.table import Condition, LedgerTable
from lake.manifest import Partition

Mutation = Callable[[], AbstractContextManager[Any]]


def replaced(place: str, value: Any) -> Mutation:
    """Replace the object at ``module.Class.name`` or ``module.name`` by another value."""
    return lambda: patch(place, value)


def changed(place: str, old: str, new: str) -> Mutation:
    """Replace ``old`` by ``new`` in the source of the function at this place."""
    return lambda: patch(place, changed_source(resolve_name(place), old, new))


def all_of(*mutations: Mutation) -> Mutation:
    @contextmanager
    def entered() -> Iterator[None]:
        with ExitStack() as stack:
            for mutation in mutations:
                stack.enter_context(mutation())
            yield

    return entered


def changed_source(function: Callable[..., Any], old: str, new: str) -> Callable[..., Any]:
    """Return the function with ``new`` instead of ``old`` in its source, in the same module.

    Raises ``ValueError`` if ``old`` is not exactly once in the source, because the mutation's rule has moved.
    """
    source = textwrap.dedent(inspect.getsource(function))
    if source.count(old) != 1:
        raise ValueError(f"{old!r} is {source.count(old)} times in {function.__qualname__}: write the mutation again")
    # It keeps the module's globals, so that it calls the functions that other mutations put there.
    names = vars(sys.modules[function.__module__])
    # Some modules import for their annotations only while types are checked.
    definition = compile(source.replace(old, new), __file__, "exec", __future__.annotations.compiler_flag)
    defined: dict[str, Any] = {}
    exec(definition, names, defined)
    result: Callable[..., Any] = defined[function.__name__]
    return result


def only_conditions(kept: Callable[[dict[str, Any], Condition], bool]) -> Mutation:
    """Updates keep the conditions for which ``kept(assigned attributes, condition)`` is true."""
    update = LedgerTable.update

    def fewer(self: LedgerTable, key: Any, *, conditions: Collection[Condition] = (), **changes: Any) -> bool:
        remaining = [condition for condition in conditions if kept(changes.get("assign") or {}, condition)]
        return update(self, key, conditions=remaining, **changes)

    return replaced("lake.ledger.table.LedgerTable.update", fewer)


def ends_fenced_by_the_state_only(state: str) -> Mutation:
    fence = f'row_unchanged(row)[: None if changes["state"] != "{state}" else 1]'
    return all_of(
        only_conditions(lambda assign, item: assign.get("state") != state or item.attribute == "state"),
        changed("lake.ledger.transitions.Manifests._close", "row_unchanged(row)", fence),
    )


def publish_before_audit() -> AbstractContextManager[Any]:
    audited = transform.finalize.commit_document

    def publish_first(services, attempt, results):
        lake.publish.complete_all(services.s3, [item for result in results for item in result.objects])
        return audited(services, attempt, results)

    return patch("transform.finalize.commit_document", publish_first)


reuse_an_upload = changed(
    "transform.upload._upload",
    "upload_id = s3.create_multipart_upload(",
    'found = s3.list_multipart_uploads(Bucket=bucket, Prefix=key).get("Uploads")\n'
    '        upload_id = found[0]["UploadId"] if found else s3.create_multipart_upload(',
)


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


def abort_before_the_release() -> AbstractContextManager[Any]:
    """The uploads of a commit without an answer are aborted while it may still be applied."""
    give_up = transform.give_up.give_up

    def abort_first(context: Any, claim: Any, reason: str, uploaded: Any, *arguments: Any, **options: Any) -> None:
        for item in uploaded:
            lake.publish.abort_upload(context.s3, item.bucket, item.key, item.upload_id)
        give_up(context, claim, reason, (), *arguments, **options)

    return all_of(
        replaced("transform.finalize.give_up", abort_first),
        replaced("transform.convert.give_up", abort_first),
    )()


def an_own_division_is_carried_out() -> AbstractContextManager[Any]:
    """A divider carries out its own division instead of the committed one."""
    write, read = lake.manifest_documents.write_division, lake.manifest_documents.read_division
    own: dict[str, Any] = {}

    def remembered(s3: Any, bucket: str, division: Any, nonce: str) -> Any:
        own[str(division.collection)] = write(s3, bucket, division, nonce)
        return own[str(division.collection)]

    def read_own(s3: Any, bucket: str, reference: Any) -> Any:
        collection = reference.key.partition("/")[2].rpartition("-")[0]
        return read(s3, bucket, own.get(collection, reference))

    return patch.multiple("router.divide", write_division=remembered, read_division=read_own)


def a_late_part_touches_its_hours_afterwards() -> AbstractContextManager[Any]:
    def add(services: Any, part: Any, now: Any) -> Any:
        collection: Any = without_touch(services, part, now)
        for dataset in part.datasets:
            services.ledger.partitions.touch(Partition.parse(f"{dataset}#{part.hour}"), now)
        return collection

    without_touch = changed_source(router.ownership.owner._add, "if any(row.final for row in rows):", "if False:")
    return patch("router.ownership.owner._add", add)
