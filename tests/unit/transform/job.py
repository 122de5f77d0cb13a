"""Helpers for the tests of the jobs: the context of a run in an emulated world, tasks, and their uploads."""

from collections.abc import Callable
from typing import Any

from lake.commit import PendingObject
from lake.manifest import ObjectVersion, Partition
from lake.settings import BatchSettings, ConvertSettings, Settings
from tests.unit.lake.world import World
from transform.source import UnreadableFileError
from transform.task_model import ConversionContext, Split, Task

PARTITION = Partition("orders", "2026-03-04", 12)


def context_of(
    world: World, run: str = "jr_1", *ended: str, log: Callable[[str], None] = lambda _: None
) -> ConversionContext:
    """The context of a run without Spark; the runs in ``ended`` are over."""
    spark: Any = None
    settings = Settings("test", batch=BatchSettings(max_attempts=2))
    clients = (world.s3, world.ledger, world.resources, settings, "eu-central-1")
    return ConversionContext(spark, *clients, run, world.clock, lambda name: name in ended, log)


def task_of(*splits: Split, number: int = 0, known: tuple[str, ...] = (), **settings: Any) -> Task:
    options = ConvertSettings(**settings)
    return Task("m", 1, PARTITION, number, splits, known, "lake", "quarantine", "eu-central-1", options)


def pending(key: str, rows: int, bucket: str = "lake", size: int = 1) -> PendingObject:
    return PendingObject(bucket, key, f"upload-{key}", "e", "AAAAAA==", size, rows)


class FakeSource:
    """Bodies by key; records its requests."""

    def __init__(self, bodies: dict[str, bytes]) -> None:
        self.bodies = bodies
        self.requests: list[tuple[str, int, int]] = []

    def fetch(self, file: ObjectVersion, start: int, end: int) -> bytes:
        self.requests.append((file.key, start, end))
        if file.key not in self.bodies:
            raise UnreadableFileError("it was deleted")
        return self.bodies[file.key][start:end]
