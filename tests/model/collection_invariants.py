"""Invariants of collections, from the raw stores: the owner of a file between its arrival and its manifest's row.

Shares no code with the product.
"""

import json
from collections.abc import Iterator
from typing import Any

from tests.model.scheduler import Violation
from tests.model.world import World

Item = dict[str, Any]


class Documents:
    """Documents of the control bucket, as first read: events damage some of them."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._read: dict[str, Item] = {}
        self._names: dict[str, list[str]] = {}

    def get(self, key: str) -> Item:
        if key not in self._read:
            body = self._world.document(key)
            if body is None:
                raise Violation(f"the ledger names {key}, which does not exist")
            self._read[key] = body
        return self._read[key]

    def files_of(self, manifest: str) -> list[str]:
        """Key and version of each file of a manifest, as its document lists them."""
        if manifest not in self._names:
            document = self.get(f"manifests/{manifest[:8]}/{manifest}.json")
            self._names[manifest] = [_name(file) for file in document["files"]]
        return self._names[manifest]

    def files_of_part(self, part: str) -> list[str]:
        if part not in self._names:
            texts = self.get(f"parts/{part[:8]}/{part}.json")["files"].values()
            self._names[part] = [_name(file) for text in texts for file in json.loads(text)]
        return self._names[part]


class CollectionInvariants:
    """Checks collections after a write. Every method raises ``Violation`` for a broken invariant."""

    def __init__(self, world: World, documents: Documents) -> None:
        self._world, self._documents = world, documents

    def holders(self, rows: dict[str, Item]) -> Iterator[tuple[str, list[str]]]:
        """Undivided parts, with their files; and manifests of divisions that have no row yet."""
        for identity, row in rows.items():
            if "collection" in row:
                hour, _, name = row["collection"].partition("/")
                if not any(
                    division is not None and identity in division["parts"]
                    for division in (self._division(hour, name), self._division(hour, identity))
                ):
                    yield identity, self._documents.files_of_part(identity)
        for (pk, _), item in self._world.dynamodb.items.items():
            if pk.startswith("collection#") and "division" in item:
                for manifest in self._documents.get(item["division"]["key"])["manifests"]:
                    if manifest["id"] not in rows:
                        yield manifest["id"], self._documents.files_of(manifest["id"])

    def check(self, rows: dict[str, Item]) -> None:
        """The row of an arrival names a part if and only if the part lists the file."""
        owners: dict[str, str] = {}
        for (pk, version), item in self._world.dynamodb.items.items():
            if pk.startswith("arrival#") and "manifest" in item:
                owners[f"{item['file'][1]} {version}"] = item["manifest"]
        for identity, row in rows.items():
            if "collection" not in row:
                continue
            listed = self._documents.files_of_part(identity)
            for name in listed:
                if owners.get(name, identity) != identity:
                    raise Violation(f"part {identity} lists {name}, which {owners[name]} owns")
            for name, owner in owners.items():
                if owner == identity and name not in listed:
                    raise Violation(f"{name} names part {identity}, which does not list it")

    def check_announced(self, rows: dict[str, Item]) -> None:
        """No hour is complete for its readers while a file of a part is unpublished.

        Only if no process outlives a Lambda function.
        """
        published = {
            name
            for identity, row in rows.items()
            if row["state"] == "DONE"
            for name in self._documents.files_of(identity)
        }
        for (pk, stamp), item in self._world.dynamodb.items.items():
            is_complete = pk.startswith("partition#") and item.get("decided") == "complete"
            if not is_complete or item["touched"] != item.get("settled"):
                continue
            for identity, row in rows.items():
                if row.get("collection", "").startswith(f"{stamp}/"):
                    missing = [name for name in self._documents.files_of_part(identity) if name not in published]
                    if missing:
                        raise Violation(f"the hour {stamp} is announced as complete without {missing[0]}")

    def check_end(self) -> None:
        """Every collection is divided, and each of its manifests was QUEUED once."""
        for (pk, name), item in self._world.dynamodb.items.items():
            if pk.startswith("collection#") and not item.get("done"):
                raise Violation(f"collection {pk} {name} is left over")

    def _division(self, hour: str, name: str) -> Item | None:
        item = self._world.dynamodb.items.get((f"collection#{hour}", name), {})
        return self._documents.get(item["division"]["key"]) if "division" in item else None


def _name(file: list[Any]) -> str:
    _, key, etag, _, _, version = file
    return f"{key} {version or f'etag:{etag}'}"
