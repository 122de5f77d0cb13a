"""The processes of the system, each running the product's own code; only Spark is replaced by a fake."""

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import groupby
from typing import Any
from unittest.mock import patch

from aws_lambda_powertools.utilities.data_classes import SQSEvent

import batch_job.main
from lake.errors import InvalidSettingsError
from lake.layout import INBOX, INTENTS, list_objects, manifest_of_pointer
from lake.ledger import State
from lake.manifest import Identity, Lane, ObjectVersion
from router.executions.run_status import run_status
from router.ownership.owner import RoutedArrival
from router.ownership.take import ArrivalOutcome, take_ownership
from router.plan.handler import plan
from router.requests.backfill import backfill
from router.requests.promote import promote
from router.requests.reprocess import reprocess
from router.route.handler import route as route_messages
from router.settle.handler import settle
from router.sweep.handler import sweep
from router.sweep.hours import announce_hours
from router.sweep.manifests import divide_collections
from router.sweep.repair import Repair
from router.telemetry import logger
from streaming_job.micro_batch import convert_portion, raise_unanswered, read_pointers
from tests.model.fake_spark import FakeLeaseKeeper, FakeSource, FakeSparkJob, FakeSparkSession, inline_pools
from tests.model.scheduler import Actor, Violation
from tests.model.world import LEASE, LONG_AGO, PARTITION, START, World, name_of
from tests.unit.router.events import failures
from transform.convert import convert
from transform.task_model import ConversionContext


@contextmanager
def fake_runtime(world: World) -> Iterator[None]:
    """Replace the product's threads, random names, Spark and logs by deterministic fakes."""
    level = logger.log_level
    logger.setLevel("CRITICAL")
    with ExitStack() as stack:
        stack.enter_context(inline_pools())
        stack.enter_context(patch("transform.convert.SparkJob", FakeSparkJob))
        stack.enter_context(patch("transform.preflight.Source", lambda *_: FakeSource()))
        # The model has no input data from which a ratio could be sampled.
        stack.enter_context(patch("transform.plan_attempt.output_ratio", lambda *_: None))
        stack.enter_context(patch("transform.convert.LeaseKeeper", FakeLeaseKeeper))
        stack.enter_context(patch("router.divide.PAUSE_SECONDS", 0))
        stack.enter_context(patch("secrets.token_hex", world.token))
        stack.enter_context(patch("router.telemetry.metrics.add_metric", lambda **_: None))
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


def _is_announced(world: World, file: ObjectVersion) -> bool:
    """Whether an intent names the file: even if its writer dies, the sweep takes ownership of the file."""
    intents = [world.document(key) or {} for key in world.s3.buckets["control"] if key.startswith(INTENTS)]
    return any(item["file"][1] == file.key for intent in intents for item in intent["arrivals"])


def acknowledge(world: World, file: ObjectVersion) -> None:
    """Its event is not redelivered: from now on only the ledger knows the file.

    Raises ``Violation`` if no manifest owns the file, it is not ignored, and no other invocation is adopting it.
    """
    arrival = world.arrival(file)
    row = None if arrival is None else world.rows().get(arrival.get("manifest", ""))
    # Another invocation, with its own intent, may adopt a file that was IGNORED when its event was routed.
    is_left = arrival is not None and ("manifest" not in arrival or _is_announced(world, file))
    if is_left and not file.key.endswith(".ndjson"):
        return
    if row is None or row["state"] == State.ABANDONED:
        raise Violation(f"{name_of(file)} is acknowledged, but no manifest owns it")
    world.acknowledged.add(file)


def receive(world: World, actor: Actor | None) -> None:
    """An invocation of ``route`` by the queue, which removes the messages that are not returned as failed."""
    received = dict(world.queue)
    if not received:
        return
    failed = failures(route_messages(SQSEvent({"Records": list(received.values())}), world.router(actor)))
    for name in received.keys() - set(failed):
        message = world.queue.pop(name, None)
        for file in world.arrived:
            if message is not None and file.key in message["body"] and file.etag in message["body"]:
                acknowledge(world, file)


def backfiller(world: World, actor: Actor | None) -> None:
    """The state machine ``backfill``: it lists the dataset until the function reports that everything is listed."""
    days = {"dataset": "orders", "from": f"{START - LONG_AGO:%Y-%m-%d}", "to": "2026-11-22"}
    services, token = world.router(actor), None
    request = backfill({"action": "validate", "input": days}, services)
    while True:
        token = backfill({"action": "find", "request": request, "token": token}, services)["token"]
        if token is None:
            return


def forcer(world: World, actor: Actor | None) -> None:
    """``force`` on every ended manifest, which is the effect of a request for reprocessing."""
    manifests = world.router(actor).ledger.manifests
    for identity in sorted(world.rows()):
        row = manifests.get(identity)
        if row is not None and row.state in (State.DONE, State.FAILED):
            manifests.force(row, world.clock(), f"after generation {row.generation}")


def reprocesser(world: World, actor: Actor | None) -> None:
    """The command ``reprocess`` for every manifest; each actor repeats the same request."""
    hours = {"from": "2026-11-20", "to": "2026-11-22", "all": True, "request": "request-1"}
    token = None
    while True:
        answer = reprocess({**hours, "token": token}, world.router(actor))
        token = answer.get("token")
        if token is None:
            return


