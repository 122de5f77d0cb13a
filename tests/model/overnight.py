"""The state machine ``overnight``: plan, one run for each run document until none is open, settle."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import batch_job.main
from router.executions.run_status import run_status
from router.plan.handler import plan
from router.settle.handler import settle
from tests.model.actors import conversion
from tests.model.denial import BLOCKING
from tests.model.scheduler import Violation

if TYPE_CHECKING:
    from tests.model.scheduler import Actor
    from tests.model.world import World

MAX_RUNS = 3
"""Per run document; the manifests that are open then stay for the next execution."""


def overnight(world: World, actor: Actor | None, name: str) -> None:
    """One execution. Raises ``Violation``: its verdict is not what the ledger and the objects say."""
    services = world.router(actor)
    planned = plan({"execution": name}, services)
    index = services.s3.get_object(Bucket="control", Key=planned["index"]["key"])["Body"].read()
    number = 0
    for entry in json.loads(index):
        for _ in range(MAX_RUNS):
            number += 1
            run = f"{name}/{number}"
            world.run_documents[run] = entry["run"]
            if world.denied & BLOCKING:
                world.blocked_runs.add(run)
            try:
                batch_job.main.run(conversion(world, world.transform(actor), run), {"run": entry["run"]})
            finally:
                world.stopped_runs.add(run)
            status = run_status({"run": entry["run"], "jobRun": run}, services)
            if status["open"] <= status["denied"]:
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
