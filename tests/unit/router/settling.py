"""Helpers for the tests of settle: planned executions, and manifests published with given counts."""

from dataclasses import replace
from typing import Any
from unittest.mock import Mock, patch

from lake.commit import SourceCount
from lake.layout import lake_key, quarantine_key, run_key
from lake.ledger import ManifestRow
from router.plan.handler import plan
from router.settle.handler import settle
from tests.unit.lake.world import PARTITION
from tests.unit.router.conftest import Deployment
from tests.unit.router.sweep.sweeping import upload

NONCE = "nonce"
RUN = f"s3://control/{run_key('overnight', NONCE, 0)}"
"""The first run of a planned execution."""


def planned(deployment: Deployment, *names: str) -> list[ManifestRow]:
    """A planned execution with one manifest per name, each in its own partition."""
    rows = []
    for hour, name in enumerate(names):
        rows.append(deployment.queued(name, partition=replace(PARTITION, hour=hour)))
    with patch("router.plan.handler.secrets", Mock(token_hex=lambda _: NONCE)):
        plan({"execution": "overnight"}, deployment.services)
    return rows


def done(deployment: Deployment, row: ManifestRow, rows: int, rejects: int = 0, unreadable: str = "") -> None:
    """Publish the manifest: an object of the lake, and one of the quarantine if lines were rejected.

    ``unreadable`` is the URI of another file, which could not be read.
    """
    lake = replace(upload(deployment, "lake", lake_key(row.partition, row.id, 1, 0)), rows=rows)
    quarantine = (upload(deployment, "quarantine", quarantine_key(row.partition, row.id, 1, 1)),) if rejects else ()
    source = SourceCount("s3://input/a", "v1", 100, rows + rejects, rows, 0, {"not JSON": rejects}, None, None)
    failed = (SourceCount(unreadable, "v1", 100, 0, 0, 0, {}, None, "it was deleted"),) if unreadable else ()
    deployment.published(deployment.row(row.id), objects=(lake,), quarantine=quarantine, sources=(source, *failed))


def settled(deployment: Deployment) -> dict[str, Any]:
    """The answer of settle."""
    return settle({"execution": "overnight"}, deployment.services)
