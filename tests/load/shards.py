"""A backlog of the stream lane, converted by one streaming job and by several: each line once, and how fast."""

from __future__ import annotations

import io
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from lake.engines.stream_launch import SHARD_ARGUMENT
from lake.settings import PeakSettings
from lake.settings.routing import DAYS
from lake.shards import FIRST_SHARD
from tests.chaos.glue_world import OVER
from tests.load.lanes import load_test_settings, new_world, put_and_route
from tests.load.published import published_manifests

if TYPE_CHECKING:
    from collections.abc import Iterator

    from local.cloud import LocalCloud
    from tests.chaos.glue_world import GlueWorld

MANIFEST_FILES = 10
"""Small, so that each job has many manifests."""


@dataclass(frozen=True, slots=True)
class ShardLoad:
    """What the jobs of the shards have done."""

    bytes: int
    seconds: float
    """From the start of the first conversion until the last manifest was published."""
    shares: tuple[float, ...]
    """Of the files, by job, the largest first."""
    lines: int
    """In the files ..."""
    rows: int
    """... and in the lake."""

    @property
    def converts_each_line_once(self) -> bool:
        """Whether no line is missing or twice in the lake."""
        return self.rows == self.lines

    def __str__(self) -> str:
        shares = ", ".join(f"{share:.0%}" for share in self.shares)
        return (
            f"{self.bytes / 1e6:.0f} MB in {self.seconds:.0f} s, {self.bytes / 1e6 / self.seconds:.0f} MB/s; "
            f"files by job {shares}; {self.lines} lines, {self.rows} rows"
        )


def shard_load(cloud: LocalCloud, files: int, size: int, jobs: int) -> ShardLoad:
    """Put peak files, whose manifests are spread over the jobs, and let all jobs convert them."""
    settings = load_test_settings()
    stream = replace(settings.stream, jobs=jobs, manifest_files=MANIFEST_FILES)
    peak = PeakSettings(hours=("00:00-24:00",), days=DAYS)
    world = new_world(cloud, replace(settings, peak=peak, stream=stream))
    total = put_and_route(world, files, size)
    job = world.resources.stream_job
    # One Glue job stands for those of all shards: only this argument differs (infra/jobs.py).
    arguments = [{} if name == FIRST_SHARD else {SHARD_ARGUMENT: name} for name in world.settings.shards.names]
    runs = [world.start(job, None, **of_shard) for of_shard in arguments]
    world.wait("the backlog to be empty", lambda: not world.open_rows())
    world.wait("the end of the streaming runs", lambda: all(world.state(job, run) in OVER for run in runs))
    published = list(published_manifests(world.clients.s3, world.resources.control_bucket))
    counts = Counter(dict.fromkeys(runs, 0))
    for item in published:
        counts[item.job_run] += len(item.keys)
    return ShardLoad(
        total,
        max(item.published for item in published) - min(item.started for item in published),
        tuple(count / files for _, count in counts.most_common()),
        _lines(world),
        _rows(world),
    )


def _lines(world: GlueWorld) -> int:
    """In the input bucket; no file has a blank line."""
    return sum(body.count(b"\n") for body in _objects(world, world.resources.input_bucket))


def _rows(world: GlueWorld) -> int:
    """Those of all objects that a reader of the lake sees."""
    bodies = _objects(world, world.resources.lake_bucket)
    return sum(pq.read_metadata(io.BytesIO(body)).num_rows for body in bodies)


def _objects(world: GlueWorld, bucket: str) -> Iterator[bytes]:
    for page in world.clients.s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        for item in page.get("Contents", []):
            yield world.clients.s3.get_object(Bucket=bucket, Key=item["Key"])["Body"].read()
