"""Mutations of collections: each context manager removes one rule while it is entered."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import lake.hours
import lake.ledger.collections
import lake.manifest_documents
import router.collect.divide
import router.ownership.owner
from lake.ledger.collections import Collections
from lake.ledger.transitions import Manifests
from lake.manifest import Partition
from tests.model.changed_source import changed_source

ADD = router.ownership.owner._add


def _changed(name: str, old: str, new: str) -> AbstractContextManager[Any]:
    """A method of the ledger's collections."""
    return patch.object(Collections, name, changed_source(getattr(Collections, name), old, new))


@contextmanager
def _all_of(*mutations: AbstractContextManager[Any]) -> Iterator[None]:
    with ExitStack() as stack:
        for mutation in mutations:
            stack.enter_context(mutation)
        yield


def a_closed_collection_takes_parts() -> AbstractContextManager[Any]:
    return _changed(
        "add", 'is_open = [Condition("closed_at", "missing")]', 'is_open = [Condition("pk", "missing")][:0]'
    )


def an_abandoned_part_is_added() -> AbstractContextManager[Any]:
    return _changed("add", '[Condition("pk", "missing")]', "[]")


def collection_and_part_change_apart() -> AbstractContextManager[Any]:
    """The part's row and its place in the collection are two writes."""
    return _changed(
        "add", "self._table.transact(actions)", "self._table.transact(actions[:2]); self._table.transact(actions[2:])"
    )


def an_unanswered_part_counts_as_added() -> AbstractContextManager[Any]:
    collect = changed_source(router.ownership.owner.collect_part, "        return NO_ANSWER", "        return part")
    return patch("router.ownership.take.collect_part", collect)


def an_open_collection_is_divided() -> AbstractContextManager[Any]:
    divide = changed_source(
        router.collect.divide.divide, "    if row is None or row.closed_at is None:\n", "    if row is None:\n"
    )
    commit = changed_source(Collections.commit, 'Condition("closed_at", ">", "")', 'Condition("parts", ">", 0)')
    return _all_of(
        patch.object(Collections, "close", lambda *_, **__: None),
        patch.object(Collections, "commit", commit),
        patch("router.collect.divide.divide", divide),
        patch("router.sweep.manifests.divide", divide),
    )


def two_divisions_of_a_collection() -> AbstractContextManager[Any]:
    return _changed("commit", ', Condition("division", "missing")', "")


def an_own_division_is_carried_out() -> AbstractContextManager[Any]:
    """In place of the one that is committed."""
    write = lake.manifest_documents.write_division
    own: dict[str, Any] = {}

    def remembered(s3: Any, bucket: str, division: Any, nonce: str) -> Any:
        own[str(division.collection)] = write(s3, bucket, division, nonce)
        return own[str(division.collection)]

    read = lake.manifest_documents.read_division

    def read_own(s3: Any, bucket: str, reference: Any) -> Any:
        collection = reference.key.partition("/")[2].rpartition("-")[0]
        return read(s3, bucket, own.get(collection, reference))

    return patch.multiple("router.collect.divide", write_division=remembered, read_division=read_own)


def a_manifest_is_queued_again() -> AbstractContextManager[Any]:
    """Its row is put, whether it exists or not."""
    first_row = changed_source(Manifests._first_row, '[Condition("pk", "missing")]', "[]")
    return patch.object(Manifests, "_first_row", first_row)


def done_before_its_manifests() -> AbstractContextManager[Any]:
    carry_out = changed_source(
        router.collect.divide._carry_out,
        "    datasets: dict[str, list[ManifestRow]] = {}",
        "    ledger.collections.finish(division.collection)\n    datasets: dict[str, list[ManifestRow]] = {}",
    )
    return patch("router.collect.divide._carry_out", carry_out)


def a_late_part_touches_no_hour() -> AbstractContextManager[Any]:
    return _changed_add("if any(row.final for row in rows):", "if False:")


def a_late_part_touches_its_hours_afterwards() -> AbstractContextManager[Any]:
    def add(services: Any, part: Any, now: Any) -> Any:
        with _changed_add("if any(row.final for row in rows):", "if False:"):
            collection: Any = router.ownership.owner._add(services, part, now)
        for dataset in part.datasets:
            services.ledger.partitions.touch(Partition.parse(f"{dataset}#{part.hour}"), now)
        return collection

    return patch("router.ownership.owner._add", add)


def _changed_add(old: str, new: str) -> AbstractContextManager[Any]:
    return patch("router.ownership.owner._add", changed_source(ADD, old, new))


def a_look_reads_no_collections() -> AbstractContextManager[Any]:
    read = changed_source(lake.hours.read_hour, "if not collection.done:", "if False:")
    close = changed_source(Collections.close_hour, "if not all(row.done for row in rows):", "if False:")
    return _all_of(patch("router.sweep.hours.read_hour", read), patch.object(Collections, "close_hour", close))


def a_look_needs_no_final_close() -> AbstractContextManager[Any]:
    return patch("router.sweep.hours._is_closed", lambda *_: True)


def an_empty_collection_replaces_a_row() -> AbstractContextManager[Any]:
    return _changed("close_hour", '[Condition("pk", "missing")]', "[]")
