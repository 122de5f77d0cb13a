"""Events of the environment: what happens to a deployment without a request of an actor."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from lake.ledger import State

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.model.scheduler import Actor
    from tests.model.world import World


KEEP = timedelta(days=60)
"""How long the ledger keeps the row of an arrival, in scenarios in which rows expire."""


def apply_event(world: World, event: str, actor: Actor) -> None:
    """Apply an event at a request of the actor."""
    if event == "report_stopped":
        world.stopped_runs.add(actor.name)
    else:
        EVENTS[event](world)


def force_all(world: World) -> None:
    """``force`` on every manifest that is DONE or FAILED."""
    manifests = world.router(None).ledger.manifests
    for item in list(world.rows().values()):
        if item["state"] in (State.DONE, State.FAILED):
            row = manifests.get(item["id"])
            assert row is not None
            manifests.force(row, world.now)


def expire(world: World, restored: Sequence[str], expired: Sequence[str]) -> None:
    """Files that were missing are there again; others are deleted, as by a rule of their bucket, for ever."""
    for file in world.arrived:
        name = file.key.removeprefix("orders/").removesuffix(".ndjson")
        if name in restored:
            world.s3.put_object(Bucket=file.bucket, Key=file.key, Body=world.bodies[file.key, file.etag])
        if name in expired:
            world.remove(file)
    world.inputs_expired = True


def _change_documents(world: World) -> None:
    for identity, item in world.rows().items():
        if item["state"] == State.PUBLISHING:
            world.causes.add((identity, item["generation"]))
            world.s3.put_object(Bucket="control", Key=item["document"]["key"], Body=b"{}")


def _lose_upload(world: World) -> None:
    for upload in world.s3.open_uploads()[:1]:
        manifest, _, rest = world.s3.uploads[upload].key.rsplit("/", 1)[-1].partition("-g")
        world.causes.add((manifest, int(rest.partition("-")[0])))
        world.s3.uploads[upload].state = "aborted"


def _overwrite_input(world: World) -> None:
    """The first file that is there is put again with another content; the event of the new version waits."""
    file = next((file for file in world.arrived if world.s3.has(file)), None)
    if file is not None:
        world.send_events(world.arrive(file.key.split("/")[1].removesuffix(".ndjson")))


def _delete_input(world: World) -> None:
    """The last file that is there is deleted; with versions its bytes stay, and its version can be read."""
    file = next((file for file in reversed(world.arrived) if world.s3.has(file)), None)
    if file is not None:
        world.remove(file)


def _add_rule(world: World) -> None:
    """Files that were ignored so far are routed by every process that starts from now on."""
    world.suffixes += (".txt",)
    suffixes = (*world.settings.input.suffixes, ".txt")
    world.settings = replace(world.settings, input=replace(world.settings.input, suffixes=suffixes))


def _put_again(world: World) -> None:
    """All files are put again with the same bytes; without versions they are the same arrivals, with new events."""
    for file in world.arrived:
        world.s3.put_object(Bucket=file.bucket, Key=file.key, Body=world.bodies[file.key, file.etag])
        world.send_events([file])


def expire_rows(world: World) -> None:
    """Months pass, in which no process lives: DynamoDB deletes the rows that have expired.

    Without versions, the same bytes are put again shortly before. The first events come again after it.
    """
    world.send_events(world.arrived)
    world.wait(KEEP - timedelta(hours=12))
    if not world.versions:
        _put_again(world)
    world.wait(timedelta(hours=15))
    items = world.dynamodb.items
    for key in [key for key, item in items.items() if item.get("expires_at", math.inf) <= world.now.timestamp()]:
        del items[key]


EVENTS: dict[str, Callable[[World], object]] = {
    "expire_lease": lambda world: world.wait(world.lease + timedelta(seconds=1)),
    "advance_hours": lambda world: world.wait(timedelta(hours=2)),
    "begin_new_query": lambda world: world.seen_pointers.clear(),
    "force": force_all,
    "change_document": _change_documents,
    "lose_upload": _lose_upload,
    "add_rule": _add_rule,
    "put_again": _put_again,
    "overwrite_input": _overwrite_input,
    "delete_input": _delete_input,
}
