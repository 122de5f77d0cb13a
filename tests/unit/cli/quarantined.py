"""Manifests that are DONE, with objects in the quarantine, as conversions leave them."""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from lake.commit import PendingObject
from lake.layout import quarantine_key
from lake.ledger import ArrivalRow, ManifestRow
from lake.manifest import Partition
from lake.manifest_documents import write_manifest
from lake.settings import Settings, parse_settings
from lake.texts import with_options
from router.requests.resubmit import resubmit
from router.services import Services
from tests.unit.lake.world import PARTITION, TOTALS, World


class Stack(World):
    """A deployed stack whose function ``resubmit`` runs in this process."""

    convert: Mapping[str, Any] = MappingProxyType({})

    def settings(self) -> Settings:
        return parse_settings({"stage": "test", "convert": dict(self.convert)})

    def services(self) -> Services:
        settings, none = self.settings(), None
        return Services(settings, self.resources, self.ledger, self.s3, none, lambda: datetime.now(UTC))  # type: ignore[arg-type]

    def invoke(self, name: str, event: dict[str, Any]) -> dict[str, Any]:
        assert name == "resubmit"
        return resubmit(event, self.services())

    def runnable(self, text: str) -> str:
        return with_options(text, " --stage dev")


def line_of(text: str, offset: int, name: str = "a", **changes: Any) -> dict[str, Any]:
    """The record of a rejected line of the file ``name``."""
    record = {"kind": "line", "source": f"s3://input/orders/{name}", "version": "v1", "offset": offset}
    return {**record, "length": len(text), "reason": "not JSON", "line": text, **changes}


def converted(
    world: World, records: Iterable[dict[str, Any]], *names: str, partition: Partition = PARTITION
) -> ManifestRow:
    """A DONE manifest of these files, with these records in the quarantine."""
    manifest = world.manifest(*(names or ("a",)), partition=partition)
    for file in manifest.files:
        recorded_at = "2026-11-20T09:30:00.000+00:00"
        world.ledger.arrivals.put(ArrivalRow(file, manifest.id, partition, manifest.lane, "by default", recorded_at))
    write_manifest(world.raw_s3, "control", manifest)
    world.ledger.datasets.register(partition.dataset)
    world.ledger.manifests.enqueue(manifest)
    return published(world, world.row(manifest.id), records)


def published(
    world: World, row: ManifestRow, records: Iterable[dict[str, Any]], kept: Iterable[PendingObject] = ()
) -> ManifestRow:
    """The QUEUED manifest, published with these records, and with objects of an earlier generation."""
    body = "".join(json.dumps(record) + "\n" for record in records).encode()
    key = quarantine_key(row.partition, row.id, row.generation, 0)
    world.raw_s3.put_object(Bucket="quarantine", Key=key, Body=body)
    objects = (*kept, PendingObject("quarantine", key, "", (), "", len(body), 1))
    world.ledger.manifests.finish(world.committed(world.claimed(row), quarantine=objects), TOTALS, world.now)
    return world.row(row.id)
