"""A manifest document is the one that its ledger row was created with; anything else is refused."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from lake.documents import encode_body
from lake.errors import InvalidDocumentError
from lake.layout import manifest_key
from lake.manifest import manifest_sha256
from lake.manifest_documents import read_manifest
from tests.unit.lake.world import RESOURCES, World

MORE = ["input", "orders/forged.json", "v1", "e", 100, "2026-11-20T09:30:00+00:00"]
Body = dict[str, Any]


def forge(change: Callable[[Body], object]) -> Callable[[bytes], bytes]:
    def forged(document: bytes) -> bytes:
        body = json.loads(document)
        change(body)
        return json.dumps(body, separators=(",", ":")).encode()

    return forged


CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "a file is missing": forge(lambda body: body["files"].pop()),
    "a file was added": forge(lambda body: body["files"].append(MORE)),
    "a file was replaced": forge(lambda body: body["files"].__setitem__(0, MORE)),
    "another bucket": forge(lambda body: body["files"][0].__setitem__(0, "secrets")),
    "a path out of the dataset": forge(lambda body: body.__setitem__("partition", "../../secrets#2026-11-20T09")),
    "another hour": forge(lambda body: body.__setitem__("hour", 10)),
    "a text for a size": forge(lambda body: body["files"][0].__setitem__(4, "100")),
    "another size": forge(lambda body: body["files"][0].__setitem__(4, 99)),
    "a number for a key": forge(lambda body: body["files"][0].__setitem__(1, 5)),
    "a newer format": forge(lambda body: body.__setitem__("format", 2)),
    "its end is lost": lambda document: document[:-1],
    "another id": forge(lambda body: body.__setitem__("id", "20261120T093000" + "0" * 20)),
    "it is empty": lambda _: b"",
    "nested without end": lambda _: b"[" * 1_000_000,
}


def put(world: World, manifest: str, document: bytes) -> None:
    world.raw_s3.put_object(Bucket=RESOURCES.control_bucket, Key=manifest_key(manifest), Body=document)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_changed_document_is_refused(world: World, change: Callable[[bytes], bytes]) -> None:
    # Given a QUEUED manifest whose document was changed
    manifest = world.manifest("a.json", "b.json")
    world.ledger.manifests.enqueue(manifest)
    put(world, manifest.id, change(encode_body(manifest)))

    # When it is read, then it is refused, and the message says what to do
    with pytest.raises(InvalidDocumentError, match=rf"{manifest.id}.json.*was changed.*restore"):
        read_manifest(world.s3, "control", world.row(manifest.id), ("input",))


def test_rows_of_new_manifests_and_of_successors_have_the_digest(world: World) -> None:
    # Given a QUEUED manifest
    source = world.queued("a.json", "b.json")
    successors = [world.manifest(name) for name in ("a.json", "b.json")]

    # When two others supersede it
    assert world.ledger.manifests.supersede(source, successors, "split", world.now)

    # Then every row has the digest of its own document
    rows = [world.row(manifest.id) for manifest in successors]
    assert [row.manifest_sha256 for row in rows] == list(map(manifest_sha256, successors))
    assert len({row.manifest_sha256 for row in (source, *rows)}) == 3
