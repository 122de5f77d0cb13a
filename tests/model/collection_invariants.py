"""Invariants of collections, from the raw stores: who holds a file between its arrival and its manifest's row.

Shares no code with the product. Parts and divisions are remembered as they were when the ledger first named them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.model.scheduler import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.model.world import World

Item = dict[str, Any]


class CollectionInvariants:
    """Checks collections after a write. Every method raises ``Violation`` for a broken invariant."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._parts: dict[str, list[str]] = {}
        self._divisions: dict[str, Item] = {}

    def holders(self, rows: dict[str, Item]) -> Iterator[tuple[str, list[str]]]:
        """Parts that are not divided, with their files; manifests of divisions without a row yet."""
        for identity, row in rows.items():
            if "collection" in row:
                hour, _, name = row["collection"].partition("/")
                if not any(
                    division is not None and identity in division["parts"]
                    for division in (self._division(hour, name), self._division(hour, identity))
                ):
                    yield identity, self.files_of_part(identity)
        for (pk, _), item in self._world.dynamodb.items.items():
            if pk.startswith("collection#") and "division" in item:
                for manifest, *_ in self._read_division(item["division"]["key"])["manifests"]:
                    if manifest not in rows:
                        yield manifest, self._listed(f"manifests/{manifest[:8]}/{manifest}.json")

    def manifests_of(self, part: str, row: Item) -> list[str]:
        """The manifests that a part has become; empty while it is not divided."""
        hour, _, name = row["collection"].partition("/")
        for collection in (name, part):
            division = self._division(hour, collection)
            if division is not None and part in division["parts"]:
                return [manifest for manifest, *_ in division["manifests"]]
        return []

    def check(self, rows: dict[str, Item]) -> None:
        """The row of an arrival names a part if and only if the part lists the file."""
        owners: dict[str, str] = {}
        for (pk, version), item in self._world.dynamodb.items.items():
            if pk.startswith("arrival#") and "manifest" in item:
                owners[f"{item['file'][1]} {version}"] = item["manifest"]
        for identity, row in rows.items():
            if "collection" not in row:
                continue
            listed = self.files_of_part(identity)
            for name in listed:
                if owners.get(name, identity) != identity:
                    raise Violation(f"part {identity} lists {name}, which {owners[name]} owns")
            for name, owner in owners.items():
                if owner == identity and name not in listed:
                    raise Violation(f"{name} names part {identity}, which does not list it")

    def check_told(self, rows: dict[str, Item]) -> None:
        """No hour is complete for its readers while a file of a part is not published.

        Only where no process outlives a Lambda function.
        """
        published = {
            name
            for identity, row in rows.items()
            if row["state"] == "DONE"
            for name in self._listed(f"manifests/{identity[:8]}/{identity}.json")
        }
        for (pk, stamp), item in self._world.dynamodb.items.items():
            told = pk.startswith("partition#") and item.get("told") == "complete"
            if not told or item["touched"] != item.get("settled"):
                continue
            for identity, row in rows.items():
                if row.get("collection", "").startswith(f"{stamp}/"):
                    missing = [name for name in self.files_of_part(identity) if name not in published]
                    if missing:
                        raise Violation(f"the hour {stamp} is told complete without {missing[0]}")

    def check_end(self) -> None:
        """Every collection is divided, and every manifest of it QUEUED once."""
        for (pk, name), item in self._world.dynamodb.items.items():
            if pk.startswith("collection#") and not item.get("done"):
                raise Violation(f"collection {pk} {name} is left over")

    def files_of_part(self, part: str) -> list[str]:
        """Key and version of each file of a part, as its document lists them."""
        if part not in self._parts:
            body = self._world.document(f"parts/{part[:8]}/{part}.json")
            if body is None:
                raise Violation(f"the part {part} has a row and no document")
            self._parts[part] = [_name(file) for text in body["files"].values() for file in json.loads(text)]
        return self._parts[part]

    def _listed(self, key: str) -> list[str]:
        if key not in self._parts:
            body = self._world.document(key)
            if body is None:
                raise Violation(f"{key} is committed and does not exist")
            self._parts[key] = [_name(file) for file in body["files"]]
        return self._parts[key]

    def _division(self, hour: str, name: str) -> Item | None:
        item = self._world.dynamodb.items.get((f"collection#{hour}", name), {})
        return self._read_division(item["division"]["key"]) if "division" in item else None

    def _read_division(self, key: str) -> Item:
        if key not in self._divisions:
            body = self._world.document(key)
            if body is None:
                raise Violation(f"the division {key} is committed and does not exist")
            self._divisions[key] = body
        return self._divisions[key]


def _name(file: list[Any]) -> str:
    _, key, etag, _, _, version = file
    return f"{key} {version or f'etag:{etag}'}"
