"""What makes each function use its permissions; every play returns the text in which a person reads of the refusal."""

from __future__ import annotations

import json
import secrets
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from tests.e2e.stack_settings import URGENT_BY_TAG
from tests.unit.router.events import raw_message

if TYPE_CHECKING:
    from lake.manifest import ObjectVersion
    from tests.e2e.removals.stage import Stage

ROUTE_LOG = "lambda/*Routerroute*.log"
NOTHING: dict[str, Any] = {}


def event(file: ObjectVersion) -> dict[str, Any]:
    """What ``route`` gets for a put."""
    item = {"key": file.key, "size": file.size, "eTag": file.etag, "versionId": file.version_id}
    record = {
        "eventSource": "aws:s3",
        "eventName": "ObjectCreated:Put",
        "eventTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        "s3": {"bucket": {"name": file.bucket}, "object": {k: v for k, v in item.items() if v is not None}},
    }
    return {"Records": [raw_message("1", json.dumps({"Records": [record]}))]}


def routed(stage: Stage, file: ObjectVersion | None = None) -> ObjectVersion:
    """A file that ``route`` has put into a manifest of the batch lane."""
    file = file or stage.new_file()
    answer = json.loads(stage.invoke("route", event(file)))
    assert answer == {"batchItemFailures": []}, answer
    return file


def owner_of(stage: Stage, file: ObjectVersion) -> str:
    arrival = stage.scenario.deployment.ledger.arrivals.get(file)
    assert arrival is not None
    assert arrival.manifest is not None
    return arrival.manifest


def routed_without(stage: Stage, request: dict[str, Any]) -> str:
    with stage.lacking():
        stage.invoke("route", request)
        return stage.wait_until_logged(ROUTE_LOG)


def a_new_file(stage: Stage) -> str:
    return routed_without(stage, event(stage.new_file()))


def the_first_dataset(stage: Stage) -> str:
    stage.delete_row("dataset-count", "dataset-count")
    return routed_without(stage, event(stage.new_file()))


def an_urgent_file(stage: Stage) -> str:
    stage.scenario.deployment.ledger.stream.end()
    return routed_without(stage, event(stage.new_file("urgent")))


def a_tagged_file(stage: Stage) -> str:
    return routed_without(stage, event(replace(stage.new_file(), key=f"{URGENT_BY_TAG}/a.ndjson")))


def a_tagged_file_without_a_version(stage: Stage) -> str:
    return routed_without(stage, event(replace(stage.new_file(version=None), key=f"{URGENT_BY_TAG}/a.ndjson")))


def a_described_file(stage: Stage, version: str | None = "v1") -> str:
    """HeadObject has no text: the log of the function names the status and what its role needs, CloudTrail the role."""
    with stage.lacking():
        stage.invoke("route", event(replace(stage.new_file(version=version), key=f"{URGENT_BY_TAG}/a.ndjson")))
        return stage.wait_until_logged("emulator.log")


def a_described_file_without_a_version(stage: Stage) -> str:
    return a_described_file(stage, version=None)


def an_event_without_a_version(stage: Stage) -> str:
    return routed_without(stage, event(stage.new_file(version=None)))


def a_message(stage: Stage) -> str:
    """The event source is a service: on AWS the queue's age tells of it, and CloudTrail names the permission."""
    with stage.lacking():
        return stage.wait_until_logged("emulator.log")


def a_refused_message(stage: Stage) -> str:
    return routed_without(stage, {"Records": [raw_message("1", "no JSON")]})


def a_log(stage: Stage) -> str:
    """On AWS nothing tells but the missing log; the local cloud has the sentence that CloudTrail would have."""
    with stage.lacking():
        stage.invoke(stage.role.removeprefix("Router").removesuffix("Role"), NOTHING)
        return stage.wait_until_logged("emulator.log")


def answer(stage: Stage, function: str, request: dict[str, Any]) -> str:
    with stage.lacking():
        return stage.invoke(function, request)


def logged(stage: Stage, function: str, request: dict[str, Any]) -> str:
    """The refusal is a warning of the log: the answer counts what was left to later invocations."""
    with stage.lacking():
        stage.invoke(function, request)
        return stage.wait_until_logged(f"lambda/*Router{function.replace('_', '')}Function*.log")


def find(file: ObjectVersion) -> dict[str, Any]:
    """The request with which ``backfill`` lists the hour around now of the file's dataset."""
    hours = [f"{datetime.now(UTC) + timedelta(hours=hours):%Y-%m-%dT%H}" for hours in (-1, 1)]
    request = {"dataset": file.key.partition("/")[0], "from": hours[0], "to": hours[1]}
    return {"action": "find", "request": request, "token": None}


def a_backfill(stage: Stage) -> str:
    return logged(stage, "backfill", find(stage.put_silently()))


def a_backfill_that_cannot_list(stage: Stage) -> str:
    return answer(stage, "backfill", find(stage.put_silently()))


def a_backfill_of_an_unknown_dataset(stage: Stage) -> str:
    request = {"dataset": "nowhere", "from": "2026-11-01", "to": "2026-11-02"}
    return answer(stage, "backfill", {"action": "validate", "input": request})


def planned(manifest: str) -> dict[str, Any]:
    """An execution of ``plan`` for the dataset."""
    return {"execution": f"removal-{secrets.token_hex(4)}", "dataset": manifest}


def a_plan(stage: Stage) -> str:
    return answer(stage, "plan", planned(stage.manifest().partition.dataset))


def a_plan_that_merges(stage: Stage) -> str:
    file = stage.new_file()
    stage.manifest(file)
    stage.manifest(stage.sibling(file))
    return logged(stage, "plan", planned(file.key.partition("/")[0]))


def a_plan_with_a_running_manifest(stage: Stage) -> str:
    row = stage.manifest()
    stage.claimed(row)
    return answer(stage, "plan", planned(row.partition.dataset))


def a_plan_that_tells_its_quotas(stage: Stage) -> str:
    """A plan goes on without quotas and the number of live runs; its dry run says so."""
    return answer(stage, "plan", {**planned(stage.manifest().partition.dataset), "dryRun": True})


def a_plan_of_an_unknown_dataset(stage: Stage) -> str:
    return answer(stage, "plan", planned("nowhere"))


def a_status(stage: Stage) -> str:
    return answer(stage, "run_status", {"run": stage.run_document(stage.manifest().id)})


def a_status_without_its_document(stage: Stage) -> str:
    return answer(stage, "run_status", {"run": f"{stage.run_document()}.gone"})


def a_status_of_a_running_manifest(stage: Stage) -> str:
    row = stage.manifest()
    stage.claimed(row)
    return answer(stage, "run_status", {"run": stage.run_document(row.id)})


def a_status_after_a_lease(stage: Stage) -> str:
    row = stage.manifest()
    stage.claimed(row, lease=timedelta(seconds=-1))
    return answer(stage, "run_status", {"run": stage.run_document(row.id)})


def a_status_after_a_round(stage: Stage) -> str:
    return logged(stage, "run_status", {"run": stage.run_document(stage.manifest().id), "engine": "glue-flex"})


def a_verdict(stage: Stage) -> str:
    request = planned(stage.manifest().partition.dataset)
    stage.invoke("plan", request)
    return answer(stage, "settle", {"execution": request["execution"]})


def a_report(stage: Stage) -> str:
    request = planned(stage.manifest().partition.dataset)
    stage.invoke("plan", request)
    return logged(stage, "settle", {"execution": request["execution"]})


def a_verdict_without_a_plan(stage: Stage) -> str:
    return answer(stage, "settle", planned(""))
