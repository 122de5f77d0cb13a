"""Lambda function ``stream_control``: the actions of the ``stream_window`` state machine on the streaming jobs.

Each action is idempotent, and concerns only the given shards.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from lake.errors import InvalidInputError, TransientError
from lake.ledger import ManifestRow, State
from lake.ledger.stream import StreamRow
from lake.manifest import Lane
from lake.time import iso_utc, next_local_time
from router.entry import lambda_handler
from router.services import Services
from router.stream.runs import has_valid_heartbeat, start_run, stream_runs
from router.stream.spill import is_spilling, read_core_seconds
from router.telemetry import Metric, count, count_bytes, logger


@dataclass(frozen=True, slots=True)
class ShardStatus:
    """The state of a shard that an action found, or left."""

    running: bool
    window_over: bool
    backlog_bytes: int = 0
    spilling: bool = False
    micro_batch_minutes: float = 0.0
    """Minutes that the current micro-batch of a live run has taken; 0 if there is none."""
    stopping: tuple[str, ...] = ()
    """Runs that were asked to end and have not ended."""
    killed: int = 0
    """Number of runs that were ended."""


def _start(services: Services, shard: str, *, manual: bool) -> ShardStatus:
    """Open a window until the next ``schedule.stream_end`` and ensure that a run exists, if one can be started now.

    If not, the window stays open: ``watch`` tries again, and reports what prevents a start. With ``manual``, a person
    gets the engine's refusal at once.
    """
    settings = services.settings
    until = next_local_time(settings.schedule.stream_end, settings.time_zone, services.clock())
    services.ledger.stream.of(shard).open_window(iso_utc(until))
    try:
        running = _start_if_possible(services, shard)
    except (BotoCoreError, ClientError) as error:
        if manual:
            raise
        logger.warning("streaming run not started: the watch retries it", shard=shard, error=str(error))
        running = False
    # The window ends later than now.
    return ShardStatus(running, window_over=False)


def _watch(services: Services, shard: str, queued: list[ManifestRow], working: list[ManifestRow]) -> ShardStatus:
    """Measure the backlog, set or clear spilling, and start a run if one is needed and none exists."""
    stream = services.ledger.stream.of(shard)
    backlog, row = [*queued, *working], stream.get()
    core_seconds = read_core_seconds(services, backlog)
    spilling = is_spilling(services.settings.stream, core_seconds, row.spilling)
    stream.set_backlog(round(core_seconds * 1000), services.clock(), spilling=spilling)
    running = bool(stream_runs(services, shard).live())
    window_over = _window_is_over(services, row)
    if not running and (queued or not window_over):
        stream.request_stop(False)
        running = start_run(services, shard) or bool(stream_runs(services, shard).live())
    size, minutes = sum(manifest.bytes for manifest in backlog), 0.0
    if row.micro_batch_since is not None and has_valid_heartbeat(services, row):
        minutes = (services.clock() - datetime.fromisoformat(row.micro_batch_since)) / timedelta(minutes=1)
    return ShardStatus(running, window_over, size, spilling, minutes)


def _stop(services: Services, shard: str, asked: Collection[str], *, has_work: bool) -> ShardStatus:
    """Request the run to end between two micro-batches; the shard is stopping until it has ended. With ``asked``, a run
    that a file has started since then is not affected.

    Afterwards the request is cleared, because the next run would otherwise end at once. Queued manifests get a new run,
    which ends when it is idle; if quotas have no room now, the sweep starts it.
    """
    stream = services.ledger.stream.of(shard)
    window_over = _window_is_over(services, stream.get())
    alive = stream_runs(services, shard).live()
    stopping = _selected(alive, asked)
    stream.request_stop(bool(stopping))
    running = bool(alive) or (has_work and _start_if_possible(services, shard))
    return ShardStatus(running, window_over, stopping=stopping)


def _kill(services: Services, shard: str, asked: Collection[str]) -> ShardStatus:
    """End a run that did not stop in time; its manifests are converted again after their leases are released."""
    runs = stream_runs(services, shard)
    selected, stream = _selected(runs.live(), asked), services.ledger.stream.of(shard)
    if selected:
        runs.end(selected)
        # Their last heartbeats stay valid for a while, in which no file would start another run.
        stream.end_at_once(selected)
    stream.request_stop(False)
    return ShardStatus(running=False, window_over=_window_is_over(services, stream.get()), killed=len(selected))


def _selected(alive: Collection[str], asked: Collection[str]) -> tuple[str, ...]:
    return tuple(run for run in alive if not asked or run in asked)


def _start_if_possible(services: Services, shard: str) -> bool:
    """Whether a run exists now; False if the account's quotas have no room for one."""
    try:
        return start_run(services, shard) or bool(stream_runs(services, shard).live())
    except TransientError as error:
        logger.warning("streaming run not started: it is retried", shard=shard, error=str(error))
        return False


