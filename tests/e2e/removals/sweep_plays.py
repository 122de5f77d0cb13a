"""What makes ``sweep`` use its permissions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from lake.layout import SWEEP, lake_key
from lake.manifest import Lane
from lake.partition import Partition
from router.ownership.draft import RoutedArrival
from router.ownership.intent import write_intent
from router.services import Services
from tests.e2e.removals.stage import LONG_AGO
from tests.e2e.stack_settings import e2e_settings

if TYPE_CHECKING:
    from tests.e2e.removals.stage import Stage


def swept(stage: Stage) -> str:
    with stage.lacking():
        return stage.invoke("sweep", {})


def a_sweep(stage: Stage) -> str:
    """Its listings of the input are due, and a manifest of the stream lane waits."""
    stage.delete_control(SWEEP)
    row = stage.manifest(lane=Lane.STREAM)
    stage.age(row)
    stage.scenario.deployment.ledger.stream.end()
    return swept(stage)


def an_intent(stage: Stage) -> str:
    """An invocation has died before it had written a row."""
    file, deployment, now = stage.new_file(), stage.scenario.deployment, datetime.now(UTC)
    services = Services(
        settings=e2e_settings(),
        resources=deployment.resources,
        ledger=deployment.ledger,
        s3=deployment.s3,
        glue=deployment.glue,
        clock=lambda: now,
    )
    partition = stage.manifest(file).partition
    write_intent(services, [RoutedArrival(file, partition, Lane.BATCH, "removal")], now - LONG_AGO)
    with stage.lacking():
        stage.invoke("sweep", {})
        # A warning of the log: the intent stays for the next sweep.
        return stage.wait_until_logged("lambda/*Routersweep*.log")


def an_expired_lease(stage: Stage) -> str:
    stage.claimed(stage.manifest(), lease=timedelta(seconds=-1))
    return swept(stage)


def a_live_lease(stage: Stage) -> str:
    stage.claimed(stage.manifest())
    return swept(stage)


def a_complete_hour(stage: Stage) -> str:
    """It has no file: the manifest of the only one was never recorded."""
    then = datetime.now(UTC) - LONG_AGO
    stage.scenario.deployment.ledger.partitions.touch(Partition("removal", "2026-01-01", 0), then)
    return swept(stage)


def a_stray_upload(stage: Stage) -> str:
    row, deployment = stage.manifest(), stage.scenario.deployment
    deployment.ledger.manifests.fail(row, "removal", datetime.now(UTC))
    key = lake_key(row.partition, row.id, row.generation, 0)
    deployment.s3.create_multipart_upload(Bucket=deployment.resources.lake_bucket, Key=key)
    return swept(stage)


def an_unfinished_publish(stage: Stage) -> str:
    stage.age(stage.publishing(stage.manifest()))
    return swept(stage)
