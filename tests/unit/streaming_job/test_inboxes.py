"""Inboxes of the shards: each job reads its own, the first one also what removed shards have left."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from lake.layout import OTHER_INBOXES, inbox, pointer_key
from lake.manifest import Lane
from lake.settings import parse_settings
from lake.shards import SHARD_ARGUMENT
from streaming_job import main
from streaming_job.inbox import find_inboxes, has_open_manifests
from streaming_job.stream import key_of_path, pattern_of
from streaming_job.urgent import UrgentInbox
from tests.unit.lake.world import World, new_world
from tests.unit.streaming_job.test_stream import context_of


@pytest.mark.parametrize("after", [1, 2])
def test_the_first_job_reads_what_a_removed_one_has_left(world: World, after: int) -> None:
    # Given an urgent pointer and another one, each in the inbox of a shard that no longer exists
    left = [world.queued(name, lane=Lane.STREAM).id for name in "ab"]
    for manifest, urgent in zip(left, (True, False), strict=True):
        key = pointer_key(manifest, "n", urgent=urgent, shard="3")
        world.raw_s3.put_object(Bucket="control", Key=key, Body=b"")
    settings = parse_settings({"stage": "test", "stream": {"jobs": after}})
    given = context_of(world)
    first, *others = [
        replace(given.services, settings=settings, ledger=replace(world.ledger, stream=world.ledger.stream.of(shard)))
        for shard in settings.shards.names
    ]
    # Then the first job alone reads both, and does not end before
    inboxes = find_inboxes(first)
    assert inboxes == ("inbox/", "inbox-3/")
    assert [find_inboxes(services) for services in others] == [(inbox("2"),)] * (after - 1)
    urgent_inbox = UrgentInbox(replace(given, services=first), lambda _: None, lambda: inboxes)
    assert list(urgent_inbox._new_pointers()) == [left[0]]
    assert has_open_manifests(first, inboxes)
    assert not any(has_open_manifests(services, find_inboxes(services)) for services in others)


def test_spark_lists_exactly_the_inboxes_of_the_job() -> None:
    assert pattern_of("control", ["inbox/"]) == "s3a://control/{inbox}/"
    assert pattern_of("control", ["inbox/", "inbox-3/"]) == "s3a://control/{inbox,inbox-3}/"
    assert key_of_path(f"s3a://control/{OTHER_INBOXES}3/m-n.json") == "inbox-3/m-n.json"


def test_a_job_keeps_the_row_of_its_own_shard(monkeypatch: pytest.MonkeyPatch) -> None:
    contexts: list[Any] = []

    def record(context: Any) -> Any:
        contexts.append(context)
        return SimpleNamespace(run=lambda: None)

    monkeypatch.setattr(main, "InboxStream", record)
    with new_world() as world:
        # When the job of the second shard runs, and then that of the first one, which has no such argument
        main.run(context_of(world, "jr_2"), {SHARD_ARGUMENT: "2"})
        main.run(context_of(world, "jr_1"), {})
        # Then
        row = world.ledger.stream
        assert [row.of(shard).get().run for shard in ("1", "2")] == ["jr_1", "jr_2"]
        assert row.get() == row.of("1").get()
    assert [context.services.ledger.stream.shard for context in contexts] == ["2", "1"]