def _open_manifests(services: Services, state: State) -> dict[str, list[ManifestRow]]:
    """Open manifests of the stream lane by shard, from the index."""
    shards = services.settings.shards
    found: dict[str, list[ManifestRow]] = {}
    # A damaged row is only logged here; the sweep reports it.
    for row in services.ledger.manifests.open(Lane.STREAM, state, lambda error: logger.error(str(error))):
        found.setdefault(shards.of(row.id), []).append(row)
    return found


def _window_is_over(services: Services, row: StreamRow) -> bool:
    return row.window_until is None or datetime.fromisoformat(row.window_until) <= services.clock()


def stream_control(event: Mapping[str, Any], services: Services) -> dict[str, Any]:
    """Take one action and record its metrics.

    ``"manual": true`` marks a person's call: ``start`` no longer counts failed starts; ``stop`` also ends an open
    window, and so the execution that watches it; ``kill`` also affects shards whose window is open. ``shards``
    maps names to the runs to stop or kill, or to none for any live run, as ``stopping`` of an earlier answer does;
    empty for all shards of the settings.

    Raises ``InvalidInputError`` for an unknown action; ``Exception``: the first error of a shard, after all shards were
    tried.
    """
    act: dict[str, Callable[[str], ShardStatus]] = {
        "start": lambda shard: _start(services, shard, manual=manual),
        "watch": lambda shard: _watch(services, shard, queued.get(shard, []), running.get(shard, [])),
        "stop": lambda shard: _stop(services, shard, shards[shard], has_work=shard in queued),
        "kill": lambda shard: _kill(services, shard, shards[shard]),
    }
    action = str(event.get("action"))
    if action not in act:
        raise InvalidInputError(f"action = {action!r} is unknown: expected one of {', '.join(act)}")
    shards, manual = _shards(event, services), event.get("manual") is True
    if action == "start" and manual:
        for shard in shards:
            services.ledger.stream.of(shard).forget_starts()
    if action == "stop" and manual:
        # A later round of the same stop names runs. By then the window may belong to somebody who started it again.
        for shard in (name for name, runs in shards.items() if not runs):
            services.ledger.stream.of(shard).open_window(iso_utc(services.clock()))
    if action in ("stop", "kill") and not manual:
        # A window that a person or the next execution has opened meanwhile must not be ended by this execution.
        stream = services.ledger.stream
        shards = {name: runs for name, runs in shards.items() if _window_is_over(services, stream.of(name).get())}
    queued = _open_manifests(services, State.QUEUED) if action in ("watch", "stop") else {}
    running = _open_manifests(services, State.RUNNING) if action == "watch" else {}
    found: dict[str, ShardStatus] = {}
    errors: list[Exception] = []
    for shard in shards:
        try:
            found[shard] = act[action](shard)
        except Exception as error:
            logger.warning("action on a shard failed", shard=shard, error=str(error))
            errors.append(error)
    result = _answer(action, found)
    # The log and ``hybrid-router stream status`` show which shard is late.
    if found:
        count(Metric.STREAM_RUNNING, result["running"])
    if "backlogBytes" in result:
        count_bytes(Metric.STREAM_BACKLOG_BYTES, result["backlogBytes"])
        count(Metric.STREAM_SPILLING, result["spilling"])
        count(Metric.MICRO_BATCH_MINUTES, result["microBatchMinutes"])
    if errors:
        raise errors[0]
    logger.info("stream control", action=action, result=result)
    return result


handler = lambda_handler(stream_control)
"""``{"action": "start" | "watch" | "stop" | "kill", "shards"?}`` -> ``{"running", "windowOver", ...}``."""


def _shards(event: Mapping[str, Any], services: Services) -> dict[str, Collection[str]]:
    """The shards of the event, each with the runs to stop or kill; none stands for any live run."""
    names, named = services.settings.shards.names, event.get("shards") or {}
    # A shard that a deployment has removed meanwhile no longer has a job.
    return {name: named.get(name, ()) for name in names if name in named or not named}


def _answer(action: str, found: Mapping[str, ShardStatus]) -> dict[str, Any]:
    """``running``: each shard has a run; after ``stop`` and ``kill``: any shard has a run."""
    running = [status.running for status in found.values()]
    answer: dict[str, Any] = {
        "running": any(running) if action in ("stop", "kill") else all(running),
        "windowOver": all(status.window_over for status in found.values()),
    }
    if action == "stop":
        stopping = {shard: list(status.stopping) for shard, status in found.items() if status.stopping}
        answer |= {"stopped": not stopping, "stopping": stopping}
    if action == "kill":
        answer["killed"] = sum(status.killed for status in found.values())
    if action == "watch" and found:
        answer["backlogBytes"] = sum(status.backlog_bytes for status in found.values())
        answer["spilling"] = any(status.spilling for status in found.values())
        answer["microBatchMinutes"] = max(status.micro_batch_minutes for status in found.values())
    return answer
