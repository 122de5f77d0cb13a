"""Lambda function ``stream_control``: the actions of the ``stream_window`` state machine on the streaming jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lake.errors import InvalidInputError
from router.entry import with_product_errors
from router.services import Services, container_services
from router.stream.control import ShardStatus, kill, start, stop, watch
from router.telemetry import Metric, count, count_bytes, logger, metrics

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

ACTIONS = {"start": start, "watch": watch, "stop": stop, "kill": kill}


@with_product_errors
@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001
    """``{"action": "start" | "watch" | "stop" | "kill", "shards"?}`` -> ``{"running", "windowOver", "stopped", ...}``.

    ``"manual": true`` is a person's: with ``start``, starts that have failed before no longer count.
    ``shards``: names with commas between them, such as ``stopping`` of an earlier answer; empty: all of the settings.
    """
    return stream_control(event, container_services())


def stream_control(event: Mapping[str, Any], services: Services) -> dict[str, Any]:
    """Take one action and record its metrics.

    Raises
    ------
    InvalidInputError
        The action is unknown.
    Exception
        The first error of a shard, after all the others have had their turn.
    """
    action = event.get("action")
    if action not in ACTIONS:
        raise InvalidInputError(f"action = {action!r} is unknown: expected one of {', '.join(ACTIONS)}")
    shards = _shards(event, services)
    if action == "start" and event.get("manual") is True:
        for shard in shards:
            services.ledger.stream.of(shard).forget_starts()
    outcomes = ACTIONS[action](services, shards)
    found = {shard: status for shard, status in outcomes.items() if isinstance(status, ShardStatus)}
    result = _answer(action, found)
    _record(result)
    for outcome in outcomes.values():
        if isinstance(outcome, Exception):
            raise outcome
    logger.info("stream control", action=action, result=result)
    return result


def _shards(event: Mapping[str, Any], services: Services) -> tuple[str, ...]:
    names = services.settings.shards.names
    named = tuple(name for name in str(event.get("shards", "")).split(",") if name)
    # One that a deployment has removed meanwhile has no job any more.
    return tuple(name for name in names if name in named) if named else names


def _record(answer: Mapping[str, Any]) -> None:
    """Record the metrics of the lane. Which shard is behind is in the log and in ``hybrid-router stream status``."""
    count(Metric.STREAM_RUNNING, answer["running"])
    if "backlogBytes" in answer:
        count_bytes(Metric.STREAM_BACKLOG_BYTES, answer["backlogBytes"])
        count(Metric.STREAM_SPILLING, answer["spilling"])
        count(Metric.MICRO_BATCH_MINUTES, answer["microBatchMinutes"])


def _answer(action: str, found: Mapping[str, ShardStatus]) -> dict[str, Any]:
    """``running``: each shard has a run; after ``stop`` and ``kill``, one of them has."""
    running = [status.running for status in found.values()]
    answer: dict[str, Any] = {
        "running": any(running) if action in ("stop", "kill") else all(running),
        "windowOver": all(status.window_over for status in found.values()),
        "stopped": not any(running),
    }
    if action == "stop":
        stopping = [shard for shard, status in found.items() if status.stopping]
        answer |= {"stopped": not stopping, "stopping": ",".join(stopping)}
    if action == "kill":
        answer["killed"] = sum(status.killed for status in found.values())
    backlogs = [status.backlog for status in found.values() if status.backlog is not None]
    if backlogs:
        answer["backlogBytes"] = sum(backlog.bytes for backlog in backlogs)
        answer["spilling"] = any(backlog.spilling for backlog in backlogs)
        answer["microBatchMinutes"] = max(backlog.micro_batch_minutes for backlog in backlogs)
    return answer
