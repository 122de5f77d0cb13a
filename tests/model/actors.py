"""The processes of the system, each running the product's own code; only Spark itself is played."""

from __future__ import annotations

import json
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from lake.layout import INBOX, lake_key, quarantine_key
from lake.ledger import State
from lake.manifest import Identity, Lane
from router.ownership.draft import RoutedArrival
from router.ownership.own import ArrivalOutcome, own
from router.plan.handler import plan
from router.promote.handler import promote
from router.sweep.handler import sweep
from router.telemetry import logger
from streaming_job.micro_batch import Lane as StreamLane
from streaming_job.micro_batch import convert_pointers
from tests.model.inline_pool import POOLS, InlinePool
from tests.model.scheduler import Violation
from tests.model.world import LEASE, PARTITION
from transform.convert import convert
from transform.job import JobFailedError
from transform.lease import LeaseKeeper
from transform.task_model import NUMBERS_PER_TASK, FileFailure, SplitResult, TaskResult
from transform.upload import Uploads

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lake.manifest import ObjectVersion
    from tests.model.scheduler import Actor
    from tests.model.world import World
    from transform.task_model import Task


@dataclass
class Context:
    """What stands for a Spark session."""

    world: World
    s3: Any
    run: str


class PlayedJob:
    """Spark's part: uploads one Parquet stand-in per task, and rejects; renews leases as its keeper would."""

    alive = True

    def __init__(self, context: Context) -> None:
        self._context = context
        self.cancelled = False
        self.keeper: PlayedKeeper | None = None

    def cancel(self) -> None:
        self.cancelled = True

    def run(self, tasks: Sequence[Task]) -> list[TaskResult]:
        results = []
        for task in tasks:
            self._time_passes()
            results.append(self._task(task))
            self._time_passes()
        return results

    def _time_passes(self) -> None:
        if self._context.world.slow:
            self._context.world.wait(LEASE * 0.6)
        if self.keeper is not None:
            self.keeper.renew_all()
        if self.cancelled:
            raise JobFailedError("cancelled: every lease is lost")

    def _task(self, task: Task) -> TaskResult:
        world = self._context.world
        keys = [split.split("/")[-1] for split in (split.file.key for split in task.splits)]
        failures = tuple(FileFailure(s.file, "truncated") for s in task.splits if s.file.key in world.unreadable)
        if failures:
            return TaskResult(task.manifest, task.number, (), (), (), (), failures, 1)
        if any(split.file.key in world.poisonous for split in task.splits):
            raise JobFailedError(f"MemoryError: one of {keys} was too much")
        rows = [{"row": split.file.key, "run": self._context.run} for split in task.splits]
        rejects = [{"reject": split.file.key} for split in task.splits if split.file.key.endswith("a.ndjson")]
        number = task.number * NUMBERS_PER_TASK
        place = (task.partition, task.manifest, task.generation)
        with tempfile.TemporaryDirectory() as folder, Uploads(self._context.s3) as uploads:
            objects = [_add(uploads, folder, task.lake_bucket, lake_key(*place, number), rows)]
            quarantine = []
            if rejects:
                key = quarantine_key(*place, number + 1)
                quarantine.append(_add(uploads, folder, task.quarantine_bucket, key, rejects))
            uploads.finish()
        splits = tuple(_count(split) for split in task.splits)
        done = (tuple(item.result() for item in group) for group in (objects, quarantine))
        return TaskResult(task.manifest, task.number, *done, splits, ("a", "b"), (), 1)


def _count(split: Any) -> SplitResult:
    rejects = {"not an object": 1} if split.file.key.endswith("a.ndjson") else {}
    return SplitResult(split, 1 + len(rejects), 1, 0, rejects, split.size, False, None)


def _add(uploads: Uploads, folder: str, bucket: str, key: str, records: list[dict[str, str]]) -> Any:
    path = Path(folder) / key.rsplit("/", 1)[-1]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return uploads.add(path, bucket, key, len(records))


class PlayedKeeper(LeaseKeeper):
    """Renews when the job lets it, not by a clock of its own."""

    def __enter__(self) -> PlayedKeeper:
        job = getattr(self._all_lost, "__self__", None)
        if isinstance(job, PlayedJob):
            job.keeper = self
        return self

    def __exit__(self, *_: object) -> None:
        return