def worker(world: World, actor: Actor | None, name: str, manifests: Sequence[str] | None = None) -> None:
    """A batch run over the given manifests, or over all open ones in its lane."""
    context = conversion(world, actor, name)
    if manifests is None:
        states = (State.QUEUED, State.RUNNING, State.PUBLISHING)
        manifests = [row.id for state in states for row in context.ledger.manifests.open(Lane.BATCH, state)]
    convert(manifests, context)


def conversion(world: World, actor: Actor | None, name: str) -> ConversionContext:
    """The context of a run as an actor sees it; with None its calls meet no faults."""
    services = world.router(actor)
    spark: Any = FakeSparkSession(world, services.s3, name)
    clients = (services.s3, services.ledger, services.resources, services.settings, "eu-central-1")
    return ConversionContext(spark, *clients, name, world.clock, world.run_is_terminal, lambda _: None, lambda _: None)


def stream(world: World, actor: Actor | None, name: str) -> None:
    """A micro-batch over all pointers, which it then deletes."""
    context = conversion(world, actor, name)
    listed = sorted(item["Key"] for item in list_objects(context.s3, "control", INBOX))
    pointers = {name: list(keys) for name, keys in groupby(listed, lambda key: manifest_of_pointer(key) or key)}
    outcomes = convert_portion(context, list(pointers))
    raise_unanswered(outcomes)
    left_to_the_sweep = {outcome.manifest for outcome in outcomes if outcome.fault is not None}
    read = read_pointers(pointers, outcomes)
    for manifest in {manifest_of_pointer(key) or key for key in read} - left_to_the_sweep:
        row = world.rows().get(manifest)
        if row is not None and row["state"] not in ("DONE", "FAILED", "SUPERSEDED"):
            raise Violation(f"the micro-batch ends with a manifest that is {row['state']}")
    for key in read:
        context.s3.delete_object(Bucket="control", Key=key)


def planner(world: World, actor: Actor | None) -> None:
    """The plan of a new execution: divides collections, releases manifests of dead runs."""
    plan({"execution": f"execution-{world.token(4)}"}, world.router(actor))


def promoter(world: World, actor: Actor | None, names: Sequence[str] = ()) -> None:
    """A request to make files urgent; without names, all waiting files."""
    files = {"files": [f"s3://input/orders/{name}.ndjson" for name in names]} if names else {"dataset": "orders"}
    promote(files, world.router(actor))


def looker(world: World, actor: Actor | None) -> None:
    """The part of a sweep that divides collections and notifies readers about hours."""
    repair = Repair(world.router(actor), world.now + LEASE)
    divide_collections(repair)
    announce_hours(repair)


def sweeper(world: World, actor: Actor | None) -> None:
    """One invocation of ``sweep``, which reports a bucket without versions whose rows should expire."""
    with suppress(InvalidSettingsError):
        sweep(world.router(actor))


MAX_RUNS = 3
"""Per run document; the manifests that are open then stay for the next execution."""


def overnight(world: World, actor: Actor | None, name: str) -> None:
    """One execution. Raises ``Violation`` if its verdict contradicts the ledger and the objects."""
    services = world.router(actor)
    planned = plan({"execution": name}, services)
    index = services.s3.get_object(Bucket="control", Key=planned["index"]["key"])["Body"].read()
    number = 0
    for entry in json.loads(index):
        for _ in range(MAX_RUNS):
            number += 1
            run = f"{name}/{number}"
            world.run_documents[run] = entry["run"]
            try:
                batch_job.main.run(conversion(world, actor, run), {"run": entry["run"]})
            finally:
                world.stopped_runs.add(run)
            status = run_status({"run": entry["run"], "jobRun": run}, services)
            if not status["open"]:
                break
    verdict = settle({"execution": name}, services)
    _check_verdict(world, verdict, _planned(world, name))


def _planned(world: World, name: str) -> list[dict[str, Any]]:
    """The rows of the manifests that hold the execution's files now."""
    rows, summary = world.rows(), world.document(f"plans/{name}/plan.json")
    assert summary is not None
    pending, found = list(summary["manifestIds"]), []
    while pending:
        row = rows[pending.pop()]
        if row["state"] == "SUPERSEDED":
            pending += row["superseded_by"]
        else:
            found.append(row)
    return found


def _check_verdict(world: World, verdict: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    succeeded = verdict["verdict"].startswith("SUCCEEDED")
    not_done = [row["id"] for row in rows if row["state"] != "DONE"]
    if succeeded and not_done:
        raise Violation(f"the verdict is {verdict['verdict']}, and {not_done[0]} is not DONE")
    if verdict["damagedObjects"]:
        raise Violation(f"the verdict reports a damaged object, and none is: {verdict['message']}")
    documents = [world.document(row["published"]["document"]["key"]) for row in rows if "published" in row]
    quarantined = any(document is not None and document["quarantine"] for document in documents)
    if succeeded and quarantined != (verdict["verdict"] == "SUCCEEDED_WITH_QUARANTINE"):
        raise Violation(f"the verdict is {verdict['verdict']}, and quarantined is {quarantined}")
