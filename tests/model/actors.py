"""The processes of the system, each running the product's own code; only Spark is replaced by a fake."""

from __future__ import annotations

import json
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from lake.layout import INBOX, lake_key, quarantine_key
from lake.ledger import State
from lake.manifest import Identity, Lane
from router.ownership import ArrivalOutcome, RoutedArrival, take_ownership
from router.plan.handler import plan
from router.promote.handler import promote
from router.sweep.handler import sweep
from router.telemetry import logger
from streaming_job.micro_batch import convert_pointers
from tests.model.inline_pool import MODULES_WITH_POOLS, InlinePool
from tests.model.scheduler import Violation
from tests.model.world import LEASE, PARTITION
from transform.context import ConversionContext
from transform.convert import convert
from transform.lease import LeaseKeeper
from transform.spark_job import JobFailedError
from transform.task_model import NUMBERS_PER_TASK, FileFailure, SplitResult, TaskResult
from transform.upload import Uploads

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lake.manifest import ObjectVersion
    from tests.model.scheduler import Actor
    from tests.model.world import World
    from transform.context import JobServices
    from transform.task_model import Task


@dataclass
class Context:
    """In place of a Spark session: where a run's tasks write, and the run's id."""

    world: World
    s3: Any
    run: str


class FakeSparkJob:
    """In place of ``SparkJob``: uploads one small JSON object per task instead of Parquet, and its rejects.

    Leases are renewed between tasks, because no thread of a keeper runs.
    """

    alive = True

    def __init__(self, context: Context) -> None:
        self._context = context
        self.cancelled = False
        self.keeper: FakeLeaseKeeper | None = None

    def cancel(self) -> None:
        self.cancelled = True

    def run(self, tasks: Sequence[Task]) -> list[TaskResult]:
        results = []
        for task in tasks:
            self._spend_time()
            results.append(self._task(task))
            self._spend_time()
        return results

    def _spend_time(self) -> None:
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
            raise JobFailedError(f"MemoryError: one of {keys} needs too much memory")
        rows = [{"row": split.file.key, "run": self._context.run} for split in task.splits]
        rejects = [{"reject": split.file.key} for split in task.splits if split.file.key.endswith("a.ndjson")]
        number = task.number * NUMBERS_PER_TASK
        generation = (task.partition, task.manifest, task.generation)
        with tempfile.TemporaryDirectory() as folder, Uploads(self._context.s3) as uploads:
            objects = [_add(uploads, folder, task.lake_bucket, lake_key(*generation, number), rows)]
            quarantine = []
            if rejects:
                key = quarantine_key(*generation, number + 1)
                quarantine.append(_add(uploads, folder, task.quarantine_bucket, key, rejects))
            uploads.finish()
        splits = tuple(_split_result(split) for split in task.splits)
        published, rejected = (tuple(item.result() for item in group) for group in (objects, quarantine))
        return TaskResult(task.manifest, task.number, published, rejected, splits, ("a", "b"), (), 1)


def _split_result(split: Any) -> SplitResult:
    rejects = {"not an object": 1} if split.file.key.endswith("a.ndjson") else {}
    return SplitResult(split, 1 + len(rejects), 1, 0, rejects, split.size, False, None)


def _add(uploads: Uploads, folder: str, bucket: str, key: str, records: list[dict[str, str]]) -> Any:
    path = Path(folder) / key.rsplit("/", 1)[-1]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return uploads.add(path, bucket, key, len(records))


class FakeLeaseKeeper(LeaseKeeper):
    """Renews leases when the job asks for it, not in a thread of its own."""

    def __enter__(self) -> FakeLeaseKeeper:
        job = getattr(self._on_all_lost, "__self__", None)
        if isinstance(job, FakeSparkJob):
            job.keeper = self
        return self

    def __exit__(self, *_: object) -> None:
        return


@contextmanager
def fake_runtime(world: World) -> Iterator[None]:
    """Replace the product's threads, random names, Spark and logs by deterministic fakes."""
    level = logger.log_level
    logger.setLevel("CRITICAL")
    with ExitStack() as stack:
        for module in MODULES_WITH_POOLS:
            stack.enter_context(patch(f"{module}.ThreadPoolExecutor", InlinePool))
        stack.enter_context(patch("transform.convert.SparkJob", FakeSparkJob))
        # The model has no input data from which a ratio could be sampled.
        stack.enter_context(patch("transform.plan_attempt.output_ratio", lambda *_: None))
        stack.enter_context(patch("transform.convert.LeaseKeeper", FakeLeaseKeeper))
        stack.enter_context(patch("secrets.token_hex", world.token))
        for module in ("router.sweep.handler", "router.plan.handler", "router.promote.handler"):
            stack.enter_context(patch(f"{module}.count", lambda *_: None))
        stack.enter_context(patch("router.plan.handler.count_bytes", lambda *_: None))
        try:
            yield
        finally:
            logger.setLevel(level)


def route(world: World, actor: Actor | None, files: Sequence[ObjectVersion], lane: Lane) -> None:
    """An invocation of ``route`` that acknowledges every settled arrival."""
    result = take_ownership(world.router(actor), [RoutedArrival(file, PARTITION, lane, "model") for file in files], {})
    for file in files:
        if result.outcomes[Identity.of(file)] != ArrivalOutcome.UNSETTLED:
            acknowledge(world, file)


def acknowledge(world: World, file: ObjectVersion) -> None:
    """Its event is not delivered again: from now on only the ledger knows the file.

    Raises
    ------
    Violation
        No manifest owns the file.
    """
    arrival = next((item for item in world.dynamodb.items.values() if item.get("key") == file.key), None)
    row = None if arrival is None else world.rows().get(arrival["manifest"])
    if row is None or row["state"] == State.ABANDONED:
        raise Violation(f"{file.key} is acknowledged, but no manifest owns it")
    world.acknowledged.add(file)


def worker(world: World, actor: Actor | None, name: str, manifests: Sequence[str] | None = None) -> None:
    """A batch run over the given manifests, or over all that are open in its lane."""
    services = world.transform(actor)
    if manifests is None:
        states = (State.QUEUED, State.RUNNING, State.PUBLISHING)
        manifests = [row.id for state in states for row in services.ledger.manifests.open(Lane.BATCH, state)]
    convert(manifests, _conversion(world, services, name))


def _conversion(world: World, services: JobServices, name: str) -> ConversionContext:
    spark: Any = Context(world, services.s3, name)
    return ConversionContext(spark, services, name, world.clock, world.run_is_terminal, lambda _: None, lambda _: None)


def stream(world: World, actor: Actor | None, name: str, rounds: int = 1) -> None:
    """A streaming run: micro-batches over pointers that its checkpoint has not recorded, which it then deletes."""
    services = world.transform(actor)

    def wait(_: float) -> None:
        world.wait(LEASE / 3)

    context = _conversion(world, services, name)
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
        convert_pointers(context, [line for line in lines if line is not None], wait)
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
        # Spark skips it as well: spark.sql.files.ignoreMissingFiles.
        return None


def planner(world: World, actor: Actor | None) -> None:
    """The plan of a new execution: merges small manifests, releases those of dead runs."""
    plan({"execution": f"execution-{world.token(4)}"}, world.router(actor))


def promoter(world: World, actor: Actor | None, names: Sequence[str]) -> None:
    """A request to make files urgent."""
    promote({"files": [f"s3://input/orders/{name}.ndjson" for name in names]}, world.router(actor))


def sweeper(world: World, actor: Actor | None) -> None:
    """One invocation of ``sweep``."""
    sweep(world.router(actor))
