"""Injection points: the steps of the protocol, recognized by the product's requests; and every fault at one of them.

Standard library only.
"""

import re
from random import Random
from typing import Any

RETRIED_BY_BOTOCORE = frozenset({"throttle", "unavailable", "lost attempt"})
"""Actions that botocore's own retries handle; the product sees the others."""
ACTIONS = ("kill", "kill worker", "raise", "stall", "lost response", *sorted(RETRIED_BY_BOTOCORE))
ASSIGNMENT = re.compile(r"(#\w+) = (:v\d+)")
INPUT_READ = "input read"
LISTED = "manifest-of-hour row"
POINT_BY_STATE = {
    "RUNNING": "claim",
    "QUEUED": "release",
    "PUBLISHING": "commit",
    "DONE": "finish",
    "FAILED": "fail",
    "SUPERSEDED": "supersede",
}
POINT_BY_PREFIX = {
    "manifests/": "manifest document",
    "parts/": "part document",
    "divisions/": "division document",
    "inbox/": "pointer",
    "commits/": "commit document",
    "exclusions/": "exclusions",
    "intents/": "intent",
    "results/": "result document",
    "plans/": "plan document",
    "sweep/": "sweep progress",
    "tables/": "batch document",
    "_tables/": "table metadata",
}
POINT_BY_OPERATION = {
    "CreateMultipartUpload": "upload create",
    "UploadPart": "upload part",
    "CompleteMultipartUpload": "completion",
    "HeadObject": "head object",
    "AbortMultipartUpload": "abort upload",
    "DeleteObject": "delete object",
    "ListMultipartUploads": "list uploads",
    "ListObjectsV2": "list objects",
    "ListObjectVersions": "list input",
    "DeleteItem": "forgotten entry",
    "Query": "query ledger",
}
INJECTION_POINTS = (
    *("arrival put", "adopt", "abandon", "enqueue", "claim", "renew", "release", "commit", "finish", "fail", "force"),
    *("supersede", "dataset row", "partition row", "manifest document", "pointer", "commit document", "exclusions"),
    *("collection row", "part document", "division document", "result document", "upload create", "upload part"),
    *("completion", "head object", "abort upload"),
    *("intent", "plan document", "delete object", "list uploads", INPUT_READ),
    *("outbox row", "batch document", "table row", "table metadata", "table mark", "forgotten entry"),
)
"""Points at which histories inject faults: every write, the reads that decide about one, and the input."""


def point_of(service: str, operation: str, request: dict[str, Any]) -> str:
    """The injection point of a request; reads of documents and rows are ``read ...``."""
    if operation in POINT_BY_OPERATION:
        return POINT_BY_OPERATION[operation]
    if service == "s3":
        key = str(request.get("Key", ""))
        name = next((name for prefix, name in POINT_BY_PREFIX.items() if key.startswith(prefix)), "object")
        return name if operation == "PutObject" else f"read {name}"
    if operation == "TransactWriteItems":
        return _transaction(request["TransactItems"])
    if operation == "PutItem":
        return _put(request["Item"])
    if operation == "UpdateItem":
        return _update(request)
    return f"read {_kind(request.get('Key', {}))}" if operation == "GetItem" else operation


def _kind(key: dict[str, Any]) -> str:
    return f"{str(key.get('pk', '')).partition('#')[0] or 'item'} row"


def _transaction(actions: list[dict[str, Any]]) -> str:
    """The step is that of the first action; manifests that are queued follow the lists of their hours."""
    points = [_put(action["Put"]["Item"]) if "Put" in action else _update(action["Update"]) for action in actions]
    return "enqueue" if points[0] == LISTED else points[0]


def _put(item: dict[str, Any]) -> str:
    kind = _kind(item)
    if kind == "arrival row":
        return "arrival put"
    if kind == "manifest row":
        return "abandon" if item.get("state") == "ABANDONED" else "enqueue"
    return kind


def _update(request: dict[str, Any]) -> str:
    kind = _kind(request["Key"])
    if kind == "arrival row":
        return "adopt"
    if kind != "manifest row":
        return kind
    assigned = dict(ASSIGNMENT.findall(request["UpdateExpression"].partition(" REMOVE ")[0]))
    if "#tabled" in assigned:
        return "table mark"
    if "#state" not in assigned:
        return "renew"
    if "#generation" in assigned:
        return "force"
    return POINT_BY_STATE.get(str(request["ExpressionAttributeValues"][assigned["#state"]]), "state change")


WORKER_POINTS = ("upload create", "upload part", INPUT_READ)
"""Points that a Spark worker reaches, not the driver."""


def fault_space() -> list[tuple[str, str, str]]:
    """(point, ``before`` or ``after``, action) of every fault that can occur, in a fixed order."""
    found = []
    for point in INJECTION_POINTS:
        for action in ACTIONS:
            if action == "kill worker" and point not in WORKER_POINTS:
                continue
            if point == INPUT_READ and (action in RETRIED_BY_BOTOCORE or action == "lost response"):
                continue
            # Renewals run in a thread of their own; a process that stalls elsewhere finds its lease lost there.
            if action == "stall" and point == "renew":
                continue
            # Only an applied request can lose its response; a throttled one is refused before it is applied.
            moments = {"throttle": ("before",), "unavailable": ("before",), "lost response": ("after",)}
            found += [(point, when, action) for when in moments.get(action, ("before", "after"))]
    return found


CONDITIONS = ("broken file", "force", "orphan", "lost uploads", "failing task")
CONDITION_RATE = 0.15
NEEDED_BY_POINT = {
    "exclusions": {"broken file"},
    "release": {"broken file"},
    "abort upload": {"broken file", "failing task"},
    "adopt": {"orphan"},
    "abandon": {"orphan"},
    "fail": {"lost uploads"},
    "force": {"force"},
    "delete object": {"force"},
}
"""Conditions without which a history never reaches an injection point."""


def conditions_for(point: str, random: Random) -> set[str]:
    """Conditions at random, and those that the point needs."""
    chosen = {condition for condition in CONDITIONS if random.random() < CONDITION_RATE}
    return chosen | NEEDED_BY_POINT.get(point, set())