@contextmanager
def played(world: World) -> Iterator[None]:
    """The product's threads, random names, Spark and logs are played for as long as this lasts."""
    level = logger.log_level
    logger.setLevel("CRITICAL")
    with ExitStack() as stack:
        for module in POOLS:
            stack.enter_context(patch(f"{module}.ThreadPoolExecutor", InlinePool))
        stack.enter_context(patch("transform.convert.SparkJob", PlayedJob))
        # Input is not read here, neither by tasks nor for their size.
        stack.enter_context(patch("transform.plan_attempt.output_ratio", lambda *_: None))
        stack.enter_context(patch("transform.convert.LeaseKeeper", PlayedKeeper))
        stack.enter_context(patch("secrets.token_hex", world.token))
        for module in ("router.sweep.handler", "router.plan.handler", "router.promote.handler"):
            stack.enter_context(patch(f"{module}.count", lambda *_: None))
        stack.enter_context(patch("router.plan.handler.count_bytes", lambda *_: None))
        try:
            yield
        finally:
            logger.setLevel(level)


def route(world: World, actor: Actor | None, files: Sequence[ObjectVersion], lane: Lane) -> None:
    """An invocation of ``route`` that acknowledges what it may."""
    result = own(world.router(actor), [RoutedArrival(file, PARTITION, lane, "model") for file in files], {})
    for file in files:
        if result.outcomes[Identity.of(file)] != ArrivalOutcome.LATER:
            acknowledge(world, file)


def acknowledge(world: World, file: ObjectVersion) -> None:
    """Its event will not come again: from now on the ledger alone must know it."""
    owner = next((item for item in world.dynamodb.items.values() if item.get("key") == file.key), None)
    row = None if owner is None else world.rows().get(owner["manifest"])
    if row is None or row["state"] == State.ABANDONED:
        raise Violation(f"{file.key} is acknowledged, but no manifest has it")
    world.acknowledged.add(file)


def worker(world: World, actor: Actor | None, name: str, manifests: Sequence[str] | None = None) -> None:
    """A batch run over given manifests, or over whatever is open in its lane."""
    services = world.transform(actor)
    if manifests is None:
        states = (State.QUEUED, State.RUNNING, State.PUBLISHING)
        manifests = [row.id for state in states for row in services.ledger.manifests.open(Lane.BATCH, state)]
    convert(
        manifests,
        spark=Context(world, services.s3, name),  # type: ignore[arg-type]
        services=services,
        run=name,
        clock=world.clock,
        run_is_terminal=world.run_is_terminal,
    )


def stream(world: World, actor: Actor | None, name: str, rounds: int = 1) -> None:
    """A streaming run: micro-batches over pointers that its checkpoint has not seen; then the pointers go."""
    services = world.transform(actor)
    context: Any = Context(world, services.s3, name)

    def wait(_: float) -> None:
        world.wait(LEASE / 3)

    lane = StreamLane(context, services, name, world.clock, world.run_is_terminal, wait, lambda _: None)
    for _ in range(rounds):
        keys, after = [], ""
        while True:
            page = services.s3.list_objects_v2(Bucket="control", Prefix=INBOX, StartAfter=after)
            keys += [item["Key"] for item in page.get("Contents", [])]
            if not page["IsTruncated"]:
                break
            after = keys[-1]
        new = [key for key in keys if key not in world.seen_pointers]
        lines = [_line(services.s3, key) for key in new]
        convert_pointers(lane, [line for line in lines if line is not None])
        for line in lines:
            row = None if line is None else world.rows().get(json.loads(line)["manifest"])
            if row is not None and row["state"] not in ("DONE", "FAILED", "SUPERSEDED"):
                raise Violation(f"the micro-batch ends with a manifest that is {row['state']}")
        world.seen_pointers.update(new)
        for key in new:
            services.s3.delete_object(Bucket="control", Key=key)


def _line(s3: Any, key: str) -> str | None:
    try:
        return str(s3.get_object(Bucket="control", Key=key)["Body"].read().decode())
    except s3.exceptions.NoSuchKey:
        return None  # spark.sql.files.ignoreMissingFiles


def planner(world: World, actor: Actor | None) -> None:
    """A night's plan: merges small manifests, releases those of dead runs."""
    plan({"execution": f"night-{world.token(4)}"}, world.router(actor))


def promoter(world: World, actor: Actor | None, names: Sequence[str]) -> None:
    """A person makes files urgent, and asks for no more than that."""
    promote({"files": [f"s3://input/orders/{name}.ndjson" for name in names]}, world.router(actor))


def sweeper(world: World, actor: Actor | None) -> None:
    """The sweep, whatever its repairs stumble over: the next one goes on."""
    sweep(world.router(actor))


__all__ = [
    "acknowledge",
    "planner",
    "played",
    "promoter",
    "route",
    "stream",
    "sweeper",
    "timedelta",
    "worker",
]
